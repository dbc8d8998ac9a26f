#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Parts of a line between one character and the next; at most `max` of them, or nothing.
std::optional<std::vector<std::string_view>> split_fields(
  std::string_view line, char between, size_t max);
/// Parts between blanks and tabs.
std::optional<std::vector<std::string_view>> split_blanks(std::string_view line, size_t max);

/// A finite decimal number, within +-1e15. Errors: `invalid_input`, "field NAME: …".
result<double> number_field(std::string_view text, const char* name);

/// A name from outside, as it may stand in a trace: at most 120 bytes, control characters and
/// bytes beyond ASCII as '_'.
std::string name_field(std::string_view text);

} // namespace gristmill
