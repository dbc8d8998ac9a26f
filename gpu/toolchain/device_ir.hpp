#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What the text of LLVM's intermediate code says about a unit of device code. It is what clang
/// knows: inline PTX is an opaque string here, so nothing that it opens or closes can appear.
struct device_ir {
  /// Symbols of the functions that are kernels.
  std::set<std::string> kernels;
  /// Number of an entry of the plan -> symbol of the kernel.
  std::map<size_t, std::string> entries;
  /// Variables in global memory that kernels can write.
  std::vector<std::string> writable_globals;
  /// Functions that are declared and not defined, without LLVM's own intrinsics.
  std::vector<std::string> external_functions;
  /// Assembly outside of any function.
  bool has_module_assembly = false;
  /// The text without the variables that the epilogue made, ready for the code generator.
  std::string text;
};

/// Reads what `clang -emit-llvm -S` wrote. Fails with `invalid_input` when an entry variable is not
/// initialised with a function.
result<device_ir> read_device_ir(std::string_view text);

} // namespace gristmill
