// The converter of the older form: it refuses, or what it makes loads without an error.

#include "fuzz/require.hpp"
#include "protocol/convert.hpp"
#include "protocol/definition.hpp"
#include "protocol/solution.hpp"
#include "protocol/workload.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = fuzz::text_of(data, size);
  recognise_document(text);
  if (const auto def = convert_definition(text, "definition.json"))
    fuzz::require(
      parse_definition(def->text, "converted").has_value(), "a converted definition loads");
  if (const auto lines = convert_workloads(text, "workload.jsonl"))
    fuzz::require(
      parse_workloads(lines->text, "converted").has_value(), "converted workloads load");
  if (const auto made = convert_solution(text, "solution.json"))
    fuzz::require(
      parse_solution(made->text, "converted", nullptr, solution_rules::official).has_value(),
      "a converted solution loads");
  return 0;
}
