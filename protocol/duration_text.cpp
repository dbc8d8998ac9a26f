#include "protocol/duration_text.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace gristmill {

namespace {

constexpr std::array<std::pair<std::string_view, uint64_t>, 7> units{{
  {"ns", 1},
  {"us", 1'000},
  {"ms", 1'000'000},
  {"s", 1'000'000'000},
  {"m", 60'000'000'000},
  {"h", 3'600'000'000'000},
  {"d", 86'400'000'000'000},
}};

} // namespace

std::optional<uint64_t> parse_duration_ns(std::string_view text) {
  size_t at = 0;
  // In 128 bits, and at most 18 digits on each side of the point: no step below can overflow.
  unsigned __int128 whole = 0;
  unsigned __int128 fraction = 0;
  unsigned __int128 divisor = 1;
  const auto read = [&](unsigned __int128& into, bool fractional) {
    const size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      into = into * 10 + static_cast<unsigned>(text[at] - '0');
      if (fractional)
        divisor *= 10;
      if (at - begin >= 18)
        return false;
    }
    return at > begin;
  };
  if (!read(whole, false))
    return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!read(fraction, true))
      return std::nullopt;
  }
  for (const auto& [name, scale] : units) {
    if (text.substr(at) != name)
      continue;
    const auto part = fraction * scale;
    if (part % divisor != 0)
      return std::nullopt;
    const auto total = whole * scale + part / divisor;
    if (total > INT64_MAX)
      return std::nullopt;
    return static_cast<uint64_t>(total);
  }
  return std::nullopt;
}

} // namespace gristmill
