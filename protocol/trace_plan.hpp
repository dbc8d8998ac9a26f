#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/resolve.hpp"
#include "protocol/workload.hpp"
#include "tensors/dtype.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// Scalar inputs (`"shape": null`) and their values.
using scalar_values = std::vector<std::pair<std::string, scalar_value>>;

struct trace_tensor {
  std::string name;
  dtype type = dtype::float32;
  std::vector<int64_t> shape;

  friend bool operator==(const trace_tensor&, const trace_tensor&) = default;
};

/// Sizes and numbers to call a reference with while its operators are written down.
struct trace_set {
  axis_values axes;
  scalar_values scalars;
  /// In order of the definition, without the scalars.
  std::vector<trace_tensor> inputs;
  std::vector<trace_tensor> outputs;

  friend bool operator==(const trace_set&, const trace_set&) = default;
};

/// Two calls with other variable axes and other scalar inputs: an argument that differs between
/// them stands for something that depends on those.
struct trace_attempt {
  std::array<trace_set, 2> sets;

  friend bool operator==(const trace_attempt&, const trace_attempt&) = default;
};

/// Ways to call the reference on tiny inputs, best first. Variable axes become pairwise distinct
/// primes that equal no constant axis; later attempts multiply them by powers of two, for
/// references that split an axis. Constants stay. Scalars start from the first workload's numbers
/// and move a little between the calls. Where all workloads give a scalar one number, later
/// attempts keep it if it is whole (a count, a switch, a share of nothing), and the last ones keep
/// any.
///
/// Attempts whose expression axes do not resolve are left out; `refused` when none is left, or when
/// every one has more than 2^40 elements, and then the last reason stands in the message.
result<std::vector<trace_attempt>> make_trace_attempts(
  const definition& def, const std::vector<workload>& workloads);

} // namespace gristmill
