// Operator graphs: read or refused; what was read can be written and read again.

#include "fuzz/require.hpp"
#include "protocol/op_graph.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = parse_op_graph(fuzz::text_of(data, size));
  if (!graph) {
    fuzz::require(!graph.error().what.empty(), "a refusal says why");
    return 0;
  }
  fuzz::require(validate(*graph).has_value(), "what was read keeps the rules");
  const auto text = serialise(*graph);
  const auto again = parse_op_graph(text);
  fuzz::require(again.has_value(), "what was written can be read");
  // As texts: a NaN is not equal to itself.
  fuzz::require(serialise(*again) == text, "a graph that was written reads the same");
  fuzz::require(structure_of(*again) == structure_of(*graph), "and has the same structure");
  return 0;
}
