#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace gristmill {

/// The parameters of a launch: values one behind the other, each at a multiple of its size.
template <class... Values>
std::vector<uint8_t> parameters(Values... values) {
  std::vector<uint8_t> bytes;
  const auto add = [&](const auto& value) {
    const auto at = (bytes.size() + sizeof value - 1) / sizeof value * sizeof value;
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  (add(values), ...);
  return bytes;
}

} // namespace gristmill
