#pragma once

#include "messages/choices.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// One level of a policy as it is written: `name(parameter=value,…)`.
struct policy_level_text {
  std::string name;
  /// In the order written; each name once.
  std::vector<std::pair<std::string, std::string>> parameters;

  friend bool operator==(const policy_level_text&, const policy_level_text&) = default;
};

inline constexpr size_t policy_text_bytes_max = 4096;
inline constexpr size_t policy_levels_max = 6;
inline constexpr size_t policy_parameters_max = 16;

/// Takes a text such as `stride(by=problem)/sept(ageing=0.5)` apart; says nothing about whether the
/// names exist. A value with commas, slashes, brackets or spaces stands between double quotes,
/// where `\"` and `\\` are a quote and a backslash.
///
/// Errors: `invalid_input` with the place, also for a text over the limits above.
result<std::vector<policy_level_text>> parse_policy_text(std::string_view text);

/// Such a value as it has to be written: between quotes where it needs them.
std::string quoted_policy_value(std::string_view value);

/// "10s", "50ms", "1.5h": nothing when it is not a plain decimal with ns, us, ms, s, m, h or d.
std::optional<std::chrono::nanoseconds> parse_policy_time(std::string_view text);
/// "0.5" as 500: nothing when it has more than three places or is not a plain decimal.
std::optional<uint64_t> parse_thousandths(std::string_view text);

} // namespace gristmill
