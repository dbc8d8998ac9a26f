// Lines of a workload.jsonl: read or refused; what was read can be written and read again.

#include "fuzz/require.hpp"
#include "protocol/emit.hpp"
#include "protocol/workload.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  const auto all = parse_workloads(fuzz::text_of(data, size), "workload.jsonl", &warnings);
  if (!all) {
    fuzz::require(!all.error().what.empty(), "a refusal says why");
    return 0;
  }
  for (const auto& each : *all) {
    const auto text = to_json(each);
    fuzz::require(text.find('\n') == std::string::npos, "a workload is one line");
    const auto again = parse_workload(text, "again", 1);
    // As texts: a NaN is not equal to itself.
    fuzz::require(again && to_json(*again) == text, "a workload that was written reads the same");
  }
  return 0;
}
