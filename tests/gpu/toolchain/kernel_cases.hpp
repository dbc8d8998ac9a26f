#pragma once

#include "protocol/resolve.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gristmill::test {

/// A buffer of a case. Inputs have `content`; in a large case that is a pattern, repeated up to
/// `bytes`.
struct case_buffer {
  std::string name;
  bool input = false;
  uint64_t bytes = 0;
  std::vector<uint8_t> content;
};

/// One of the ten kernels of tests/corpus/kernels with inputs, launch shape and what must come out.
struct kernel_case {
  std::string name;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_shared = 0;
  std::vector<case_buffer> buffers;
  /// The kernel's arguments: the buffers in their order, then these values, little-endian.
  std::vector<std::vector<uint8_t>> values;
  compile_unit unit;
  /// Largest error over the tolerance, given the outputs in order: at most 1 passes. Small cases
  /// only.
  std::function<double(const std::vector<std::vector<uint8_t>>&)> error;

  /// The parameters, laid out as C does, for buffers at these addresses.
  std::vector<uint8_t> parameters(const std::vector<uint64_t>& addresses) const;
};

/// Names of the ten.
std::vector<std::string> case_names();
/// `large` gives the sizes at which the ten were timed on a GPU; small ones run in full in a
/// second.
kernel_case make_case(const std::string& name, bool large);

} // namespace gristmill::test
