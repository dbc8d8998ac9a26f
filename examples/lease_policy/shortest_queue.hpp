#pragma once

#include "gpu/lease/policy.hpp"

/// For `register_lease_policy("shortest_queue", make_shortest_queue, "…")`.
std::unique_ptr<gristmill::lease_policy> make_shortest_queue();
