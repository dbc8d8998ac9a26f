#include "cli/integrity_bench.hpp"

#include "actors/candidate.hpp"
#include "actors/child_job.hpp"
#include "actors/compile_jobs.hpp"
#include "actors/prepare_jobs.hpp"
#include "actors/run_jobs.hpp"
#include "actors/verdict_evidence.hpp"
#include "cli/run_setup.hpp"
#include "kernels/builtin.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <future>
#include <thread>

namespace gristmill {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// So many sets of inputs show an answer that was kept or guessed.
constexpr uint32_t sets = 3;
constexpr auto child_deadline = 5min;

std::string workload_line(
  const corpus_problem& of, const corpus_workload& work, size_t index, const definition& def) {
  ordered_json line;
  for (const auto& [name, value] : work.axes)
    line["axes"][name] = value;
  for (const auto& spec : def.inputs)
    line["inputs"][spec.name] = {{"type", "random"}};
  line["uuid"] = fmt::format("{}-{}", of.name, index);
  line["tolerance"] = {{"max_atol", work.atol}, {"max_rtol", work.rtol},
    {"required_matched_ratio", work.matched_ratio}};
  return line.dump() + "\n";
}

/// The corpus's workloads in place of the problem's own.
result<problem> small_problem(const corpus_problem& of) {
  auto out = builtin_problem(of.name);
  if (!out)
    return out;
  std::string lines;
  for (size_t i = 0; i < of.workloads.size(); ++i)
    lines += workload_line(of, of.workloads[i], i, out->def);
  return problem_from_texts(of.name, out->definition_text, lines, out->graph_json);
}

std::array<uint32_t, 5> parallel_children(uint32_t cores) {
  return {cores, cores, cores, cores, 1};
}

} // namespace

result<std::unique_ptr<integrity_bench>> integrity_bench::open(const hack_catalogue& catalogue,
  const std::string& gpus, const std::string& toolchain, const fs::path& folder) {
  run_settings settings;
  settings.gpus = gpus;
  settings.toolchain = toolchain;
  settings.out = folder.string();
  settings.seed = 1;
  settings.oracle = "native";
  for (const auto& each : catalogue.problems)
    settings.problems.push_back(each.name);
  auto setup = make_run_setup(settings);
  if (!setup)
    return pass(setup);
  for (const auto& each : catalogue.problems) {
    auto small = small_problem(each);
    if (!small)
      return pass(small);
    setup->context.problems[each.name] = std::move(*small);
  }
  const auto now =
    std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  if (auto made = open_run_directory(*setup, now); !made)
    return pass(made);
  setup->context.rounds = sets;
  setup->context.promote = true;
  std::unique_ptr<integrity_bench> out(new integrity_bench);
  out->folder_ = folder;
  out->device_ = setup->devices.front().what == device_group::kind::cuda
    ? gpus
    : "mock:" + setup->context.device_model;
  out->compiler_ = setup->compiler;
  out->context_ = std::make_shared<const run_context>(std::move(setup->context));
  child_loop_limits limits;
  limits.program_folder = out->context_->programs.string();
  limits.parallel = parallel_children(std::max(1u, std::thread::hardware_concurrency()));
  out->children_ = std::make_unique<child_loop>(std::move(limits));
  if (auto done = out->prepare(); !done)
    return pass(done);
  return out;
}

integrity_bench::~integrity_bench() {
  if (children_)
    children_->stop();
  std::error_code error; // What stays behind lies in the folder of temporary files.
  fs::remove_all(folder_, error);
}

std::string integrity_bench::circumstances() const {
  return device_ + ", " + compiler_.version;
}

child_result integrity_bench::wait_for(const child_request& request) {
  std::promise<child_result> promise;
  auto answer = promise.get_future();
  auto sent =
    children_->submit(request, [&](child_result ended) { promise.set_value(std::move(ended)); });
  if (sent)
    return answer.get();
  child_result out;
  out.id = request.id;
  out.end = child_end::could_not_start;
  out.log = sent.error().what;
  return out;
}

result<void> integrity_bench::prepare() {
  for (const auto& [name, target] : context_->problems)
    if (auto done = prepare(name); !done)
      return fail(done.error().code, name + ": " + done.error().what);
  return {};
}

result<void> integrity_bench::prepare(const std::string& problem_name) {
  const auto& target = context_->problems.find(problem_name)->second;
  if (auto made = make_data_folders(*context_, target); !made)
    return made;
  auto work = build_prepare_job(*context_, target);
  if (!work)
    return pass(work);
  job what;
  what.kind = job_kind::prepare;
  what.prepare = std::move(*work);
  auto child = make_child_job(
    *context_, child_profile::oracle, "gristmill-oracle", std::move(what), child_deadline);
  if (!child)
    return pass(child);
  const auto ended = wait_for(child->request);
  auto prepared =
    finish_prepare(*context_, target, ended, child->request.nonce, child->folder.path());
  if (!prepared)
    return pass(prepared);
  if (prepared->status != verdict_status::passed)
    return fail(errc::child_failed, prepared->reason);
  for (const auto& w : prepared->workloads) {
    workload_yardstick bounds;
    bounds.uuid = w.uuid;
    bounds.floor_ns = w.floor_ns;
    bounds.physical_ns = physical_floor_of(*context_, problem_name, w.uuid);
    yardsticks_[problem_name].push_back(bounds);
  }
  return {};
}

result<std::string> integrity_bench::draw_for(
  const candidate_ref& candidate, const std::string& problem_name) {
  auto resolved = resolve_candidate(*context_, problem_name, candidate);
  if (!resolved)
    return pass(resolved);
  std::lock_guard guard(drawing_);
  const auto of = problem_name + "/" + resolved->parsed.domain.text();
  if (auto known = draws_.find(of); known != draws_.end())
    return known->second;
  const auto& target = context_->problems.find(problem_name)->second;
  const auto draw = fmt::format("integrity/{}", draws_.size());
  if (auto made = make_data_folders(*context_, target, draw); !made)
    return pass(made);
  auto work = build_draw_job(*context_, target, draw, candidate);
  if (!work)
    return pass(work);
  job what;
  what.kind = job_kind::prepare;
  what.prepare = std::move(*work);
  auto child = make_child_job(
    *context_, child_profile::oracle, "gristmill-oracle", std::move(what), child_deadline);
  if (!child)
    return pass(child);
  const auto ended = wait_for(child->request);
  auto drawn = finish_draw(*context_, target, draw, candidate, ended, child->request.nonce);
  if (!drawn)
    return pass(drawn);
  if (drawn->status != verdict_status::passed)
    return fail(errc::child_failed, drawn->reason);
  draws_[of] = draw;
  return draw;
}

result<compiled_candidate> integrity_bench::compile(
  const std::string& problem_name, const candidate_ref& of) {
  compiled_candidate refused;
  refused.candidate = of.hash;
  auto resolved = resolve_candidate(*context_, problem_name, of);
  if (!resolved) {
    if (resolved.error().code == errc::io_failed || resolved.error().code == errc::not_found)
      return pass(resolved);
    refused.log = resolved.error().what;
    return refused;
  }
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
  std::lock_guard guard(stores_);
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
  return assemble(of.hash, units, false);
}

result<evidence> integrity_bench::measure(const attempt_id& attempt, const candidate_ref& of,
  const compiled_candidate& compiled, const std::string& draw) {
  std::unique_lock device_turn(device_in_use_, std::defer_lock);
  if (context_->measured)
    device_turn.lock();
  measure_request asked;
  asked.attempt = attempt;
  asked.candidate = of;
  asked.units = compiled.units;
  asked.purpose = draw.empty() ? measure_purpose::screen : measure_purpose::promotion;
  asked.draw = draw;
  {
    std::lock_guard guard(stores_);
    asked.under.token = ++token_;
  }
  auto child = make_runner_child(*context_, asked, device_, child_deadline);
  if (!child)
    return pass(child);
  const auto ended = wait_for(child->request);
  judge_request given;
  given.attempt = attempt;
  given.kind = attempt_kind::planted;
  given.candidate = of;
  given.purpose = asked.purpose;
  given.draw = draw;
  given.measured = read_run_result(*context_, asked, child->request.nonce, ended);
  if (device_turn.owns_lock())
    device_turn.unlock();
  if (!given.measured.failure_text.empty())
    return fail(errc::child_failed, given.measured.failure_text);
  given.measured.output_folder = child->folder.path();
  // As a worker does: what the checks of the code found belongs to what the verdict rests on.
  given.measured.findings.insert(
    given.measured.findings.end(), compiled.findings.begin(), compiled.findings.end());
  auto to_judge = build_judge_job(*context_, given);
  if (!to_judge)
    return pass(to_judge);
  evaluation judged;
  if (!to_judge->workloads.empty()) {
    job other;
    other.kind = job_kind::judge;
    other.judge = std::move(*to_judge);
    auto judge = make_child_job(
      *context_, child_profile::judge, "gristmill-judge", std::move(other), child_deadline);
    if (!judge)
      return pass(judge);
    auto read = read_judge_result(wait_for(judge->request), judge->request.nonce);
    if (!read)
      return pass(read);
    judged = std::move(*read);
  }
  auto out =
    evidence_of(*context_, given, judged, yardsticks_.at(attempt.problem), attempt.ordinal, 0);
  out.toolchain = compiler_.version;
  out.measured.output_folder.clear();
  return out;
}

bench_outcome integrity_bench::run(const corpus_candidate& what) {
  bench_outcome out;
  attempt_id attempt{what.problem, "cuda", 0};
  candidate_ref candidate;
  {
    std::lock_guard guard(stores_);
    attempt.ordinal = ++ordinals_[what.problem];
    auto stored = store_candidate(
      *context_->blobs, what.source, what.plan_text, "corpus/" + what.name, "", "of the corpus");
    if (!stored) {
      out.trouble = stored.error().what;
      return out;
    }
    candidate = *stored;
  }
  auto compiled = compile(what.problem, candidate);
  if (!compiled) {
    out.trouble = compiled.error().what;
    return out;
  }
  if (compiled->status != verdict_status::passed) {
    out.refused =
      to_string(compiled->status) + ": " + compiled->log.substr(0, compiled->log.find('\n'));
    return out;
  }
  const auto measured = [&](const std::string& draw) {
    auto seen = measure(attempt, candidate, *compiled, draw);
    if (seen)
      out.seen.push_back(std::move(*seen));
    else
      out.trouble = seen.error().what;
    return static_cast<bool>(seen);
  };
  if (!measured({}))
    return out;
  // Only what passes is promoted, and so drawn for.
  if (decide(out.seen.front()).decided.status != verdict_status::passed)
    return out;
  auto draw = draw_for(candidate, what.problem);
  if (!draw) {
    out.trouble = draw.error().what;
    return out;
  }
  measured(*draw);
  return out;
}

} // namespace gristmill
