#include "actors/prepare_jobs.hpp"

#include "actors/child_job.hpp"
#include "actors/input_cases.hpp"
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
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Of a clock input: what is drawn; the rest repeats it.
constexpr uint64_t pattern_bytes_max = uint64_t{4} << 20;
constexpr const char* graph_file_name = "graph.json";

/// How a problem's inputs are made.
struct input_maker {
  const run_context& context;
  const problem& target;

  /// What the values of a set are keyed by: that of a draw is another one for each draw.
  static std::string key_of(const data_set& set) {
    return set.draw.empty() ? set.name : set.draw + "/" + set.name;
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
  result<drawn_tensor> file_of(const workload& work, const tensor_spec& spec,
    const axis_values& axes, const data_set& set, input_style style) const {
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
    t.key = input_key(context, target, work.uuid, key_of(set), spec.name);
    t.file = input_file(context, target.name, work.uuid, spec.name, set).string();
    t.style = style_of(target, work, spec, style);
    const auto* given = work.find_input(spec.name);
    if (given == nullptr || given->kind == input_kind::random) {
      // Only a generated input can be repeated where the time alone counts: in the others an
      // element may depend on all those before it.
      if (set == clock_set())
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
    check.key = input_key(context, target, work.uuid, data_set{}.name, "");
    keep(out.inputs, check.tensors);
    entry_call clock = check;
    clock.axes = full_axes;
    clock.key = input_key(context, target, work.uuid, clock_set().name, "");
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

  /// Inputs and references of a case.
  result<void> add_tensors(
    const workload& from, const input_case& of, prepare_workload& work) const {
    for (const auto& spec : target.def.inputs) {
      if (spec.is_scalar)
        continue;
      auto input = file_of(from, spec, of.axes, of.set, of.style);
      if (!input)
        return pass(input);
      work.inputs.push_back(std::move(*input));
    }
    for (const auto& spec : target.def.outputs) {
      auto shape = resolve_shape(spec, work.axes);
      if (!shape)
        return pass(shape);
      auto bytes = storage_bytes(spec.type, *shape);
      if (!bytes)
        return pass(bytes);
      work.references.push_back({spec.name, spec.type, *shape, *bytes,
        reference_file(context, target.name, from.uuid, spec.name, of.set).string()});
    }
    return {};
  }

  /// What the clock run of a modelled device reads, and of one that cannot be checked at its size.
  result<void> add_patterns(
    const workload& from, const axis_values& full_axes, prepare_workload& work) const {
    for (const auto& spec : target.def.inputs) {
      if (spec.is_scalar)
        continue;
      auto pattern = file_of(from, spec, full_axes, clock_set(), input_style::standard);
      if (!pattern)
        return pass(pattern);
      work.patterns.push_back(std::move(*pattern));
    }
    return {};
  }
};

/// How the oracle's answer for a case is told apart.
std::string case_id(const workload& work, const input_case& of) {
  return of.set.is_first() ? work.uuid : work.uuid + " " + of.label;
}

/// Whether the clock run has inputs of its own. On a real device, where a workload is checked at
/// its own size, calls are timed on the sets that it is checked on.
bool needs_patterns(const run_context& context, const axis_values& full, const axis_values& check) {
  return !context.measured || full != check;
}

/// Who computes the references.
result<prepare_job> oracle_of(const run_context& context, const problem& target, bool trace) {
  prepare_job out;
  bool native = context.oracle != "torch" && has_native_reference(target.definition_text);
  if (!native && context.oracle == "native")
    return fail(errc::unsupported,
      target.name
        + ": there is no native reference for it; "
          "run with --oracle torch");
  if ((!native || trace) && context.python.empty())
    return fail(errc::unsupported,
      target.name
        + ": its reference needs a Python with torch; "
          "install python3-torch or name one with --python PATH");
  out.oracle = native ? oracle_kind::native : oracle_kind::torch;
  out.definition_text = target.definition_text;
  out.python = context.python;
  return out;
}

result<prepare_workload> prepare_case(const input_maker& maker, const workload& work,
  const input_case& of, const scalar_values& scalars) {
  prepare_workload w;
  w.uuid = case_id(work, of);
  w.axes = of.axes;
  w.scalars = scalars;
  if (auto added = maker.add_tensors(work, of, w); !added)
    return pass(added);
  return w;
}

} // namespace

result<prepare_job> build_prepare_job(const run_context& context, const problem& target) {
  bool trace = target.graph_json.empty();
  auto out = oracle_of(context, target, trace);
  if (!out)
    return out;
  out->graph_file = trace ? graph_file_name : std::string{};
  if (trace) {
    auto attempts = make_trace_attempts(target.def, target.workloads);
    if (attempts)
      out->trace = std::move(*attempts);
    else
      out->graph_file.clear(); // The problem ends as "no candidate", and says why.
  }
  const input_maker maker{context, target};
  for (const auto& work : target.workloads) {
    auto full = resolve_axes(target.def, work.axes);
    if (!full)
      return pass(full);
    auto pool = pool_cases(context, target, work);
    if (!pool)
      return pass(pool);
    auto scalars = known_numbers(context, target, work);
    if (!scalars)
      return pass(scalars);
    for (const auto& one : pool->cases) {
      auto w = prepare_case(maker, work, one, *scalars);
      if (!w)
        return pass(w);
      if (one.set.is_first()) {
        if (needs_patterns(context, *full, one.axes))
          if (auto added = maker.add_patterns(work, *full, *w); !added)
            return pass(added);
        maker.add_calls(work, *full, *w);
      }
      out->workloads.push_back(std::move(*w));
    }
  }
  return out;
}

result<prepare_job> build_draw_job(const run_context& context, const problem& target,
  const std::string& draw, const candidate_ref& candidate) {
  auto resolved = resolve_candidate(context, target.name, candidate);
  if (!resolved)
    return pass(resolved);
  auto out = oracle_of(context, target, false);
  if (!out)
    return out;
  const input_maker maker{context, target};
  for (const auto& work : target.workloads) {
    auto cases = draw_cases(context, target, work, draw, *resolved);
    if (!cases)
      return pass(cases);
    // Those of an entry point are known by now, too.
    auto scalars = all_numbers(context, target, work, input_set::check);
    if (!scalars)
      return pass(scalars);
    for (const auto& one : *cases) {
      if (one.what.set.draw != draw)
        continue; // Made already: of the pool.
      auto w = prepare_case(maker, work, one.what, *scalars);
      if (!w)
        return pass(w);
      out->workloads.push_back(std::move(*w));
    }
  }
  return out;
}

result<void> make_data_folders(
  const run_context& context, const problem& target, const std::string& draw) {
  std::error_code error;
  for (const auto& work : target.workloads)
    for (const auto& folder : {context.inputs(target.name, work.uuid, draw),
           context.references(target.name, work.uuid, draw)}) {
      std::filesystem::create_directories(folder, error);
      if (error)
        return fail(errc::io_failed, folder.string() + ": " + error.message());
    }
  return {};
}

uint64_t output_bytes(const definition& def, const axis_values& axes) {
  uint64_t sum = 0;
  for (const auto& spec : def.outputs) {
    auto shape = resolve_shape(spec, axes);
    auto bytes = shape ? storage_bytes(spec.type, *shape) : result<uint64_t>{pass(shape)};
    sum += bytes ? *bytes : 0;
  }
  return sum;
}

namespace {

/// Whether a case stands for a shrunken workload, by its `id` of `case_id`.
bool is_case_of_twin(const run_context& context, const problem& target, const std::string& id) {
  for (const auto& work : target.workloads)
    if (work.uuid == id || id.starts_with(work.uuid + " "))
      return is_shrunken(context, target, work);
  return false;
}

result<void> add_floor(const run_context& context, const problem& target, const workload& work,
  const op_graph* graph, prepared_problem& out) {
  prepared_workload w;
  w.uuid = work.uuid;
  auto full = resolve_axes(target.def, work.axes);
  if (!full)
    return pass(full);
  auto check = shrink_axes(target.def, work, context.check_elements_max);
  if (!check)
    return pass(check);
  w.shrunken = *check != *full;
  for (const auto& [axis, value] : *check)
    w.check_axes.push_back({axis, value});
  auto pool = pool_cases(context, target, work);
  if (!pool)
    return pass(pool);
  w.sets = static_cast<uint32_t>(pool->cases.size());
  w.sets_note = pool->note;
  const auto* bound = context.bounds ? context.bounds->find(target.name, work.uuid) : nullptr;
  if (bound) {
    w.floor_ns = std::max<uint64_t>(1, static_cast<uint64_t>(std::floor(bound->t_sol_ns)));
    w.floor_method = "bounds table: " + context.bounds->source;
  } else {
    auto counted = count_work(target.def, graph, *full);
    if (!counted)
      return pass(counted);
    // A real device may keep what is written last in L2 and bring it to memory after the call.
    if (context.measured)
      counted->bytes -=
        std::min({counted->bytes, context.facts.l2_bytes, output_bytes(target.def, *full)});
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
  size_t asked = 0;
  for (const auto& work : target.workloads) {
    auto pool = pool_cases(context, target, work);
    if (!pool)
      return pass(pool);
    asked += pool->cases.size();
  }
  if (answers->workloads.size() != asked)
    return fail(errc::child_failed,
      target.name + ": the oracle answered for " + std::to_string(answers->workloads.size())
        + " of " + std::to_string(asked) + " workloads and sets");
  prepared_problem out;
  out.problem = target.name;
  for (const auto& a : answers->workloads)
    if (a.status == verdict_status::infrastructure)
      return fail(errc::child_failed, target.name + ", workload " + a.uuid + ": " + a.reason);
    else if (a.status != verdict_status::passed) {
      out.status = a.status;
      out.reason = "workload " + a.uuid + ": " + a.reason;
      if (is_case_of_twin(context, target, a.uuid))
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

result<prepared_problem> finish_draw(const run_context& context, const problem& target,
  const std::string& draw, const candidate_ref& candidate, const child_result& ended,
  const std::string& nonce) {
  auto answers = read_prepare_answers(ended.lines, nonce);
  if (!answers)
    return fail(errc::child_failed, target.name + ": oracle: " + answers.error().what);
  auto resolved = resolve_candidate(context, target.name, candidate);
  if (!resolved)
    return pass(resolved);
  prepared_problem out;
  out.problem = target.name;
  out.status = verdict_status::passed;
  for (const auto& a : answers->workloads)
    if (a.status == verdict_status::infrastructure)
      return fail(errc::child_failed, target.name + ", " + a.uuid + ": " + a.reason);
    else if (a.status != verdict_status::passed)
      out.reason +=
        fmt::format("{}{}: {}", out.reason.empty() ? "left out: " : "; ", a.uuid, a.reason);
  for (const auto& work : target.workloads) {
    auto cases = cases_of(context, target, work, draw, *resolved);
    if (!cases)
      return pass(cases);
    prepared_workload w;
    w.uuid = work.uuid;
    w.sets = static_cast<uint32_t>(cases->size());
    if (w.sets == 0) {
      out.status = verdict_status::not_checked;
      out.reason =
        fmt::format("workload {}: no case of the draw could be made; {}", w.uuid, out.reason);
    }
    out.workloads.push_back(std::move(w));
  }
  return out;
}

} // namespace gristmill
