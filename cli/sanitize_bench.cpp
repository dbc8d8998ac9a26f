#include "cli/sanitize_bench.hpp"

#include "actors/prepare_jobs.hpp"
#include "actors/run_jobs.hpp"
#include "cli/run_setup.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

run_settings settings_for(
  const run_settings& of_run, const std::string& gpus, const fs::path& folder) {
  run_settings out;
  out.problems = of_run.problems;
  out.keep_going = of_run.keep_going;
  out.gpus = gpus;
  out.toolchain = of_run.toolchain;
  out.oracle = of_run.oracle;
  out.python = of_run.python;
  out.check_elements = of_run.check_elements;
  if (gpus.starts_with("cuda:"))
    out.bounds = of_run.bounds;
  out.rounds = 1;
  // The same inputs in each look. They are not those of the run, whose secret stays its own.
  out.seed = 1;
  out.out = folder.string();
  return out;
}

/// "h200" of "mock:h200", "mock:h200:2" and "cuda:h200".
std::string model_of(const std::string& label) {
  const auto at = label.find(':');
  const auto begin = at == std::string::npos ? 0 : at + 1;
  return label.substr(begin, label.find(':', begin) - begin);
}

} // namespace

result<std::unique_ptr<sanitize_bench>> sanitize_bench::open(const run_settings& of_run,
  const run_beginning& beginning, const blob_store& run_blobs, const std::string& gpus,
  const fs::path& folder) {
  auto setup = make_run_setup(settings_for(of_run, gpus, folder));
  if (!setup)
    return pass(setup);
  const auto kind = setup->devices.front().what;
  if (kind == device_group::kind::sleep || setup->devices.front().from_nodes
    || setup->gpu_count != 1)
    return fail(errc::invalid_input,
      fmt::format("--gpus {}: one device is needed, such as mock:h200 or cuda:0", gpus));
  for (const auto& [name, hash] : setup->problem_hashes)
    if (const auto was = beginning.problem_hashes.find(name);
        was == beginning.problem_hashes.end() || was->second != hash)
      return fail(errc::refused,
        fmt::format("the files of problem '{}' have changed since the run began", name));
  std::unique_ptr<sanitize_bench> out(new sanitize_bench(run_blobs));
  out->title_ =
    setup->context.device_title.empty() ? setup->context.device_label : setup->context.device_title;
  auto bench = candidate_bench::open(std::move(*setup), gpus);
  if (!bench)
    return pass(bench);
  out->bench_ = std::move(*bench);
  return out;
}

result<void> sanitize_bench::prepare_inputs(const std::string& problem_name) {
  if (drawn_.contains(problem_name))
    return {};
  const auto& target = context().problems.find(problem_name)->second;
  if (auto made = make_data_folders(context(), target); !made)
    return made;
  auto work = build_prepare_job(context(), target);
  if (!work)
    return pass(work);
  // Nothing is compared here, and nothing is held against a floor.
  work->trace.clear();
  work->graph_file.clear();
  for (auto& each : work->workloads)
    each.references.clear();
  // Also keeps the numbers that an entry point of the problem draws.
  if (auto prepared = bench_->prepare(target, std::move(*work)); !prepared)
    return fail(prepared.error().code, "inputs: " + prepared.error().what);
  drawn_.insert(problem_name);
  return {};
}

result<void> sanitize_bench::take_blobs(const candidate_ref& of) {
  for (const auto* ref : {&of.source, &of.plan}) {
    auto text = run_blobs_.get(*ref);
    if (!text)
      return pass(text);
    if (auto stored = context().blobs->put(*text); !stored)
      return pass(stored);
  }
  return {};
}

result<compiled_candidate> sanitize_bench::compile(
  const std::string& problem_name, const candidate_ref& of) {
  auto resolved = resolve_candidate(context(), problem_name, of);
  if (!resolved)
    return pass(resolved);
  auto out = bench_->compile(*resolved, of.hash);
  if (!out)
    return out;
  if (out->status != verdict_status::passed)
    return fail(errc::invalid_input,
      fmt::format("{}: {}", to_string(out->status), out->log.substr(0, out->log.find('\n'))));
  return out;
}

result<sanitize_target> sanitize_bench::prepare(const evidence& of) {
  const auto& name = of.attempt.problem;
  const auto found = context().problems.find(name);
  if (found == context().problems.end())
    return fail(errc::not_found, "the run's settings name no problem '" + name + "' any more");
  // Another model has other limits, and other code.
  if (const auto was = model_of(of.measured.device); was != context().device_model)
    return fail(errc::refused,
      fmt::format("it was measured on {}, and {} is another model", of.measured.device, device()));
  if (auto taken = take_blobs(of.candidate); !taken)
    return pass(taken);
  auto compiled = compile(name, of.candidate);
  if (!compiled)
    return pass(compiled);
  if (auto drawn = prepare_inputs(name); !drawn)
    return pass(drawn);
  measure_request asked;
  asked.attempt = of.attempt;
  asked.candidate = of.candidate;
  asked.units = compiled->units;
  asked.under.token = ++token_;
  auto child = make_runner_child(context(), asked, device(), bench_child_deadline);
  if (!child)
    return pass(child);
  // It goes with the folder of this object.
  child->folder.keep();
  sanitize_target out;
  out.what.programs = context().programs;
  out.what.folder = child->request.job_directory;
  out.what.device = device();
  out.same_code = std::all_of(compiled->units.begin(), compiled->units.end(),
    [&](const compiled_unit& unit) { return run_blobs_.has(unit.code); });
  for (const auto& work : found->second.workloads)
    out.workloads.push_back(work.uuid);
  out.what.workloads = out.workloads.size();
  return out;
}

} // namespace gristmill
