#pragma once

#include "messages/result.hpp"
#include "protocol/exporter/unit_choice.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A source without its `#include` lines, and those lines, each once.
struct split_source {
  std::vector<std::string> includes;
  /// As many lines as before.
  std::string rest;
};

/// Comments and strings are not mistaken for directives.
split_source split_includes(std::string_view source);

/// Names of the functions that stand behind `__global__`, each once.
std::vector<std::string> kernel_names(std::string_view source);

/// One compile unit as a `.cu` file of its own: the candidate's code in a namespace of its own,
/// behind its own defines, its kernels renamed, and `gm_entry(i)` for the address of the i-th of
/// `entries` (null when this unit has it not).
result<std::string> unit_text(std::string_view source, const export_unit& unit, size_t index,
  const std::vector<std::string>& entries);

/// "gm_unit_3".
std::string unit_namespace(size_t index);

} // namespace gristmill
