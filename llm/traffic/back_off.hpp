#pragma once

#include "llm/dialects/dialect.hpp"
#include "llm/traffic/traffic_random.hpp"

#include <chrono>
#include <cstdint>

namespace gristmill {

/// How long to wait before the `retry`-th try (from 1) after this trouble: full jitter, that is
/// anything from 0 to 1 s * 2^(retry-1), at most 60 s; after an overload from 2 s on, at most two
/// minutes. Never less than what the server asked for.
std::chrono::nanoseconds back_off(const trouble& why, uint32_t retry, traffic_random& random);

} // namespace gristmill
