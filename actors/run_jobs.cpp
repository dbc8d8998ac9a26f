#include "actors/run_jobs.hpp"

#include "actors/child_job.hpp"
#include "actors/data_files.hpp"
#include "journal/hash.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/shrink.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill {

namespace {

const workload* find_workload(const problem& of, const std::string& uuid) {
  for (const auto& w : of.workloads)
    if (w.uuid == uuid)
      return &w;
  return nullptr;
}

result<const problem*> find_problem(const run_context& context, const std::string& problem_name) {
  auto found = context.problems.find(problem_name);
  if (found == context.problems.end())
    return fail(errc::not_found, fmt::format("no problem is called '{}'", problem_name));
  return &found->second;
}

/// What undefined scratch and outputs hold before a call: the same for a candidate in every run of
/// one secret, and nothing that it can foresee.
tensor_key fill_key(const run_context& context, const measure_request& request) {
  std::string_view secret(
    reinterpret_cast<const char*>(context.secret.data()), context.secret.size());
  auto digest =
    hmac_sha256(secret, "fill/" + to_string(request.attempt) + "/" + request.candidate.hash);
  tensor_key key;
  std::copy_n(digest.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

result<run_pass> make_pass(const run_context& context, const problem& of, const std::string& uuid,
  const resolved_workload& resolved, bool clock) {
  run_pass out;
  out.unit = resolved.unit.key;
  out.steps = resolved.steps;
  for (const auto& buffer : resolved.buffers) {
    std::string file;
    uint64_t file_bytes = 0;
    if (buffer.kind == resolved_buffer::role::input) {
      auto path = input_file(context, of.name, uuid, buffer.name, clock);
      std::error_code error;
      auto size = std::filesystem::file_size(path, error);
      if (error)
        return fail(errc::not_found,
          fmt::format("{}, workload {}: input '{}' has not been made ({}: {})", of.name, uuid,
            buffer.name, path.string(), error.message()));
      file = path.string();
      file_bytes = std::min<uint64_t>(size, buffer.bytes);
    } else if (buffer.kind == resolved_buffer::role::output && !clock) {
      file = output_file(uuid, buffer.name);
    }
    out.buffers.push_back(make_run_buffer(buffer, std::move(file), file_bytes));
  }
  return out;
}

/// Whether the runner itself may say this of a workload.
bool runner_may_say(verdict_status status) {
  return status == verdict_status::passed || status == verdict_status::runtime_error
    || status == verdict_status::timeout || status == verdict_status::reward_hack
    || status == verdict_status::not_checked || status == verdict_status::infrastructure;
}

bool is_shrunken(const run_context& context, const problem& of, const workload& work) {
  auto full = resolve_axes(of.def, work.axes);
  auto check = shrink_axes(of.def, work, context.check_elements_max);
  return full && check && *full != *check;
}

/// The workloads that a measurement covers, in the order of the problem. Errors: `invalid_input`
/// for one that the problem has not, or that is named twice.
result<std::vector<const workload*>> asked_workloads(
  const problem& of, const std::vector<std::string>& asked) {
  std::set<std::string_view> wanted;
  for (const auto& uuid : asked) {
    if (find_workload(of, uuid) == nullptr)
      return fail(errc::invalid_input,
        fmt::format(
          "a measurement of {} asks for workload '{}', which the problem has not", of.name, uuid));
    if (!wanted.insert(uuid).second)
      return fail(errc::invalid_input,
        fmt::format("a measurement of {} asks for workload '{}' twice", of.name, uuid));
  }
  std::vector<const workload*> out;
  for (const auto& w : of.workloads)
    if (asked.empty() || wanted.contains(w.uuid))
      out.push_back(&w);
  return out;
}

result<std::vector<workload_measurement>> in_order(const run_context& context, const problem& of,
  const std::vector<const workload*>& asked, std::vector<workload_measurement> said) {
  std::map<std::string, workload_measurement> by_name;
  for (auto& w : said) {
    auto name = w.uuid;
    if (!by_name.emplace(name, std::move(w)).second)
      return fail(errc::child_failed, fmt::format("it answered twice for workload {}", name));
  }
  std::vector<workload_measurement> out;
  for (const auto* work : asked) {
    auto found = by_name.find(work->uuid);
    if (found == by_name.end())
      return fail(errc::child_failed, fmt::format("it did not answer for workload {}", work->uuid));
    auto& w = found->second;
    if (!runner_may_say(w.status))
      return fail(errc::child_failed,
        fmt::format("workload {}: a runner cannot know {}", w.uuid, to_string(w.status)));
    if (w.status == verdict_status::passed && w.time_ns == 0)
      return fail(
        errc::child_failed, fmt::format("workload {}: ran to its end in no time", w.uuid));
    if (w.shrunken != is_shrunken(context, of, *work))
      return fail(errc::child_failed,
        fmt::format("workload {}: ran {} twin", w.uuid, w.shrunken ? "a shrunken" : "no shrunken"));
    out.push_back(std::move(w));
    by_name.erase(found);
  }
  if (!by_name.empty())
    return fail(errc::child_failed,
      fmt::format("it answered for workload {}, which nobody asked for", by_name.begin()->first));
  return out;
}

/// Nothing was measured, for a reason of ours.
measurement nothing_measured(const run_context& context, const problem* of,
  const std::vector<const workload*>& asked, std::string why) {
  measurement out;
  out.device = "mock:" + context.device_model;
  out.origin = time_origin::none;
  for (const auto* work : asked) {
    workload_measurement w;
    w.uuid = work->uuid;
    w.status = verdict_status::infrastructure;
    w.shrunken = is_shrunken(context, *of, *work);
    w.detail = why;
    out.workloads.push_back(std::move(w));
  }
  out.failure_text = std::move(why);
  return out;
}

} // namespace

std::string output_file(const std::string& uuid, const std::string& tensor) {
  // The length goes in, so that no two pairs make one text.
  return sha256_hex(fmt::format("{}:{}{}", uuid.size(), uuid, tensor)).substr(0, 24) + ".out.bin";
}

// ---- the runner
// ----------------------------------------------------------------------------------

result<run_job> build_run_job(const run_context& context, const measure_request& request) {
  auto of = find_problem(context, request.attempt.problem);
  if (!of)
    return pass(of);
  auto asked = asked_workloads(**of, request.workloads);
  if (!asked)
    return pass(asked);
  auto resolved = resolve_candidate(context, request.attempt.problem, request.candidate);
  if (!resolved)
    return pass(resolved);
  auto is_asked = [&](const std::string& uuid) {
    return std::any_of(
      asked->begin(), asked->end(), [&](const workload* w) { return w->uuid == uuid; });
  };
  run_job out;
  out.device = "mock:" + context.device_model;
  out.instruction_limit = context.instruction_limit;
  out.samples = 1;
  out.fill = fill_key(context, request);
  std::set<std::string> compiled;
  for (const auto& unit : request.units) {
    if (!context.blobs->has(unit.code))
      return fail(errc::not_found, "the code of unit '" + unit.key + "' is not in the blob store");
    auto path = context.blobs->path(unit.code);
    if (!path)
      return pass(path);
    out.units.push_back({unit.key, path->string(), unit.entries});
    compiled.insert(unit.key);
  }
  for (const auto& unit : resolved->units)
    if (compiled.count(unit.key) == 0)
      return fail(
        errc::invalid_input, "the plan needs unit '" + unit.key + "', which was not compiled");
  for (const auto& w : resolved->workloads) {
    if (!is_asked(w.uuid))
      continue;
    run_workload work;
    work.uuid = w.uuid;
    work.shrunken = w.shrunken;
    work.has_check = true;
    auto check = make_pass(context, **of, w.uuid, w.check, false);
    if (!check)
      return pass(check);
    work.check = std::move(*check);
    work.has_clock = true;
    auto clock = make_pass(context, **of, w.uuid, w.full, true);
    if (!clock)
      return pass(clock);
    work.clock = std::move(*clock);
    out.workloads.push_back(std::move(work));
  }
  return out;
}

measurement read_run_result(const run_context& context, const measure_request& request,
  std::string_view nonce, const child_result& ended) {
  auto of = find_problem(context, request.attempt.problem);
  if (!of)
    return nothing_measured(context, nullptr, {}, of.error().what);
  auto asked = asked_workloads(**of, request.workloads);
  if (!asked)
    return nothing_measured(context, *of, {}, asked.error().what);
  if (ended.end != child_end::done)
    return nothing_measured(context, *of, *asked, describe_end("runner", ended));
  auto said = read_run_answers(ended.lines, nonce);
  if (!said)
    return nothing_measured(context, *of, *asked, "runner: " + said.error().what);
  auto workloads = in_order(context, **of, *asked, std::move(said->workloads));
  if (!workloads)
    return nothing_measured(context, *of, *asked, "runner: " + workloads.error().what);
  measurement out;
  out.device = "mock:" + context.device_model;
  out.origin = time_origin::modelled;
  out.workloads = std::move(*workloads);
  out.findings = std::move(said->findings);
  return out;
}

// ---- the judge
// -----------------------------------------------------------------------------------

result<judge_job> build_judge_job(const run_context& context, const judge_request& request) {
  auto of = find_problem(context, request.attempt.problem);
  if (!of)
    return pass(of);
  judge_job out;
  for (const auto& measured : request.measured.workloads) {
    if (measured.status != verdict_status::passed)
      continue; // Nothing was written, or nothing that means anything.
    const auto* work = find_workload(**of, measured.uuid);
    if (work == nullptr)
      return fail(errc::not_found,
        fmt::format("{} has no workload {}", request.attempt.problem, measured.uuid));
    if (request.measured.output_folder.empty())
      return fail(errc::invalid_input,
        fmt::format(
          "measurement.output_folder is empty, but workload {} ran to its end", measured.uuid));
    auto axes = shrink_axes((*of)->def, *work, context.check_elements_max);
    if (!axes)
      return pass(axes);
    judge_workload judged;
    judged.uuid = measured.uuid;
    judged.shrunken = measured.shrunken;
    judged.allowed = work->allowed;
    for (const auto& spec : (*of)->def.outputs) {
      auto shape = resolve_shape(spec, *axes);
      if (!shape)
        return pass(shape);
      auto bytes = storage_bytes(spec.type, *shape);
      if (!bytes)
        return pass(bytes);
      auto file = request.measured.output_folder + "/" + output_file(measured.uuid, spec.name);
      judged.outputs.push_back({{spec.name, spec.type, *shape, *bytes, std::move(file)},
        reference_file(context, (*of)->name, measured.uuid, spec.name).string()});
    }
    out.workloads.push_back(std::move(judged));
  }
  return out;
}

result<evaluation> read_judge_result(const child_result& ended, std::string_view nonce) {
  if (ended.end != child_end::done)
    return fail(errc::child_failed, describe_end("judge", ended));
  auto said = read_judge_answers(ended.lines, nonce);
  if (!said)
    return fail(errc::child_failed, "judge: " + said.error().what);
  return std::move(*said);
}

// ---- the steps of the mock GPU
// -------------------------------------------------------------------

measure_steps runner_steps(run_context_ptr context) {
  measure_steps out;
  out.begin = [context](const measure_request& request,
                std::chrono::nanoseconds deadline) -> result<child_request> {
    auto work = build_run_job(*context, request);
    if (!work)
      return pass(work);
    job what;
    what.kind = job_kind::run;
    what.token = request.under.token;
    what.run = std::move(*work);
    auto child = make_child_job(
      *context, child_profile::runner, "gristmill-runner", std::move(what), deadline);
    if (!child)
      return pass(child);
    // It outlives this call, and maybe the measurement: `end` decides.
    child->folder.keep();
    return std::move(child->request);
  };
  out.command = [context](const std::vector<std::string>& command,
                  std::chrono::nanoseconds deadline) -> result<probe_child> {
    auto id = context->child_ids->fetch_add(1);
    auto folder = job_directory::create(context->jobs().string(), "probe-" + std::to_string(id));
    if (!folder)
      return pass(folder);
    probe_child child;
    child.request.id = id;
    child.request.profile = child_profile::runner;
    child.request.argv = command;
    child.request.job_directory = folder->path();
    child.request.nonce = "none"; // It says nothing on descriptor 3.
    child.request.deadline = deadline;
    child.folder = std::make_shared<job_directory>(std::move(*folder));
    return child;
  };
  out.end = [context](const measure_request& request, const child_request& child,
              const child_result& ended) {
    auto measured = read_run_result(*context, request, child.nonce, ended);
    auto to_judge = std::any_of(measured.workloads.begin(), measured.workloads.end(),
      [](const workload_measurement& w) { return w.status == verdict_status::passed; });
    if (to_judge) {
      measured.output_folder = child.job_directory;
    } else {
      std::error_code error; // What stays behind goes with the run's scratch.
      std::filesystem::remove_all(child.job_directory, error);
    }
    return measured;
  };
  return out;
}

} // namespace gristmill
