#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/workload.hpp"
#include "tensors/mac_class.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// What the operators that an output depends on read and multiply.
struct graph_work {
  /// Elements of each tensor input that are read at least; inputs that nothing live reads are not
  /// in it.
  std::map<std::string, uint64_t> elements_read;
  mac_counts macs{};
  /// Operators that `macs` counts.
  uint32_t mac_nodes = 0;
  /// Names of matrix operators whose sizes could not be told, each once.
  std::vector<std::string> uncounted;
};

/// Errors: `invalid_input` for shapes that do not resolve and for counts above 64 bits.
result<graph_work> count_graph(
  const op_graph& graph, const definition& def, const axis_values& resolved_axes);

} // namespace gristmill
