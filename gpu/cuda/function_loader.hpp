#pragma once

#include "gpu/toolchain/shared_library.hpp"

#include <optional>

namespace gristmill::cuda {

/// Fills the entries of a table one after the other and keeps the first thing that was missing.
class function_loader {
public:
  explicit function_loader(const shared_library& library) : library_(library) {}

  template <class Function>
  function_loader& take(Function*& to, const char* name) {
    if (missing_)
      return *this;
    auto found = library_.function<Function>(name);
    if (found)
      to = *found;
    else
      missing_ = found.error();
    return *this;
  }

  /// The entry stays null where the library has no such function.
  template <class Function>
  function_loader& try_take(Function*& to, const char* name) {
    if (auto found = library_.function<Function>(name))
      to = *found;
    return *this;
  }

  const std::optional<failure>& missing() const { return missing_; }

private:
  const shared_library& library_;
  std::optional<failure> missing_;
};

} // namespace gristmill::cuda
