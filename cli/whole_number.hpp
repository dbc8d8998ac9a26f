#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// The number that a flag has as text: CLI11 takes one that is too large, or negative, for another
/// one. Errors: `invalid_input`, naming the flag, the text and the range.
result<uint64_t> whole_number(
  const std::string& flag, const std::string& text, uint64_t least, uint64_t most);

} // namespace gristmill
