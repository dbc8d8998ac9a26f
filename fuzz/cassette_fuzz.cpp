// A cassette: read or refused; what was read can be written and reads the same.

#include "fuzz/require.hpp"
#include "llm/cassette/interaction.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto read = read_tape(text, "run.jsonl");
  if (!read) {
    fuzz::require(read.error().what.starts_with("run.jsonl:"), "a refusal names the line");
    return 0;
  }
  fuzz::require(read->whole_bytes <= size, "no more is read than there is");
  fuzz::require(read->torn == (read->whole_bytes < size), "only a torn last line is left out");
  const auto whole = read_tape(text.substr(0, read->whole_bytes), "run.jsonl");
  fuzz::require(whole && !whole->torn && whole->all.size() == read->all.size(),
    "what is left without the torn line is whole");
  for (const auto& each : read->all) {
    const auto line = write_interaction(each);
    fuzz::require(line.find('\n') == line.size() - 1, "an interaction is one line");
    const auto again = read_interaction(line.substr(0, line.size() - 1), "again");
    fuzz::require(again.has_value(), "what was written can be read");
    fuzz::require(write_interaction(*again) == line, "what was written reads the same");
  }
  return 0;
}
