#include "cli/sanitize_bench.hpp"

#include "actors/candidate.hpp"
#include "actors/child_job.hpp"
#include "actors/compile_jobs.hpp"
#include "actors/prepare_jobs.hpp"
#include "actors/run_jobs.hpp"
#include "cli/run_setup.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <future>

namespace gristmill {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto child_deadline = 5min;

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
  const auto now =
    std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  if (auto made = open_run_directory(*setup, now); !made)
    return pass(made);
  std::unique_ptr<sanitize_bench> out(new sanitize_bench(run_blobs));
  const auto& context = setup->context;
  out->device_ = kind == device_group::kind::cuda ? gpus : "mock:" + context.device_model;
  out->title_ = context.device_title.empty() ? context.device_label : context.device_title;
  out->compiler_ = setup->compiler;
  out->context_ = std::make_shared<const run_context>(std::move(setup->context));
  child_loop_limits limits;
  limits.program_folder = out->context_->programs.string();
  out->children_ = std::make_unique<child_loop>(std::move(limits));
  return out;
}

sanitize_bench::~sanitize_bench() {
  if (children_)
    children_->stop();
}

child_result sanitize_bench::wait_for(const child_request& request) {
  std::promise<child_result> promise;
  auto answer = promise.get_future();
  auto sent =
    children_->submit(request, [&](child_result ended) { promise.set_value(std::move(ended)); });
  if (sent)
    return answer.get();
  child_result out;
  out.id = request.id;
  out.log = sent.error().what;
  return out;
}

result<void> sanitize_bench::prepare_inputs(const std::string& problem_name) {
  if (drawn_.contains(problem_name))
    return {};
  const auto& target = context_->problems.find(problem_name)->second;
  if (auto made = make_data_folders(*context_, target); !made)
    return made;
  auto work = build_prepare_job(*context_, target);
  if (!work)
    return pass(work);
  // Nothing is compared here, and nothing is held against a floor.
  work->trace.clear();
  work->graph_file.clear();
  for (auto& each : work->workloads)
    each.references.clear();
  job what;
  what.kind = job_kind::prepare;
  what.prepare = std::move(*work);
  auto child = make_child_job(
    *context_, child_profile::oracle, "gristmill-oracle", std::move(what), child_deadline);
  if (!child)
    return pass(child);
  const auto ended = wait_for(child->request);
  if (ended.end != child_end::done)
    return fail(errc::child_failed, describe_end("oracle", ended));
  // Also keeps the numbers that an entry point of the problem draws.
  auto prepared =
    finish_prepare(*context_, target, ended, child->request.nonce, child->folder.path());
  if (!prepared)
    return pass(prepared);
  if (prepared->status != verdict_status::passed)
    return fail(errc::child_failed, "inputs: " + prepared->reason);
  drawn_.insert(problem_name);
  return {};
}

result<void> sanitize_bench::take_blobs(const candidate_ref& of) {
  for (const auto* ref : {&of.source, &of.plan}) {
    auto text = run_blobs_.get(*ref);
    if (!text)
      return pass(text);
    if (auto stored = context_->blobs->put(*text); !stored)
      return pass(stored);
  }
  return {};
}

result<compiled_candidate> sanitize_bench::compile(
  const std::string& problem_name, const candidate_ref& of) {
  auto resolved = resolve_candidate(*context_, problem_name, of);
  if (!resolved)
    return pass(resolved);
  job what;
  what.kind = job_kind::compile;
  what.compile = build_compile_job(*context_, *resolved, compiler_, resolved->units);
  auto child = make_child_job(
    *context_, child_profile::compiler, "gristmill-compiler", std::move(what), child_deadline);
  if (!child)
    return pass(child);
  if (auto written = child->folder.write("candidate.cu", resolved->source); !written)
    return pass(written);
  const auto ended = wait_for(child->request);
  if (ended.end != child_end::done)
    return fail(errc::child_failed, describe_end("compiler", ended));
  auto made = read_compile_result(*context_, ended, child->request.nonce, child->folder.path());
  if (!made)
    return pass(made);
  std::vector<cached_unit> units;
  for (const auto& unit : resolved->units) {
    auto found = made->find(unit.key);
    if (found == made->end())
      return fail(errc::child_failed, "the compiler gave no answer for unit '" + unit.key + "'");
    units.push_back(found->second);
  }
  auto out = assemble(of.hash, units, false);
  if (out.status != verdict_status::passed)
    return fail(errc::invalid_input,
      fmt::format("{}: {}", to_string(out.status), out.log.substr(0, out.log.find('\n'))));
  return out;
}

result<sanitize_target> sanitize_bench::prepare(const evidence& of) {
  const auto& name = of.attempt.problem;
  const auto found = context_->problems.find(name);
  if (found == context_->problems.end())
    return fail(errc::not_found, "the run's settings name no problem '" + name + "' any more");
  // Another model has other limits, and other code.
  if (const auto was = model_of(of.measured.device); was != context_->device_model)
    return fail(errc::refused,
      fmt::format("it was measured on {}, and {} is another model", of.measured.device, device_));
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
  auto child = make_runner_child(*context_, asked, device_, child_deadline);
  if (!child)
    return pass(child);
  // It goes with the folder of this object.
  child->folder.keep();
  sanitize_target out;
  out.what.programs = context_->programs;
  out.what.folder = child->request.job_directory;
  out.what.device = device_;
  out.same_code = std::all_of(compiled->units.begin(), compiled->units.end(),
    [&](const compiled_unit& unit) { return run_blobs_.has(unit.code); });
  for (const auto& work : found->second.workloads)
    out.workloads.push_back(work.uuid);
  out.what.workloads = out.workloads.size();
  return out;
}

} // namespace gristmill
