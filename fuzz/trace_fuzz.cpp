// Lines of a trace file: read or refused; what was read can be written and read again.

#include "fuzz/require.hpp"
#include "protocol/trace.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  const auto all = parse_traces(fuzz::text_of(data, size), "traces.jsonl", &warnings);
  if (!all) {
    fuzz::require(!all.error().what.empty(), "a refusal says why");
    return 0;
  }
  for (const auto& each : *all) {
    // Infinite numbers are read as the official models do, but strict JSON cannot hold them.
    if (!check_trace(each))
      continue;
    const auto text = to_json(each);
    fuzz::require(text.has_value(), "what keeps the rules can be written");
    fuzz::require(text->find('\n') == std::string::npos, "a trace is one line");
    const auto again = parse_trace(*text, "again", 1);
    fuzz::require(again.has_value(), "what was written can be read");
    const auto text_again = to_json(*again);
    fuzz::require(text_again && *text_again == *text, "a trace that was written reads the same");
  }
  return 0;
}
