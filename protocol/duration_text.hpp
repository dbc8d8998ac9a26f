#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gristmill {

/// "100ms", "90s", "10m", "1.5h", "2d" in nanoseconds, exactly; also ns and us. Nothing when the
/// text is not a plain decimal with one of these units, is finer than a nanosecond or longer than
/// 2^63 of them.
std::optional<uint64_t> parse_duration_ns(std::string_view text);

} // namespace gristmill
