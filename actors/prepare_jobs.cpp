#include "actors/prepare_jobs.hpp"

#include "actors/candidate.hpp"
#include "actors/child_job.hpp"
#include "actors/data_files.hpp"
#include "journal/hash.hpp"
#include "kernels/native/native_reference.hpp"
#include "kernels/work_count.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/shrink.hpp"
#include "protocol/trace_plan.hpp"
#include "scoring/floor.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

namespace {

/// Of a clock input: what is drawn; the rest repeats it.
constexpr uint64_t pattern_bytes_max = uint64_t{4} << 20;
constexpr const char* graph_file_name = "graph.json";

/// Keyed by HMAC(run secret, definition, workload, set, tensor), contracts section 3.
tensor_key key_of(const run_context& context, const problem& target, const std::string& uuid,
  std::string_view set, const std::string& tensor) {
  std::string_view secret(
    reinterpret_cast<const char*>(context.secret.data()), context.secret.size());
  // The length of each part goes in, so that no two lists of parts make one text.
  std::string text;
  for (std::string_view part : {std::string_view(target.definition_text), std::string_view(uuid),
         set, std::string_view(tensor)})
    text += std::to_string(part.size()) + ":" + std::string(part);
  auto digest = hmac_sha256(secret, text);
  tensor_key key;
  std::copy_n(digest.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

result<drawn_tensor> drawn(const run_context& context, const problem& target,
  const std::string& uuid, const tensor_spec& spec, const axis_values& axes, bool clock) {
  auto shape = resolve_shape(spec, axes);
  if (!shape)
    return pass(shape);
  auto bytes = storage_bytes(spec.type, *shape);
  if (!bytes)
    return pass(bytes);
  drawn_tensor t;
  t.name = spec.name;
  t.description = spec.description;
  t.type = spec.type;
  t.shape = *shape;
  t.bytes = *bytes;
  t.key = key_of(context, target, uuid, clock ? "clock" : "0", spec.name);
  t.file = input_file(context, target.name, uuid, spec.name, clock).string();
  t.file_bytes = clock ? std::min(*bytes, pattern_bytes_max) : *bytes;
  return t;
}

result<void> add_tensors(const run_context& context, const problem& target,
  const axis_values& full_axes, prepare_workload& work) {
  for (const auto& spec : target.def.inputs) {
    if (spec.is_scalar)
      continue;
    auto checked = drawn(context, target, work.uuid, spec, work.axes, false);
    if (!checked)
      return pass(checked);
    auto pattern = drawn(context, target, work.uuid, spec, full_axes, true);
    if (!pattern)
      return pass(pattern);
    work.inputs.push_back(std::move(*checked));
    work.patterns.push_back(std::move(*pattern));
  }
  for (const auto& spec : target.def.outputs) {
    auto shape = resolve_shape(spec, work.axes);
    if (!shape)
      return pass(shape);
    auto bytes = storage_bytes(spec.type, *shape);
    if (!bytes)
      return pass(bytes);
    work.references.push_back({spec.name, spec.type, *shape, *bytes,
      reference_file(context, target.name, work.uuid, spec.name).string()});
  }
  return {};
}

result<void> refuse_other_inputs(const problem& target) {
  if (!target.def.custom_inputs_entrypoint.empty())
    return fail(errc::unsupported,
      target.name + ": its inputs come from the entry point '" + target.def.custom_inputs_entrypoint
        + "', and this build draws random inputs only");
  for (const auto& work : target.workloads)
    for (const auto& in : work.inputs)
      if (in.kind == input_kind::safetensors || in.kind == input_kind::custom)
        return fail(errc::unsupported,
          target.name + ", workload " + work.uuid + ", input '" + in.name
            + "': this build draws random inputs only");
  return {};
}

/// Axes of the correctness run: the workload's own when it is small enough.
result<axis_values> check_axes_of(
  const run_context& context, const problem& target, const workload& work) {
  return shrink_axes(target.def, work, context.check_elements_max);
}

} // namespace

result<prepare_job> build_prepare_job(const run_context& context, const problem& target) {
  if (auto fine = refuse_other_inputs(target); !fine)
    return pass(fine);
  prepare_job out;
  bool native = context.oracle != "torch" && has_native_reference(target.definition_text);
  if (!native && context.oracle == "native")
    return fail(errc::unsupported,
      target.name
        + ": there is no native reference for it; "
          "run with --oracle torch");
  bool trace = target.graph_json.empty();
  if ((!native || trace) && context.python.empty())
    return fail(errc::unsupported,
      target.name
        + ": its reference needs a Python with torch; "
          "install python3-torch or name one with --python PATH");
  out.oracle = native ? oracle_kind::native : oracle_kind::torch;
  out.definition_text = target.definition_text;
  out.python = context.python;
  out.graph_file = trace ? graph_file_name : std::string{};
  if (trace) {
    auto attempts = make_trace_attempts(target.def, target.workloads);
    if (attempts)
      out.trace = std::move(*attempts);
    else
      out.graph_file.clear(); // The problem ends as "no candidate", and says why.
  }
  for (const auto& work : target.workloads) {
    auto full = resolve_axes(target.def, work.axes);
    if (!full)
      return pass(full);
    auto check = check_axes_of(context, target, work);
    if (!check)
      return pass(check);
    auto scalars = scalar_inputs(target.def, work);
    if (!scalars)
      return pass(scalars);
    prepare_workload w;
    w.uuid = work.uuid;
    w.axes = *check;
    w.scalars = *scalars;
    if (auto added = add_tensors(context, target, *full, w); !added)
      return pass(added);
    out.workloads.push_back(std::move(w));
  }
  return out;
}

result<void> make_data_folders(const run_context& context, const problem& target) {
  std::error_code error;
  for (const auto& work : target.workloads)
    for (const auto& folder :
      {context.inputs(target.name, work.uuid), context.references(target.name, work.uuid)}) {
      std::filesystem::create_directories(folder, error);
      if (error)
        return fail(errc::io_failed, folder.string() + ": " + error.message());
    }
  return {};
}

namespace {

result<void> add_floor(const run_context& context, const problem& target, const workload& work,
  const op_graph* graph, prepared_problem& out) {
  prepared_workload w;
  w.uuid = work.uuid;
  auto full = resolve_axes(target.def, work.axes);
  if (!full)
    return pass(full);
  auto check = check_axes_of(context, target, work);
  if (!check)
    return pass(check);
  w.shrunken = *check != *full;
  for (const auto& [axis, value] : *check)
    w.check_axes.push_back({axis, value});
  const auto* bound = context.bounds ? context.bounds->find(target.name, work.uuid) : nullptr;
  if (bound) {
    w.floor_ns = std::max<uint64_t>(1, static_cast<uint64_t>(std::floor(bound->t_sol_ns)));
    w.floor_method = "bounds table: " + context.bounds->source;
  } else {
    auto counted = count_work(target.def, graph, *full);
    if (!counted)
      return pass(counted);
    auto floor = stated_floor({counted->bytes, counted->flops},
      {context.floor_bytes_per_second, context.floor_flops_per_second});
    if (!floor)
      return pass(floor);
    w.floor_ns = floor->ns;
    w.floor_method = floor->method;
    out.has_bounds = false;
  }
  out.workloads.push_back(std::move(w));
  return {};
}

} // namespace

result<prepared_problem> finish_prepare(const run_context& context, const problem& target,
  const child_result& ended, const std::string& nonce, const std::string& job_folder) {
  auto answers = read_prepare_answers(ended.lines, nonce);
  if (!answers)
    return fail(errc::child_failed, target.name + ": oracle: " + answers.error().what);
  if (answers->workloads.size() != target.workloads.size())
    return fail(errc::child_failed,
      target.name + ": the oracle answered for " + std::to_string(answers->workloads.size())
        + " of " + std::to_string(target.workloads.size()) + " workloads");
  prepared_problem out;
  out.problem = target.name;
  for (const auto& a : answers->workloads)
    if (a.status == verdict_status::infrastructure)
      return fail(errc::child_failed, target.name + ", workload " + a.uuid + ": " + a.reason);
    else if (a.status != verdict_status::passed) {
      out.status = a.status;
      out.reason = "workload " + a.uuid + ": " + a.reason;
      return out;
    }
  std::string graph_text = target.graph_json;
  if (graph_text.empty() && !answers->graph_file.empty()) {
    auto text = read_child_file(job_folder, answers->graph_file, uint64_t{1} << 20);
    if (!text)
      return pass(text);
    graph_text = std::move(*text);
  }
  out.reason = answers->graph_reason;
  std::optional<op_graph> graph;
  if (!graph_text.empty()) {
    auto parsed = parse_op_graph(graph_text);
    if (!parsed)
      return fail(errc::child_failed, target.name + ": operator graph: " + parsed.error().what);
    graph = std::move(*parsed);
    auto stored = context.blobs->put(serialise(*graph));
    if (!stored)
      return pass(stored);
    out.graph = *stored;
  }
  out.has_bounds = context.bounds.has_value();
  for (const auto& work : target.workloads)
    if (auto added = add_floor(context, target, work, graph ? &*graph : nullptr, out); !added)
      return pass(added);
  out.status = verdict_status::passed;
  return out;
}

} // namespace gristmill
