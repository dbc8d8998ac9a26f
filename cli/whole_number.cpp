#include "cli/whole_number.hpp"

#include <charconv>
#include <fmt/format.h>

namespace gristmill {

result<uint64_t> whole_number(
  const std::string& flag, const std::string& text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    return fail(errc::invalid_input,
      fmt::format("{} {}: must be a whole number from {} to {}", flag, text, least, most));
  return value;
}

} // namespace gristmill
