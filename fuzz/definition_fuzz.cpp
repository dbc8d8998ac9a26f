// Whatever stands in a definition.json, it is read or refused, and what was read can be written and
// read again. Axes and shapes are resolved as for a workload that says 7 everywhere.

#include "fuzz/require.hpp"
#include "protocol/definition.hpp"
#include "protocol/emit.hpp"
#include "protocol/workload.hpp"
#include "tensors/generate.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  const auto def = parse_definition(fuzz::text_of(data, size), "definition.json", &warnings);
  if (!def) {
    fuzz::require(!def.error().what.empty(), "a refusal says why");
    return 0;
  }
  const auto again = parse_definition(to_json(*def), "again");
  fuzz::require(again && *again == *def, "a definition that was written reads the same");
  axis_values given;
  for (const auto& each : def->axes)
    if (each.kind == axis_kind::variable)
      given.emplace_back(each.name, 7);
  const auto axes = resolve_axes(*def, given);
  if (!axes)
    return 0;
  for (const auto* specs : {&def->inputs, &def->outputs}) {
    for (const auto& spec : *specs) {
      const auto shape = resolve_shape(spec, *axes);
      if (!shape || spec.is_scalar)
        continue;
      const auto bytes = storage_bytes(spec.type, *shape);
      fuzz::require(bytes || !bytes.error().what.empty(), "a refusal says why");
      choose_distribution(spec.name, spec.description, spec.type, *shape, def->op_type);
    }
  }
  return 0;
}
