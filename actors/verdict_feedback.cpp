#include "actors/verdict_feedback.hpp"

#include "protocol/feedback.hpp"
#include "protocol/shrink.hpp"

#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

void store(const run_context& context, feedback what, verdict& v) {
  if (!context.blobs)
    return;
  auto stored = context.blobs->put(to_json(std::move(what)));
  if (stored)
    v.feedback = *stored;
  else
    spdlog::warn("the feedback of a verdict is lost: {}", stored.error().what);
}

std::vector<int64_t> shape_in(const run_context& context, const problem& of,
  const std::string& uuid, const std::string& output, bool shrunken) {
  for (const auto& work : of.workloads) {
    if (work.uuid != uuid)
      continue;
    auto axes = shrunken ? shrink_axes(of.def, work, context.check_elements_max)
                         : resolve_axes(of.def, work.axes);
    const auto* spec = of.def.find_output(output);
    if (!axes || spec == nullptr)
      return {};
    auto shape = resolve_shape(*spec, *axes);
    return shape ? *shape : std::vector<int64_t>{};
  }
  return {};
}

} // namespace

void add_feedback_of_refusal(const run_context& context, const candidate_ref& candidate,
  const compiled_candidate& compiled, verdict& v) {
  if (v.status == verdict_status::infrastructure || !context.blobs)
    return;
  auto source = context.blobs->get(candidate.source);
  store(context, feedback_of_refusal(compiled, v, source ? *source : std::string{}), v);
}

void add_feedback_of_verdict(const run_context& context, const std::string& problem_name,
  const measurement& measured, const evaluation& judged, verdict& v) {
  auto found = context.problems.find(problem_name);
  if (v.status == verdict_status::infrastructure || found == context.problems.end())
    return;
  auto shape = [&](const std::string& uuid, const std::string& output, bool shrunken) {
    return shape_in(context, found->second, uuid, output, shrunken);
  };
  store(context, feedback_of_verdict(v, measured, judged, shape), v);
}

} // namespace gristmill
