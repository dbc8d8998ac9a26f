#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// A stage's source on its way into a common one.
struct source_part {
  std::string text;
  /// Put before each of its macros, those of the plan and those that it defines itself.
  std::string prefix;
  /// Macros that its plan defines; a value that the source itself can hold, or empty where the
  /// common plan defines the macro under its new name.
  std::vector<std::pair<std::string, std::string>> macros;
  /// The namespace that it gets.
  std::string space;
  /// A preprocessor condition around it; empty for none.
  std::string condition;
};

/// One source of many: headers once and at the top, then each part in a namespace of its own, with
/// its macros renamed token by token and its kernels without C linkage, so that no two parts know
/// each other's names.
std::string linked_source(const std::vector<source_part>& parts);

/// C++ text with some identifiers renamed. Strings, characters, comments and the letters in numbers
/// stay as they are.
std::string with_renamed_identifiers(
  std::string_view text, const std::vector<std::pair<std::string, std::string>>& names);

} // namespace gristmill
