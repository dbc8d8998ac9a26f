// A bounds table: read or refused, and every number in it is a finite, positive time.

#include "fuzz/require.hpp"
#include "protocol/bounds.hpp"

#include <cmath>

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto table = parse_bounds(fuzz::text_of(data, size), "bounds.json");
  if (!table) {
    fuzz::require(!table.error().what.empty(), "a refusal says why");
    return 0;
  }
  fuzz::require(!table->source.empty() && !table->date.empty() && !table->device.empty(),
    "a table says where it is from");
  for (const auto& [problem_name, rows] : table->problems)
    for (const auto& [uuid, row] : rows)
      fuzz::require(std::isfinite(row.t_sol_ns) && row.t_sol_ns > 0 && std::isfinite(row.t_b_ns)
          && row.t_b_ns > 0,
        "times are finite and positive");
  return 0;
}
