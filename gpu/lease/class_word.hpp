#pragma once

#include "messages/lease.hpp"

#include <array>
#include <string>
#include <string_view>

namespace gristmill {

/// What `to_string` says of a class, from a table: for where every lease needs it.
inline std::string_view class_word(lease_class what) {
  static const auto words = [] {
    std::array<std::string, 256> all;
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = to_string(static_cast<lease_class>(i));
    return all;
  }();
  return words[static_cast<uint8_t>(what)];
}

} // namespace gristmill
