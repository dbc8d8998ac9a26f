// The outline of a reference: found or refused, with names that Python would take.

#include "fuzz/require.hpp"
#include "protocol/python_scan.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto outline = scan_python(fuzz::text_of(data, size));
  if (!outline) {
    fuzz::require(!outline.error().what.empty(), "a refusal says why");
    return 0;
  }
  for (const auto& function : outline->functions)
    fuzz::require(outline->find(function.name) != nullptr, "a function is found by its name");
  return 0;
}
