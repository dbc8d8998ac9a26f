#include "actors/prepare_jobs.hpp"

#include "actors/child_job.hpp"
#include "actors/data_files.hpp"
#include "actors/input_numbers.hpp"
#include "kernels/native/native_reference.hpp"
#include "kernels/work_count.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/shrink.hpp"
#include "protocol/trace_plan.hpp"
#include "scoring/floor.hpp"
#include "tensors/safetensors.hpp"

#include <algorithm>
#include <cmath>

namespace gristmill {

namespace {

/// Of a clock input: what is drawn; the rest repeats it.
constexpr uint64_t pattern_bytes_max = uint64_t{4} << 20;
constexpr const char* graph_file_name = "graph.json";

/// How a problem's inputs are made.
struct input_maker {
  const run_context& context;
  const problem& target;
  bool held_out;

  std::string_view set_of(bool clock) const {
    return held_out ? "held-out" : clock ? "clock" : "0";
  }

  /// Where the file of a safetensors input is; the problem's own folder comes first.
  result<std::string> find_file(const workload& work, const input_spec& given) const {
    std::vector<std::filesystem::path> roots{target.folder};
    roots.insert(roots.end(), context.blob_roots.begin(), context.blob_roots.end());
    auto found = find_blob(given.path, roots, [](const std::filesystem::path& place) {
      std::error_code error;
      return std::filesystem::is_regular_file(place, error);
    });
    if (!found)
      return fail(found.error().code,
        found.error().what + "; input '" + given.name + "' of workload " + work.uuid);
    std::error_code error;
    auto absolute = std::filesystem::absolute(*found, error);
    return error ? found->string() : absolute.string();
  }

  /// Name, size and place of the files that an input is written to.
  result<drawn_tensor> file_of(
    const workload& work, const tensor_spec& spec, const axis_values& axes, bool clock) const {
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
    t.file_bytes = *bytes;
    t.key = input_key(context, target, work.uuid, set_of(clock), spec.name);
    t.file = input_file(context, target.name, work.uuid, spec.name, clock).string();
    const auto* given = work.find_input(spec.name);
    if (given == nullptr || given->kind == input_kind::random) {
      // Only a generated input can be repeated where the time alone counts: in the others an
      // element may depend on all those before it.
      if (clock)
        t.file_bytes = std::min(*bytes, pattern_bytes_max);
      return t;
    }
    switch (given->kind) { // no default: the compiler reports a missing case
    case input_kind::random:
      break;
    case input_kind::scalar:
      return fail(errc::invalid_input,
        "workload " + work.uuid + ": inputs." + spec.name
          + ": a number, but the definition declares a tensor");
    case input_kind::custom:
      t.source = tensor_source::custom;
      break;
    case input_kind::safetensors: {
      auto file = find_file(work, *given);
      if (!file)
        return pass(file);
      t.source = tensor_source::safetensors;
      t.blob_file = *file;
      t.blob_key = given->tensor_key;
      break;
    }
    }
    return t;
  }

  /// Calls of the entry point, which is called for the correctness run even when no input needs it.
  void add_calls(const workload& work, const axis_values& full_axes, prepare_workload& out) const {
    const auto& entry = target.def.custom_inputs_entrypoint;
    if (entry.empty())
      return;
    auto keep = [](const std::vector<drawn_tensor>& from, std::vector<stored_tensor>& to) {
      for (const auto& t : from)
        if (t.source == tensor_source::custom)
          to.push_back({t.name, t.type, t.shape, t.bytes, t.file});
    };
    entry_call check;
    check.axes = out.axes;
    check.scalars = out.scalars;
    check.numbers = custom_numbers(target, work);
    // A prefix that no input can have: names are not empty.
    check.key = input_key(context, target, work.uuid, set_of(false), "");
    keep(out.inputs, check.tensors);
    entry_call clock = check;
    clock.axes = full_axes;
    clock.key = input_key(context, target, work.uuid, set_of(true), "");
    clock.tensors.clear();
    keep(out.patterns, clock.tensors);
    if (clock.axes == check.axes) {
      check.tensors.insert(check.tensors.end(), clock.tensors.begin(), clock.tensors.end());
      out.calls.push_back(std::move(check));
      return;
    }
    const bool needed = !clock.tensors.empty() || !clock.numbers.empty();
    out.calls.push_back(std::move(check));
    if (needed)
      out.calls.push_back(std::move(clock));
  }

  result<void> add_tensors(
    const workload& from, const axis_values& full_axes, prepare_workload& work) const {
    for (const auto& spec : target.def.inputs) {
      if (spec.is_scalar)
        continue;
      auto checked = file_of(from, spec, work.axes, false);
      if (!checked)
        return pass(checked);
      auto pattern = file_of(from, spec, full_axes, true);
      if (!pattern)
        return pass(pattern);
      work.inputs.push_back(std::move(*checked));
      work.patterns.push_back(std::move(*pattern));
    }
    add_calls(from, full_axes, work);
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
};

/// Axes of the correctness run: the workload's own when it is small enough.
result<axis_values> check_axes_of(
  const run_context& context, const problem& target, const workload& work) {
  return shrink_axes(target.def, work, context.check_elements_max);
}

} // namespace

result<prepare_job> build_prepare_job(
  const run_context& context, const problem& target, bool held_out) {
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
  out.held_out = held_out;
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
    auto scalars = known_numbers(context, target, work, held_out);
    if (!scalars)
      return pass(scalars);
    prepare_workload w;
    w.uuid = work.uuid;
    w.axes = *check;
    w.scalars = *scalars;
    if (auto added = input_maker{context, target, held_out}.add_tensors(work, *full, w); !added)
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

bool is_shrunken(const run_context& context, const problem& target, const std::string& uuid) {
  for (const auto& work : target.workloads)
    if (work.uuid == uuid) {
      auto full = resolve_axes(target.def, work.axes);
      auto check = check_axes_of(context, target, work);
      return full && check && *full != *check;
    }
  return false;
}

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
    auto floor = stated_floor({counted->bytes, counted->flops, counted->macs},
      {context.floor_bytes_per_second, context.floor_flops_per_second,
        context.floor_macs_per_second});
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
      if (is_shrunken(context, target, a.uuid))
        out.reason += " (on the shrunken twin that stands in for the workload)";
      return out;
    }
  for (const auto& a : answers->workloads)
    for (const auto& work : target.workloads)
      if (work.uuid == a.uuid)
        if (auto stored = store_custom_numbers(context, target, work, a.numbers); !stored) {
          if (stored.error().code != errc::invalid_input)
            return pass(stored);
          out.status = verdict_status::runtime_error;
          out.reason = stored.error().what;
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
  // How a reference was made where that was not as written; one sentence stands for all workloads.
  for (const auto& a : answers->workloads)
    if (!a.reason.empty()) {
      out.reason += (out.reason.empty() ? "reference " : "; reference ") + a.reason;
      break;
    }
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
