#include "actors/verdict_evidence.hpp"

#include "actors/prepare_jobs.hpp"
#include "protocol/evidence.hpp"
#include "scoring/floor.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

/// Of the narrowest floating-point input; 0 when there is none.
uint32_t narrowest_input(const definition& def) {
  uint32_t bits = 0;
  for (const auto& spec : def.inputs)
    if (is_float(spec.type) && !spec.is_scalar)
      bits = bits == 0 ? static_cast<uint32_t>(element_bits(spec.type))
                       : std::min(bits, static_cast<uint32_t>(element_bits(spec.type)));
  return bits;
}

/// The plan has been read before; what is no text there claims every shape.
std::string domain_of(const run_context& context, const candidate_ref& candidate) {
  auto text =
    context.blobs ? context.blobs->get(candidate.plan) : result<std::string>{std::string{}};
  auto parsed = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json{};
  if (!parsed.is_object() || !parsed.contains("domain") || !parsed["domain"].is_string())
    return "true";
  return parsed["domain"].get<std::string>();
}

} // namespace

evidence evidence_of(const run_context& context, const judge_request& request,
  const evaluation& judged, std::vector<workload_yardstick> yardsticks, uint32_t attempts,
  uint32_t retrials) {
  evidence out;
  out.attempt = request.attempt;
  out.kind = request.kind;
  out.effort = request.effort;
  out.purpose = request.purpose;
  out.candidate = request.candidate;
  if (request.against)
    out.against = request.against->candidate;
  out.toolchain = context.toolchain;
  out.device = context.device_title.empty() ? request.measured.device : context.device_title;
  out.measured = request.measured;
  out.judged = judged;
  out.yardsticks = std::move(yardsticks);
  out.domain = domain_of(context, request.candidate);
  out.attempts = attempts;
  out.retrials = retrials;
  if (auto found = context.problems.find(request.attempt.problem);
      found != context.problems.end()) {
    out.narrowest_input_bits = narrowest_input(found->second.def);
    for (const auto& spec : found->second.def.outputs)
      out.outputs.push_back({spec.name, std::string(name(spec.type))});
  }
  return out;
}

blob_ref store_evidence(const run_context& context, const evidence& what) {
  if (!context.blobs)
    return {};
  auto text = to_json(what);
  auto stored = text ? context.blobs->put(*text) : result<blob_ref>{pass(text)};
  if (stored)
    return *stored;
  spdlog::warn("{}: its evidence is lost: {}", to_string(what.attempt), stored.error().what);
  return {};
}

uint64_t physical_floor_of(
  const run_context& context, const std::string& problem_name, const std::string& uuid) {
  const physical_limits limits{context.shortest_kernel_ns, context.write_bytes_per_second};
  auto found = context.problems.find(problem_name);
  if (found == context.problems.end() || limits.shortest_kernel_ns == 0)
    return 0;
  const auto& target = found->second;
  for (const auto& work : target.workloads)
    if (work.uuid == uuid)
      if (auto axes = resolve_axes(target.def, work.axes))
        return physical_floor(limits, output_bytes(target.def, *axes));
  return physical_floor(limits, 0);
}

} // namespace gristmill
