// A solution.json under both sets of rules. The stricter one refuses more, never less.

#include "fuzz/require.hpp"
#include "protocol/solution.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = fuzz::text_of(data, size);
  std::vector<std::string> warnings;
  const auto safe = parse_solution(text, "solution.json", &warnings);
  const auto official = parse_solution(text, "solution.json", nullptr, solution_rules::official);
  fuzz::require(!safe || official, "what is safe is also official");
  if (!official)
    return 0;
  fuzz::require(!safe == !dangerous_paths(*official).empty(), "a refused path is named");
  official->entry_file();
  official->entry_function();
  const auto again = parse_solution(to_json(*official), "again", nullptr, solution_rules::official);
  fuzz::require(again && *again == *official, "a solution that was written reads the same");
  return 0;
}
