#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// "; did you mean 'x'? Known: x, y, z", the nearest by edits; "; there is none" without any.
std::string known_choices(std::string_view given, const std::vector<std::string>& known);

/// A stranger's text as it may stand in a message: cut, control characters as '?'.
std::string shown(std::string_view text);

/// Digits, at most one point, at most `places` digits after it: the value times 10^places, such as
/// "0.5" with three places as 500. Errors: `invalid_input` for every other text.
result<uint64_t> parse_fixed_point(std::string_view text, size_t places);

} // namespace gristmill
