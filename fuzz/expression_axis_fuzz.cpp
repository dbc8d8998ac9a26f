// Axis expressions (the arithmetic subset of Python). They are bounded in time and memory whatever
// they say: 9**9**9 overflows, and is not computed.

#include "fuzz/require.hpp"
#include "protocol/expression.hpp"

using namespace gristmill;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = fuzz::text_of(data, size);
  const std::vector<std::pair<std::string, int64_t>> axes{
    {"N", 7}, {"M", 0}, {"K", -3}, {"big", INT64_MAX}, {"small", INT64_MIN}};
  const auto value = evaluate_axis(text, axes);
  fuzz::require(value || !value.error().what.empty(), "a refusal says why");
  const auto again = evaluate_axis(text, axes);
  fuzz::require(value.has_value() == again.has_value() && (!value || *value == *again),
    "an expression has one value");
  return 0;
}
