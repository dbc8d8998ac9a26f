// Launch plans: read or refused, and bound to a small problem within the limits of a launch.

#include "fuzz/require.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"

using namespace gristmill;

namespace {

/// logits[rows, classes] and a scalar to probabilities[rows, classes].
definition small_problem() {
  definition def;
  def.axes = {
    {"rows", axis_kind::variable, 0, "", ""}, {"classes", axis_kind::constant, 64, "", ""}};
  def.inputs = {{"logits", dtype::bfloat16, false, {"rows", "classes"}, ""},
    {"scale", dtype::float32, true, {}, ""}};
  def.outputs = {{"probabilities", dtype::float32, false, {"rows", "classes"}, ""}};
  return def;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = parse_plan(fuzz::text_of(data, size));
  if (!parsed) {
    fuzz::require(!parsed.error().what.empty(), "a refusal says why");
    return 0;
  }
  static const definition def = small_problem();
  const device_facts device{132, 232448, 233472, uint64_t{50} << 20, 90};
  const auto bound = resolve(*parsed, def, {{"rows", 100}, {"classes", 64}},
    {{"scale", *make_scalar(dtype::float32, 0.5)}}, device,
    [](const occupancy_query&) -> result<int64_t> { return 2; });
  if (!bound) {
    fuzz::require(!bound.error().what.empty(), "a refusal says why");
    return 0;
  }
  for (size_t i = 0; i < bound->steps.size(); ++i)
    for (const auto before : bound->steps[i].after)
      fuzz::require(before < i, "a step waits for earlier ones only");
  for (const auto& step : bound->steps) {
    if (step.what == resolved_step::op::launch) {
      for (const auto& argument : step.args)
        fuzz::require(argument.what != resolved_argument::kind::buffer
            || argument.buffer < bound->buffers.size(),
          "an argument names a buffer that there is");
      continue;
    }
    fuzz::require(step.buffer < bound->buffers.size(), "a step names a buffer that there is");
    const uint64_t room = bound->buffers[step.buffer].bytes;
    fuzz::require(
      step.offset <= room && step.bytes <= room - step.offset, "a step stays within its buffer");
  }
  return 0;
}
