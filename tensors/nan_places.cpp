#include "tensors/nan_places.hpp"

#include "tensors/codec.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

namespace gristmill {

namespace {

constexpr size_t chunk = 1024;

} // namespace

nan_places find_nans(
  dtype type, std::span<const std::byte> first, std::span<const std::byte> second) {
  assert(first.size() == second.size());
  nan_places out;
  out.first.assign(first.begin(), first.end());
  out.second.assign(second.begin(), second.end());
  // Packed types hold no NaN, and integers neither.
  if (!is_float(type) || is_packed(type))
    return out;
  const auto width = static_cast<size_t>(element_bits(type) / 8);
  std::array<float, chunk> a{};
  std::array<float, chunk> b{};
  for (size_t at = 0; at < first.size();) {
    const size_t bytes = std::min(chunk * width, first.size() - at);
    const size_t count = bytes / width;
    decode_to_float(type, first.subspan(at, bytes), std::span(a).first(count));
    decode_to_float(type, second.subspan(at, bytes), std::span(b).first(count));
    for (size_t i = 0; i < count; ++i) {
      const bool in_a = std::isnan(a[i]);
      const bool in_b = std::isnan(b[i]);
      if (!in_a && !in_b)
        continue;
      ++(in_a && in_b ? out.both : in_a ? out.only_first : out.only_second);
      std::memset(out.first.data() + at + i * width, 0, width);
      std::memset(out.second.data() + at + i * width, 0, width);
    }
    at += bytes;
  }
  return out;
}

} // namespace gristmill
