#include "cli/integrity_bench.hpp"

#include "actors/child_job.hpp"
#include "actors/prepare_jobs.hpp"
#include "actors/run_jobs.hpp"
#include "actors/verdict_evidence.hpp"
#include "cli/run_setup.hpp"
#include "kernels/builtin.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <thread>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// So many sets of inputs show an answer that was kept or guessed.
constexpr uint32_t sets = 3;

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
  setup->context.rounds = sets;
  setup->context.promote = true;
  std::unique_ptr<integrity_bench> out(new integrity_bench);
  out->folder_ = folder;
  auto bench = candidate_bench::open(
    std::move(*setup), gpus, parallel_children(std::max(1u, std::thread::hardware_concurrency())));
  if (!bench)
    return pass(bench);
  out->bench_ = std::move(*bench);
  if (auto done = out->prepare(); !done)
    return pass(done);
  return out;
}

integrity_bench::~integrity_bench() {
  bench_.reset();
  std::error_code error; // What stays behind lies in the folder of temporary files.
  fs::remove_all(folder_, error);
}

std::string integrity_bench::circumstances() const {
  return bench_->device() + ", " + bench_->compiler().version;
}

result<void> integrity_bench::prepare() {
  for (const auto& [name, target] : context().problems)
    if (auto done = prepare(name); !done)
      return fail(done.error().code, name + ": " + done.error().what);
  return {};
}

result<void> integrity_bench::prepare(const std::string& problem_name) {
  const auto& target = context().problems.find(problem_name)->second;
  if (auto made = make_data_folders(context(), target); !made)
    return made;
  auto work = build_prepare_job(context(), target);
  if (!work)
    return pass(work);
  auto prepared = bench_->prepare(target, std::move(*work));
  if (!prepared)
    return pass(prepared);
  for (const auto& w : prepared->workloads) {
    workload_yardstick bounds;
    bounds.uuid = w.uuid;
    bounds.floor_ns = w.floor_ns;
    bounds.physical_ns = physical_floor_of(context(), problem_name, w.uuid);
    yardsticks_[problem_name].push_back(bounds);
  }
  return {};
}

result<std::string> integrity_bench::draw_for(
  const candidate_ref& candidate, const std::string& problem_name) {
  auto resolved = resolve_candidate(context(), problem_name, candidate);
  if (!resolved)
    return pass(resolved);
  std::lock_guard guard(drawing_);
  const auto of = problem_name + "/" + resolved->parsed.domain.text();
  if (auto known = draws_.find(of); known != draws_.end())
    return known->second;
  const auto& target = context().problems.find(problem_name)->second;
  const auto draw = fmt::format("integrity/{}", draws_.size());
  if (auto made = make_data_folders(context(), target, draw); !made)
    return pass(made);
  auto work = build_draw_job(context(), target, draw, candidate);
  if (!work)
    return pass(work);
  job what;
  what.kind = job_kind::prepare;
  what.prepare = std::move(*work);
  auto child = make_child_job(
    context(), child_profile::oracle, "gristmill-oracle", std::move(what), bench_child_deadline);
  if (!child)
    return pass(child);
  const auto ended = bench_->wait_for(child->request);
  auto drawn = finish_draw(context(), target, draw, candidate, ended, child->request.nonce);
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
  auto resolved = resolve_candidate(context(), problem_name, of);
  if (!resolved) {
    if (resolved.error().code == errc::io_failed || resolved.error().code == errc::not_found)
      return pass(resolved);
    refused.log = resolved.error().what;
    return refused;
  }
  return bench_->compile(*resolved, of.hash);
}

result<evidence> integrity_bench::measure(const attempt_id& attempt, const candidate_ref& of,
  const compiled_candidate& compiled, const std::string& draw) {
  std::unique_lock device_turn(device_in_use_, std::defer_lock);
  if (context().measured)
    device_turn.lock();
  measure_request asked;
  asked.attempt = attempt;
  asked.candidate = of;
  asked.units = compiled.units;
  asked.purpose = draw.empty() ? measure_purpose::screen : measure_purpose::promotion;
  asked.draw = draw;
  {
    const auto guard = bench_->lock_stores();
    asked.under.token = ++token_;
  }
  auto child = make_runner_child(context(), asked, bench_->device(), bench_child_deadline);
  if (!child)
    return pass(child);
  const auto ended = bench_->wait_for(child->request);
  judge_request given;
  given.attempt = attempt;
  given.kind = attempt_kind::planted;
  given.candidate = of;
  given.purpose = asked.purpose;
  given.draw = draw;
  given.measured = read_run_result(context(), asked, child->request.nonce, ended);
  if (device_turn.owns_lock())
    device_turn.unlock();
  if (!given.measured.failure_text.empty())
    return fail(errc::child_failed, given.measured.failure_text);
  given.measured.output_folder = child->folder.path();
  // As a worker does: what the checks of the code found belongs to what the verdict rests on.
  given.measured.findings.insert(
    given.measured.findings.end(), compiled.findings.begin(), compiled.findings.end());
  auto to_judge = build_judge_job(context(), given);
  if (!to_judge)
    return pass(to_judge);
  evaluation judged;
  if (!to_judge->workloads.empty()) {
    job other;
    other.kind = job_kind::judge;
    other.judge = std::move(*to_judge);
    auto judge = make_child_job(
      context(), child_profile::judge, "gristmill-judge", std::move(other), bench_child_deadline);
    if (!judge)
      return pass(judge);
    auto read = read_judge_result(bench_->wait_for(judge->request), judge->request.nonce);
    if (!read)
      return pass(read);
    judged = std::move(*read);
  }
  auto out =
    evidence_of(context(), given, judged, yardsticks_.at(attempt.problem), attempt.ordinal, 0);
  out.toolchain = bench_->compiler().version;
  out.measured.output_folder.clear();
  return out;
}

bench_outcome integrity_bench::run(const corpus_candidate& what) {
  bench_outcome out;
  attempt_id attempt{what.problem, "cuda", 0};
  candidate_ref candidate;
  {
    const auto guard = bench_->lock_stores();
    attempt.ordinal = ++ordinals_[what.problem];
    auto stored = store_candidate(
      *context().blobs, what.source, what.plan_text, "corpus/" + what.name, "", "of the corpus");
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
