#pragma once

#include "planning/allocation/allocation.hpp"

/// For `register_allocation("shortest_quiet", make_shortest_quiet, "…")`.
std::unique_ptr<gristmill::allocation> make_shortest_quiet(uint32_t problems, bool by_attempts);
