#include "actors/run_jobs.hpp"

#include "actors/runner_steps.hpp"

#include "actors/input_cases.hpp"
#include "protocol/child_answers.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr const char* nonce = "0123456789abcdef";

constexpr const char* definition_text = R"({
  "name": "scale", "op_type": "elementwise", "description": "y = alpha x",
  "axes": {"rows": {"type": "var"}},
  "inputs": {"x": {"shape": ["rows", "64"], "dtype": "float32"},
             "alpha": {"shape": null, "dtype": "float32"}},
  "outputs": {"y": {"shape": ["rows", "64"], "dtype": "float32"}},
  "reference": "import torch\n\n\ndef run(x, alpha):\n    return x * alpha\n"})";

constexpr const char* workload_text =
  R"({"uuid":"small","axes":{"rows":4},"inputs":{"x":{"type":"random"},"alpha":{"type":"scalar","value":2.5}}}
{"uuid":"large","axes":{"rows":4096},"inputs":{"x":{"type":"random"},"alpha":{"type":"scalar","value":0.5}}}
)";

/// `defines` goes into the only variant.
std::string plan_text(const std::string& defines = "{}", const std::string& entry = "scale") {
  return fmt::format(R"json({{"schema":"gristmill.plan/1","variants":[{{"defines":{},"steps":[
    {{"op":"launch","entry":"{}","grid":["ceil_div(numel(x),256)",1,1],"block":[256,1,1],
      "args":["x","alpha","y","numel(x):i64"]}}]}}]}})json",
    defines, entry);
}

/// A run with one problem of two workloads, of which the larger one is checked on a shrunken twin.
struct one_problem {
  fs::path folder =
    fs::temp_directory_path() / fmt::format("gristmill-run-jobs-test-{}", ::getpid());
  std::shared_ptr<run_context> context = std::make_shared<run_context>();
  measure_request request;

  one_problem() {
    fs::remove_all(folder);
    fs::create_directories(folder);
    context->directory = folder;
    context->blobs = std::make_shared<blob_store>(*blob_store::open(folder / "blobs"));
    auto made = problem_from_texts("scale", definition_text, workload_text, "");
    REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
    context->problems.emplace("scale", *made);
    context->device_model = "h200";
    context->device_label = "mock:h200";
    context->facts = {132, 232448, 233472, 50 << 20, 90};
    context->check_elements_max = 100'000;
    for (const auto& w : made->workloads)
      for (const auto& set : {data_set{}, clock_set()})
        make_input(w.uuid, set, set == clock_set() ? 4096 : 1 << 20);
    request.attempt = {"scale", "cuda", 1};
    request.under.token = 9;
    propose(plan_text());
  }
  ~one_problem() { fs::remove_all(folder); }
  one_problem(const one_problem&) = delete;
  one_problem& operator=(const one_problem&) = delete;

  void make_input(const std::string& uuid, const data_set& set, size_t bytes = 1 << 20) {
    auto file = input_file(*context, "scale", uuid, "x", set);
    fs::create_directories(file.parent_path());
    std::ofstream{file} << std::string(bytes, 'x');
  }

  result<run_job> job_of() { return build_run_job(*context, request, "mock:h200"); }

  /// The request is for this plan from now on, with every unit compiled.
  void propose(const std::string& plan) {
    auto stored = store_candidate(*context->blobs, "// device code", plan, "k", "", "");
    REQUIRE(stored);
    request.candidate = *stored;
    request.units.clear();
    auto resolved = resolve_candidate(*context, "scale", request.candidate);
    if (!resolved)
      return;
    for (const auto& unit : resolved->units) {
      compiled_unit compiled;
      compiled.key = unit.key;
      compiled.code = *context->blobs->put("// ptx of " + unit.key);
      compiled.entries.push_back({"scale", "_Z5scale"});
      request.units.push_back(compiled);
    }
  }

  failure why_not(const std::string& plan) {
    auto stored = store_candidate(*context->blobs, "// device code", plan, "k", "", "");
    REQUIRE(stored);
    auto resolved = resolve_candidate(*context, "scale", *stored);
    REQUIRE_FALSE(resolved);
    return resolved.error();
  }
};

void job_kind_is_accepted(const run_job& work) {
  job what;
  what.kind = job_kind::run;
  what.nonce = nonce;
  what.run = work;
  auto read = job_from_json(to_json(what));
  CHECK_MESSAGE(read, (read ? "" : read.error().what));
}

std::string line(const std::string& kind, ordered_json body) {
  ordered_json all{{"line", kind}, {"nonce", nonce}};
  for (auto& [key, value] : body.items())
    all[key] = value;
  return all.dump();
}

workload_measurement ran(const std::string& uuid, bool shrunken) {
  workload_measurement w;
  w.uuid = uuid;
  w.status = verdict_status::passed;
  w.time_ns = 1200;
  w.samples_ns = {1200};
  w.bound = "dram";
  w.shrunken = shrunken;
  w.written = {{0, "check"}};
  return w;
}

child_result runner_says(const std::vector<workload_measurement>& all) {
  child_result out;
  out.end = child_end::done;
  for (const auto& w : all)
    out.lines.push_back(line("sample", to_json(w)));
  out.lines.push_back(line("done", ordered_json::object()));
  return out;
}

TEST_SUITE_BEGIN("resolve candidate");

TEST_CASE_FIXTURE(one_problem, "a plan is resolved on every workload, at true and at check size") {
  auto resolved = resolve_candidate(*context, "scale", request.candidate);
  REQUIRE(resolved);
  CHECK(resolved->source == "// device code");
  REQUIRE(resolved->workloads.size() == 2);
  const auto& small = resolved->workloads[0];
  const auto& large = resolved->workloads[1];
  CHECK_FALSE(small.shrunken);
  CHECK(small.check == small.full);
  CHECK(large.shrunken);
  CHECK(large.full.buffers[0].bytes == 4096 * 64 * 4);
  CHECK(large.check.buffers[0].bytes < large.full.buffers[0].bytes);
  CHECK(resolved->units.size() == 1);
}

TEST_CASE_FIXTURE(one_problem, "every unit that a workload needs is there once, ordered by key") {
  propose(R"json({"schema":"gristmill.plan/1","variants":[{"steps":[
    {"op":"launch","entry":"one","when":"rows == 4","grid":[1,1,1],"block":[32,1,1],"args":["x","y"]},
    {"op":"launch","entry":"two","when":"rows != 4","grid":[1,1,1],"block":[32,1,1],"args":["x","y"]}]}]})json");
  auto resolved = resolve_candidate(*context, "scale", request.candidate);
  REQUIRE_MESSAGE(resolved, (resolved ? "" : resolved.error().what));
  REQUIRE(resolved->units.size() == 2);
  CHECK(resolved->units[0].key < resolved->units[1].key);
  for (const auto& w : resolved->workloads) {
    const auto& needed = w.full.unit;
    CHECK((needed == resolved->units[0] || needed == resolved->units[1]));
  }
}

TEST_CASE_FIXTURE(one_problem, "code that only the clock would see is refused") {
  auto why = why_not(plan_text(R"({"ROWS":"rows"})"));
  CHECK(why.code == errc::refused);
  CHECK(why.what.find("large") != std::string::npos);
}

TEST_CASE_FIXTURE(one_problem, "a plan that does not parse, resolve or cover is the author's") {
  for (const auto& plan : {std::string("no json"), plan_text(R"({"N":"no_such_axis"})"),
         std::string(R"({"schema":"gristmill.plan/1","domain":"rows < 100","variants":[{"steps":[
           {"op":"launch","entry":"one","grid":[1,1,1],"block":[32,1,1],"args":["x","y"]}]}]})")}) {
    CAPTURE(plan);
    auto why = why_not(plan);
    CHECK(why.code == errc::invalid_input);
    CHECK(why.what.find("launch plan") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(one_problem, "an unknown problem and a blob that is gone are not_found") {
  CHECK(resolve_candidate(*context, "relu", request.candidate).error().code == errc::not_found);
  auto gone = request.candidate;
  gone.plan.sha256 = std::string(64, 'a');
  CHECK(resolve_candidate(*context, "scale", gone).error().code == errc::not_found);
}

TEST_CASE_FIXTURE(
  one_problem, "a candidate is named by source and plan, not by what is said of it") {
  auto& blobs = *context->blobs;
  auto one = store_candidate(blobs, "a", "b", "k1", "", "h1");
  auto same = store_candidate(blobs, "a", "b", "k2", "p", "h2");
  auto other = store_candidate(blobs, "b", "a", "k1", "", "h1");
  REQUIRE((one && same && other));
  CHECK(one->hash == same->hash);
  CHECK(one->hash != other->hash);
  CHECK(blobs.get(one->source) == "a");
  CHECK(one->key == "k1");
  CHECK(store_candidate(blobs, std::string((1 << 20) + 1, 'x'), "b", "", "", "").error().code
    == errc::invalid_input);
  CHECK(store_candidate(blobs, "a", std::string(65537, 'x'), "", "", "").error().code
    == errc::invalid_input);
}

TEST_CASE_FIXTURE(one_problem, "names from strangers cannot leave the run directory") {
  auto path = context->inputs("../../etc", "../passwd");
  CHECK(path.lexically_normal().string().rfind(folder.string(), 0) == 0);
  CHECK(context->inputs("scale", "a") != context->inputs("scale", "b"));
  CHECK(context->inputs("scale", "a") != context->references("scale", "a"));
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("run job");

TEST_CASE_FIXTURE(one_problem, "a run job has a check and a clock run of every workload") {
  auto job = job_of();
  REQUIRE_MESSAGE(job, (job ? "" : job.error().what));
  CHECK(job->device == "mock:h200");
  CHECK(job->instruction_limit == context->instruction_limit);
  REQUIRE(job->units.size() == 1);
  CHECK(fs::exists(job->units[0].file));
  REQUIRE(job->workloads.size() == 2);
  const auto& large = job->workloads[1];
  REQUIRE(large.cases.size() == 1);
  CHECK(large.has_clock);
  CHECK(large.shrunken);
  const auto& in = large.cases[0].pass.buffers[0];
  CHECK(in.file == input_file(*context, "scale", "large", "x", {}).string());
  CHECK(in.file_bytes == in.what.bytes);
  const auto& pattern = large.clock.buffers[0];
  CHECK(pattern.file_bytes == 4096);
  CHECK(pattern.what.bytes == 4096 * 64 * 4);
  CHECK(large.cases[0].pass.buffers[1].file == output_file("large", "y"));
  CHECK(large.clock.buffers[1].file.empty());
}

TEST_CASE_FIXTURE(one_problem, "every set of the pool is a case with files of its own") {
  context->rounds = 3;
  for (const char* uuid : {"small", "large"})
    for (const char* set : {"1", "2"})
      make_input(uuid, {{}, set});
  auto job = job_of();
  REQUIRE_MESSAGE(job, (job ? "" : job.error().what));
  const auto& small = job->workloads[0];
  REQUIRE(small.cases.size() == 3);
  CHECK(small.cases[2].label == "set 2");
  CHECK(small.timed_on.empty()); // A model's clock has inputs of its own.
  for (size_t buffer : {0, 1})
    CHECK(small.cases[1].pass.buffers[buffer].file != small.cases[2].pass.buffers[buffer].file);
  fs::remove(input_file(*context, "scale", "large", "x", {{}, "2"}));
  auto lost = job_of();
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == errc::not_found);
}

TEST_CASE_FIXTURE(one_problem, "a real device times calls on the sets that have the true shapes") {
  context->measured = true;
  context->rounds = 2;
  context->samples = 50;
  context->flush = "clean";
  for (const char* uuid : {"small", "large"})
    make_input(uuid, {{}, "1"});
  auto job = build_run_job(*context, request, "cuda:1");
  REQUIRE_MESSAGE(job, (job ? "" : job.error().what));
  CHECK(job->device == "cuda:1");
  CHECK(job->samples == 50);
  CHECK(job->timing.flush == "clean");
  CHECK(job->timing.written_share > 0);
  const auto& small = job->workloads[0];
  CHECK(small.timed_on == std::vector<uint32_t>{0, 1});
  CHECK(small.clock.buffers[0].file == small.cases[0].pass.buffers[0].file);
  CHECK(job->workloads[1].shrunken);
  CHECK(job->workloads[1].timed_on.empty());
  job_kind_is_accepted(*job);
  request.under.token = 10;
  CHECK_FALSE(build_run_job(*context, request, "cuda:1")->timing.order == job->timing.order);
}

TEST_CASE_FIXTURE(
  one_problem, "a promotion runs the cases of its draw, and the incumbent beside it") {
  const std::string draw = "scale/cuda/1#1";
  request.purpose = measure_purpose::promotion;
  request.draw = draw;
  auto resolved = resolve_candidate(*context, "scale", request.candidate);
  REQUIRE(resolved);
  const auto& of = context->problems.at("scale");
  size_t made = 0;
  for (const auto& work : of.workloads) {
    auto cases = draw_cases(*context, of, work, draw, *resolved);
    REQUIRE(cases);
    for (const auto& one : *cases) {
      make_input(work.uuid, one.what.set);
      // The reference of one was not to be had.
      if (one.what.label == "held-out, tiny values")
        continue;
      auto file = reference_file(*context, "scale", work.uuid, "y", one.what.set);
      fs::create_directories(file.parent_path());
      std::ofstream{file} << "a reference";
      made += work.uuid == "small" ? 1 : 0;
    }
  }
  const auto mine = request;
  propose(plan_text(R"({"OLD":1})"));
  const rival other{request.candidate, request.units};
  request = mine;
  request.against = other;
  for (bool real : {false, true}) {
    CAPTURE(real);
    context->measured = real;
    auto job = build_run_job(*context, request, real ? "cuda:0" : "mock:h200");
    REQUIRE_MESSAGE(job, (job ? "" : job.error().what));
    const auto& small = job->workloads[0];
    CHECK(small.cases.size() == made);
    CHECK(small.cases[0].label == "fresh 0");
    CHECK(small.timed_on == (real ? std::vector<uint32_t>{0} : std::vector<uint32_t>{}));
    REQUIRE(job->against.size() == 1);
    CHECK(job->blocks > 0);
    const auto& beside = job->against[0].workloads[0];
    CHECK(beside.cases.size() == (real ? 1 : 0)); // Only what it is timed on.
    CHECK(beside.clock.unit != small.clock.unit);
    job_kind_is_accepted(*job);
    judge_request judge;
    judge.attempt = request.attempt;
    judge.candidate = request.candidate;
    judge.purpose = request.purpose;
    judge.draw = draw;
    judge.measured.output_folder = "/jobs/runner-1";
    judge.measured.workloads = {ran("small", false)};
    auto& written = judge.measured.workloads[0].written;
    written.clear();
    for (uint32_t i = 0; i < small.cases.size(); ++i)
      written.push_back({i, "check"});
    written.push_back({0, "timed 17"});
    auto judged = build_judge_job(*context, judge);
    REQUIRE_MESSAGE(judged, (judged ? "" : judged.error().what));
    const auto& calls = judged->workloads[0].calls;
    REQUIRE(calls.size() == made + 1);
    CHECK(calls.back().label == "fresh 0, timed 17");
    CHECK(calls.back().outputs[0].reference_file == calls.front().outputs[0].reference_file);
    CHECK(calls.back().outputs[0].solution.file != calls.front().outputs[0].solution.file);
    for (const auto& call : calls)
      CHECK(call.nan_positions == (call.label == "held-out, rows with NaN"));
  }
}

TEST_CASE_FIXTURE(one_problem, "the job is one that a child accepts") {
  auto work = job_of();
  REQUIRE(work);
  job what;
  what.kind = job_kind::run;
  what.nonce = nonce;
  what.run = *work;
  auto read = job_from_json(to_json(what));
  CHECK_MESSAGE(read, (read ? "" : read.error().what));
}

TEST_CASE_FIXTURE(one_problem, "fill differs between attempts and is the same in a second run") {
  auto first = job_of();
  request.under.token = 77;
  auto again = job_of();
  request.attempt.ordinal = 2;
  auto other = job_of();
  REQUIRE((first && again && other));
  CHECK(first->fill == again->fill);
  CHECK_FALSE(first->fill == other->fill);
}

TEST_CASE_FIXTURE(one_problem, "units that are missing or gone are named") {
  auto units = request.units;
  request.units.clear();
  auto why = job_of();
  REQUIRE_FALSE(why);
  CHECK(why.error().code == errc::invalid_input);
  units[0].code.sha256 = std::string(64, 'a');
  request.units = units;
  CHECK(job_of().error().code == errc::not_found);
}

TEST_CASE_FIXTURE(one_problem, "an input that nobody made is named") {
  fs::remove(input_file(*context, "scale", "large", "x", clock_set()));
  auto why = job_of();
  REQUIRE_FALSE(why);
  CHECK(why.error().code == errc::not_found);
  CHECK(why.error().what.find("workload large: input 'x'") != std::string::npos);
}

TEST_CASE_FIXTURE(
  one_problem, "what the runner says becomes a measurement, in the problem's order") {
  auto m = read_run_result(
    *context, request, nonce, runner_says({ran("large", true), ran("small", false)}));
  CHECK(m.failure_text.empty());
  CHECK(m.origin == time_origin::modelled);
  CHECK(m.device == "mock:h200");
  REQUIRE(m.workloads.size() == 2);
  CHECK(m.workloads[0].uuid == "small");
  CHECK(m.workloads[1].uuid == "large");
  CHECK(m.workloads[1].time_ns == 1200);
}

TEST_CASE_FIXTURE(
  one_problem, "a fault or an endless kernel is the candidate's, workload by workload") {
  auto faulty = ran("small", false);
  faulty.status = verdict_status::runtime_error;
  faulty.time_ns = 0;
  faulty.detail = "out of bounds, PTX line 41";
  auto endless = ran("large", true);
  endless.status = verdict_status::timeout;
  endless.time_ns = 0;
  auto m = read_run_result(*context, request, nonce, runner_says({faulty, endless}));
  CHECK(m.failure_text.empty());
  CHECK(m.workloads[0].status == verdict_status::runtime_error);
  CHECK(m.workloads[0].detail == "out of bounds, PTX line 41");
  CHECK(m.workloads[1].status == verdict_status::timeout);
}

TEST_CASE_FIXTURE(one_problem, "a runner that broke off has measured nothing") {
  auto died = runner_says({ran("small", false)});
  died.lines.pop_back();
  died.end = child_end::no_done;
  died.status = 128 + 9;
  auto late = died;
  late.end = child_end::deadline;
  for (const auto& how : {died, late}) {
    auto m = read_run_result(*context, request, nonce, how);
    CHECK(m.origin == time_origin::none);
    REQUIRE(m.workloads.size() == 2);
    for (const auto& w : m.workloads)
      CHECK(w.status == verdict_status::infrastructure);
    CHECK_FALSE(m.failure_text.empty());
  }
  CHECK(read_run_result(*context, request, nonce, died).failure_text.find("signal 9")
    != std::string::npos);
}

TEST_CASE_FIXTURE(one_problem, "an answer that is not plausible has measured nothing") {
  auto no_time = ran("small", false);
  no_time.time_ns = 0;
  auto claims = ran("small", false);
  claims.status = verdict_status::incorrect_numerical;
  auto unchecked = ran("small", false);
  unchecked.written.clear();
  auto twice = ran("small", false);
  twice.written.push_back({0, "check"});
  auto beyond = ran("small", false);
  beyond.written.push_back({1, "timed 3"});
  auto elsewhere = ran("small", false);
  elsewhere.written.push_back({0, "timed ../../secret"});
  auto large = ran("large", true);
  const std::vector<std::pair<std::string, child_result>> lies = {
    {"one is missing", runner_says({large})},
    {"one comes twice", runner_says({ran("small", false), ran("small", false), large})},
    {"one is unknown", runner_says({ran("small", false), large, ran("other", false)})},
    {"no time", runner_says({no_time, large})},
    {"a judge's status", runner_says({claims, large})},
    {"no case was checked", runner_says({unchecked, large})},
    {"a case was checked twice", runner_says({twice, large})},
    {"there is no such case", runner_says({beyond, large})},
    {"a file elsewhere", runner_says({elsewhere, large})},
    {"not shrunken", runner_says({ran("small", false), ran("large", false)})},
    {"nothing", runner_says({})},
  };
  for (const auto& [what, said] : lies) {
    CAPTURE(what);
    auto m = read_run_result(*context, request, nonce, said);
    CHECK(m.failure_text.rfind("runner: ", 0) == 0);
    for (const auto& w : m.workloads)
      CHECK(w.status == verdict_status::infrastructure);
  }
  auto said = runner_says({ran("small", false), large});
  CHECK(read_run_result(*context, request, nonce, said).failure_text.empty());
  CHECK_FALSE(read_run_result(*context, request, "another nonce, 16", said).failure_text.empty());
  request.attempt.problem = "relu";
  CHECK(
    read_run_result(*context, request, nonce, said).failure_text.find("relu") != std::string::npos);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("judge job");

TEST_CASE_FIXTURE(one_problem, "the judge gets the outputs of what ran to its end, at check size") {
  judge_request judge;
  judge.attempt = request.attempt;
  judge.candidate = request.candidate;
  judge.measured.output_folder = "/jobs/runner-1";
  auto faulty = ran("small", false);
  faulty.status = verdict_status::runtime_error;
  judge.measured.workloads = {faulty, ran("large", true)};
  auto job = build_judge_job(*context, judge);
  REQUIRE(job);
  REQUIRE(job->workloads.size() == 1);
  const auto& w = job->workloads[0];
  CHECK(w.uuid == "large");
  CHECK(w.shrunken);
  REQUIRE(w.calls.at(0).outputs.size() == 1);
  CHECK(w.calls.at(0).outputs[0].solution.file == "/jobs/runner-1/" + output_file("large", "y"));
  CHECK(w.calls.at(0).outputs[0].reference_file
    == reference_file(*context, "scale", "large", "y", {}).string());
  auto resolved = resolve_candidate(*context, "scale", request.candidate);
  REQUIRE(resolved);
  CHECK(w.calls.at(0).outputs[0].solution.bytes == resolved->workloads[1].check.buffers[1].bytes);
}

TEST_CASE_FIXTURE(
  one_problem, "a judge job without outputs or for an unknown workload is refused") {
  judge_request judge;
  judge.attempt = request.attempt;
  judge.candidate = request.candidate;
  judge.measured.workloads = {ran("small", false)};
  CHECK(build_judge_job(*context, judge).error().code == errc::invalid_input);
  judge.measured.output_folder = "/jobs/runner-1";
  judge.measured.workloads = {ran("other", false)};
  CHECK(build_judge_job(*context, judge).error().code == errc::not_found);
  judge.measured.workloads.clear();
  CHECK(build_judge_job(*context, judge)->workloads.empty());
  judge.attempt.problem = "relu";
  CHECK(build_judge_job(*context, judge).error().code == errc::not_found);
}

TEST_CASE("the judge's counts are read, and nothing less than all of them") {
  workload_evaluation judged;
  judged.uuid = "small";
  judged.status = verdict_status::passed;
  child_result said;
  said.end = child_end::done;
  said.lines = {line("sample", to_json(judged)), line("done", ordered_json::object())};
  auto read = read_judge_result(said, nonce);
  REQUIRE(read);
  REQUIRE(read->workloads.size() == 1);
  CHECK(read->workloads[0].status == verdict_status::passed);
  CHECK(read_judge_result(said, "another nonce, 16").error().code == errc::child_failed);
  said.end = child_end::no_done;
  said.status = 128 + 9;
  CHECK(read_judge_result(said, nonce).error().code == errc::child_failed);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("runner steps");

TEST_CASE_FIXTURE(
  one_problem, "the folder of a job stays for the judge, and goes when there is none") {
  auto steps = runner_steps(context, "mock:h200");
  auto child = steps.begin(request, 30s);
  REQUIRE_MESSAGE(child, (child ? "" : child.error().what));
  CHECK(child->deadline == 30s);
  CHECK(fs::exists(fs::path(child->job_directory) / "job.json"));
  child_result ended = runner_says({});
  for (auto& w : {ran("small", false), ran("large", true)})
    ended.lines.insert(ended.lines.begin(), line("sample", to_json(w)));
  // The child was given its own nonce.
  for (auto& l : ended.lines)
    l.replace(l.find(nonce), std::string(nonce).size(), child->nonce);
  auto measured = steps.end(request, *child, ended);
  CHECK(measured.failure_text.empty());
  CHECK(measured.output_folder == child->job_directory);
  CHECK(fs::exists(measured.output_folder));

  auto second = steps.begin(request, 30s);
  REQUIRE(second);
  CHECK(second->job_directory != child->job_directory);
  CHECK(second->nonce != child->nonce);
  child_result died;
  died.end = child_end::no_done;
  CHECK(steps.end(request, *second, died).output_folder.empty());
  CHECK_FALSE(fs::exists(second->job_directory));
}

TEST_CASE_FIXTURE(
  one_problem, "a probe's command has a folder of its own for as long as it is kept") {
  auto steps = runner_steps(context, "mock:h200");
  auto child = steps.command({"gristmill-runner", "--canary", "mock:h200"}, 7s);
  REQUIRE(child);
  CHECK(child->request.argv.at(1) == "--canary");
  CHECK(child->request.deadline == 7s);
  CHECK(child->request.profile == child_profile::runner);
  CHECK_FALSE(child->request.nonce.empty());
  auto made = child->request.job_directory;
  CHECK(fs::is_directory(made));
  auto second = steps.command({"gristmill-runner"}, 7s);
  REQUIRE(second);
  CHECK(second->request.id != child->request.id);
  child->folder.reset();
  CHECK_FALSE(fs::exists(made));
}

TEST_CASE_FIXTURE(one_problem, "a job that cannot be made leaves no folder behind") {
  request.units.clear();
  CHECK_FALSE(runner_steps(context, "mock:h200").begin(request, 30s));
  CHECK_FALSE(fs::exists(context->jobs()));
}

TEST_SUITE_END();

} // namespace

TEST_SUITE_BEGIN("probe");

TEST_CASE_FIXTURE(one_problem, "a probe runs its workloads and no others, in the problem's order") {
  request.workloads = {"large"};
  auto work = job_of();
  REQUIRE(work);
  REQUIRE(work->workloads.size() == 1);
  CHECK(work->workloads[0].uuid == "large");
  request.workloads = {"large", "small"};
  work = job_of();
  REQUIRE(work);
  CHECK(work->workloads[0].uuid == "small");
  CHECK(work->workloads.size() == 2);
}

TEST_CASE_FIXTURE(one_problem, "a probe of a workload that the problem has not is an error") {
  for (std::vector<std::string> asked :
    {std::vector<std::string>{"lrage"}, std::vector<std::string>{"small", "small"}}) {
    request.workloads = asked;
    auto why = job_of();
    REQUIRE_FALSE(why);
    CHECK(why.error().code == errc::invalid_input);
    CHECK(why.error().what.find(asked[0]) != std::string::npos);
    CHECK_FALSE(read_run_result(*context, request, nonce, runner_says({})).failure_text.empty());
  }
}

TEST_CASE_FIXTURE(one_problem, "a probe is answered for its workloads, no more and no less") {
  request.workloads = {"small"};
  auto m = read_run_result(*context, request, nonce, runner_says({ran("small", false)}));
  CHECK(m.failure_text.empty());
  REQUIRE(m.workloads.size() == 1);
  CHECK(m.workloads[0].uuid == "small");
  for (const auto& said : {runner_says({}), runner_says({ran("small", false), ran("large", true)})})
    CHECK_FALSE(read_run_result(*context, request, nonce, said).failure_text.empty());
}

TEST_SUITE_END();
