#pragma once

#include "messages/result.hpp"

#include <string>

namespace gristmill {

/// A library that is loaded while the program runs, and stays loaded until it ends: CUDA's
/// compilers have threads and exit handlers of their own.
class shared_library {
public:
  /// A path, or a name that the loader searches. Fails with `not_found` and the loader's words.
  static result<shared_library> open(const std::string& name);

  /// The function of that name. Fails with `unsupported`, naming it and the library.
  template <class Function>
  result<Function*> function(const char* name) const {
    auto found = symbol(name);
    if (!found)
      return pass(found);
    return reinterpret_cast<Function*>(*found);
  }

  /// Where the file of that symbol lies; links are followed. Fails with `not_found`.
  result<std::string> file_of(const char* symbol_name) const;

private:
  result<void*> symbol(const char* name) const;

  std::string name_;
  void* handle_ = nullptr;
};

} // namespace gristmill
