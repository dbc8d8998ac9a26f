#pragma once

#include "messages/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A `def` that starts a line at the left margin.
struct python_function {
  std::string name;
  /// Positional-only and ordinary parameters in order; neither `*args` nor what follows it.
  std::vector<std::string> parameters;
};

/// What a loader needs to know about a Python source without running Python.
struct python_outline {
  /// Top-level plain functions in order; `async def`, classes, lambdas, nested and conditional
  /// definitions are not among them.
  std::vector<python_function> functions;

  const python_function* find(std::string_view name) const;
};

/// Reads strings, comments, brackets and line starts. Refuses what no Python can read: an open
/// string or bracket, an indented first line, two operands side by side. Everything else about the
/// syntax is left to Python itself.
result<python_outline> scan_python(std::string_view source);

/// A name that Python accepts for a function: an identifier and not a keyword.
bool is_python_name(std::string_view text);

} // namespace gristmill
