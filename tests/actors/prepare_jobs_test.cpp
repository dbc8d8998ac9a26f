#include "actors/prepare_jobs.hpp"

#include "actors/candidate.hpp"
#include "actors/input_cases.hpp"
#include "actors/input_numbers.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

using namespace gristmill;
namespace fs = std::filesystem;

namespace {

/// x from `kind`, a number k from `number_kind`; M may be reduced for the check.
struct prepared_fixture {
  temporary_folder folder;
  run_context context;

  prepared_fixture() {
    context.directory = folder.path / "run";
    context.blobs = std::make_shared<blob_store>(*blob_store::open(folder.path / "blobs"));
    context.secret.fill(7);
    context.oracle = "auto";
    context.python = "/usr/bin/python3";
    context.facts = {132, 232448, 233472, 50 << 20, 90};
    context.check_elements_max = 100'000;
    context.floor_bytes_per_second = 1'000'000'000'000;
    context.floor_flops_per_second = 1'000'000'000'000;
  }

  problem make(const std::string& inputs, int64_t rows = 4, const std::string& entry = "") {
    auto def = ordered_json::parse(R"({"name": "p", "axes": {"M": {"type": "var"}},
      "inputs": {"x": {"shape": ["M", "64"], "dtype": "float32"},
                 "k": {"shape": null, "dtype": "int32"}},
      "outputs": {"y": {"shape": ["M", "64"], "dtype": "float32"}}})");
    if (!entry.empty())
      def["custom_inputs_entrypoint"] = entry;
    def["reference"] = "def make(axes_and_scalars, device):\n    return {}\n"
                       "def run(x, k):\n    return x * k\n";
    const auto work =
      ordered_json{{"uuid", "w"}, {"axes", {{"M", rows}}}, {"inputs", ordered_json::parse(inputs)}}
        .dump();
    auto made = problem_from_texts("p", def.dump(), work + "\n", "");
    REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
    return *made;
  }

  prepare_workload job_of(const problem& target) {
    auto job = build_prepare_job(context, target);
    REQUIRE_MESSAGE(job, (job ? "" : job.error().what));
    REQUIRE(job->workloads.size() == 1);
    // It is one that a child accepts.
    gristmill::job all;
    all.kind = job_kind::prepare;
    all.nonce = "0123456789abcdef";
    all.prepare = *job;
    auto read = job_from_json(to_json(all));
    CHECK_MESSAGE(read, (read ? "" : read.error().what));
    return job->workloads[0];
  }
};

constexpr const char* blob_inputs =
  R"({"x": {"type": "safetensors", "path": "data/x.st", "tensor_key": "k0"},
      "k": {"type": "scalar", "value": 3}})";
constexpr const char* custom_inputs = R"({"x": {"type": "custom"}, "k": {"type": "custom"}})";

/// What an oracle's child says for the only workload.
child_result oracle_says(const prepare_answer& answer) {
  child_result out;
  out.end = child_end::done;
  const auto line = [](const char* kind, ordered_json body) {
    ordered_json all{{"line", kind}, {"nonce", "0123456789abcdef"}};
    for (auto& [key, value] : body.items())
      all[key] = value;
    return all.dump();
  };
  out.lines = {line("sample", to_json(answer)), line("done", ordered_json::object())};
  return out;
}

} // namespace

TEST_CASE_FIXTURE(prepared_fixture, "an input that a workload leaves out is random, numbers too") {
  const auto work = job_of(make("{}"));
  REQUIRE(work.inputs.size() == 1);
  CHECK(work.inputs[0].source == tensor_source::generator);
  REQUIRE(work.scalars.size() == 1);
  CHECK(work.scalars[0].first == "k");
  CHECK(work.scalars[0].second.is_integer);
  CHECK(work.scalars[0].second.integer >= -1024);
  CHECK(work.scalars[0].second.integer <= 1023);
  CHECK(work.calls.empty());
  // The same in every part of the run, and another under another secret.
  const auto target = make("{}");
  CHECK(all_numbers(context, target, target.workloads[0], input_set::clock) == work.scalars);
  context.secret.fill(8);
  CHECK_FALSE(all_numbers(context, target, target.workloads[0], input_set::clock) == work.scalars);
}

TEST_CASE_FIXTURE(prepared_fixture, "a number must fit its declared type") {
  const auto target = make(R"({"k": {"type": "scalar", "value": 2.5}})");
  auto job = build_prepare_job(context, target);
  REQUIRE_FALSE(job);
  CHECK(job.error().code == errc::invalid_input);
  CHECK(job.error().what.find("inputs.k") != std::string::npos);
  CHECK_FALSE(build_prepare_job(context, make(R"({"x": {"type": "scalar", "value": 2}})")));
}

TEST_CASE_FIXTURE(
  prepared_fixture, "a safetensors file is searched beside the problem, then elsewhere") {
  auto target = make(blob_inputs);
  target.folder = folder.path / "problem";
  context.blob_roots = {folder.path / "trace"};
  const auto missing = build_prepare_job(context, target);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::not_found);
  CHECK(missing.error().what.find("blob missing: data/x.st") == 0);
  CHECK(missing.error().what.find("input 'x' of workload w") != std::string::npos);

  fs::create_directories(folder.path / "trace");
  std::ofstream{folder.path / "trace" / "x.st"} << "x";
  auto work = job_of(target);
  CHECK(work.inputs[0].source == tensor_source::safetensors);
  CHECK(work.inputs[0].blob_file == (folder.path / "trace" / "x.st").string());
  CHECK(work.inputs[0].blob_key == "k0");

  fs::create_directories(target.folder / "data");
  std::ofstream{target.folder / "data" / "x.st"} << "x";
  work = job_of(target);
  CHECK(work.inputs[0].blob_file == (target.folder / "data" / "x.st").string());
  // For the clock too the whole tensor: its elements may depend on each other.
  CHECK(work.patterns[0].source == tensor_source::safetensors);
  CHECK(work.patterns[0].file_bytes == work.patterns[0].bytes);
}

TEST_CASE_FIXTURE(
  prepared_fixture, "an entry point is called once where check and clock are alike") {
  const auto work = job_of(make(custom_inputs, 4, "make"));
  REQUIRE(work.calls.size() == 1);
  const auto& call = work.calls[0];
  CHECK(call.axes == axis_values{{"M", 4}});
  CHECK(call.numbers == std::vector<custom_number>{{"k", dtype::int32}});
  REQUIRE(call.tensors.size() == 2);
  CHECK(call.tensors[0].file == work.inputs[0].file);
  CHECK(call.tensors[1].file == work.patterns[0].file);
  CHECK(work.scalars.empty());
}

TEST_CASE_FIXTURE(prepared_fixture, "a shrunken check has a call of its own, with its own axes") {
  const auto work = job_of(make(custom_inputs, 4096, "make"));
  REQUIRE(work.calls.size() == 2);
  CHECK(work.calls[0].axes == work.axes);
  CHECK(work.calls[0].axes != work.calls[1].axes);
  CHECK(work.calls[1].axes == axis_values{{"M", 4096}});
  REQUIRE(work.calls[1].tensors.size() == 1);
  CHECK(work.calls[1].tensors[0].bytes == 4096 * 64 * 4);
  CHECK_FALSE(work.calls[0].key == work.calls[1].key);
  CHECK(work.calls[1].numbers.size() == 1);
}

TEST_CASE_FIXTURE(prepared_fixture,
  "a definition that names an entry point has it called though no input is custom") {
  const auto work = job_of(make(R"({"k": {"type": "scalar", "value": 3}})", 4096, "make"));
  REQUIRE(work.calls.size() == 1);
  CHECK(work.calls[0].tensors.empty());
  REQUIRE(work.calls[0].scalars.size() == 1);
  CHECK(work.calls[0].scalars[0].second.integer == 3);
  context.python.clear();
  CHECK(build_prepare_job(context, make("{}", 4, "make")).error().code == errc::unsupported);
}

TEST_CASE_FIXTURE(
  prepared_fixture, "every set of the pool has values of its own, and numbers stay") {
  context.rounds = 3;
  const auto target = make("{}");
  const auto job = build_prepare_job(context, target);
  REQUIRE(job);
  REQUIRE(job->workloads.size() == 3);
  CHECK(job->workloads[0].uuid == "w");
  CHECK(job->workloads[2].uuid == "w set 2");
  CHECK(job->workloads[0].patterns.size() == 1);
  for (size_t i : {1, 2}) {
    CHECK_FALSE(job->workloads[i].inputs[0].key == job->workloads[0].inputs[0].key);
    CHECK(job->workloads[i].inputs[0].file != job->workloads[0].inputs[0].file);
    CHECK(job->workloads[i].references[0].file != job->workloads[0].references[0].file);
    CHECK(job->workloads[i].patterns.empty());
    CHECK(job->workloads[i].scalars == job->workloads[0].scalars);
  }
}

TEST_CASE_FIXTURE(
  prepared_fixture, "a real device needs no patterns where it checks at true size") {
  context.measured = true;
  CHECK(job_of(make("{}", 4)).patterns.empty());
  CHECK(job_of(make("{}", 4096)).patterns.size() == 1); // Its twin is smaller.
}

TEST_CASE_FIXTURE(prepared_fixture, "sets that would be too large are fewer, and it is said why") {
  context.rounds = 10;
  const auto target = make(R"({"k": {"type": "scalar", "value": 3}})", 64);
  const uint64_t one = 2 * 64 * 64 * 4;
  const auto sets = [&] { return *pool_cases(context, target, target.workloads[0]); };
  context.sets_bytes_max = 10 * one;
  CHECK(sets().cases.size() == 10);
  CHECK(sets().note.empty());
  context.sets_bytes_max = 3 * one + 1;
  CHECK(sets().cases.size() == 3);
  CHECK(sets().note.find("3 of 10 sets") == 0);
  context.sets_bytes_max = 1;
  CHECK(sets().cases.size() == 1); // One there is always.
  const auto custom = make(custom_inputs, 64, "make");
  const auto of_code = pool_cases(context, custom, custom.workloads[0]);
  REQUIRE(of_code);
  CHECK(of_code->cases.size() == 1);
  CHECK(of_code->note.find("own code") != std::string::npos);
}

namespace {

/// A candidate for `prepared_fixture::make`, whose plan claims `domain`.
candidate_ref claiming(prepared_fixture& in, const problem& target, const std::string& domain,
  const std::string& defines = "{}") {
  in.context.problems.insert_or_assign("p", target);
  const auto stored = store_candidate(*in.context.blobs, "// device code",
    R"({"schema":"gristmill.plan/1","domain":")" + domain + R"(","variants":[{"defines":)" + defines
      + R"(,"steps":[{"op":"launch","entry":"f","grid":["M",1,1],"block":[32,1,1],
      "args":["x","y","k"]}]}]})",
    "k", "", "");
  REQUIRE(stored);
  return *stored;
}

std::vector<std::string> labels(const std::vector<drawn_case>& all) {
  std::vector<std::string> out;
  for (const auto& one : all)
    out.push_back(one.what.label);
  return out;
}

} // namespace

TEST_CASE_FIXTURE(prepared_fixture,
  "a draw has fresh sets, the held-out styles that change something, and neighbours in the "
  "domain") {
  context.rounds = 10;
  const auto target = make("{}", 64);
  const auto drawn = [&](const std::string& domain, const std::string& defines = "{}") {
    const auto candidate = claiming(*this, target, domain, defines);
    const auto resolved = resolve_candidate(context, "p", candidate);
    REQUIRE_MESSAGE(resolved, (resolved ? "" : resolved.error().what));
    const auto all = draw_cases(context, target, target.workloads[0], "p/cuda/3#1", *resolved);
    REQUIRE(all);
    return *all;
  };
  const std::vector<std::string> common{"fresh 0", "fresh 1", "fresh 2", "held-out, tiny values",
    "held-out, large values", "held-out, constant rows", "held-out, rows with NaN"};
  auto wanted = common;
  wanted.insert(wanted.end(), {"neighbour M=65", "neighbour M=63"});
  CHECK(labels(drawn("true")) == wanted);
  wanted = common;
  wanted.insert(wanted.end(), {"neighbour M=80", "neighbour M=48"});
  CHECK(labels(drawn("M % 16 == 0")) == wanted);
  CHECK(labels(drawn("M == 64")) == common);
  // Another number of rows would be other code, which nobody has compiled.
  CHECK(labels(drawn("true", R"({"ROWS":"M"})")) == common);
  for (const auto& one : drawn("true")) {
    CHECK(one.what.clock_shape == one.what.label.starts_with("fresh"));
    CHECK(one.what.set.draw == "p/cuda/3#1");
  }
}

TEST_CASE_FIXTURE(prepared_fixture, "each draw has values that no other one had") {
  const auto target = make("{}", 64);
  const auto candidate = claiming(*this, target, "true");
  std::set<std::string> keys;
  std::set<std::string> files;
  size_t all = 0;
  for (const char* draw : {"p/cuda/3#1", "p/cuda/3#2"}) {
    const auto job = build_draw_job(context, target, draw, candidate);
    REQUIRE_MESSAGE(job, (job ? "" : job.error().what));
    CHECK(job->trace.empty());
    for (const auto& work : job->workloads) {
      ++all;
      CHECK(work.patterns.empty());
      keys.emplace(reinterpret_cast<const char*>(work.inputs[0].key.bytes.data()),
        work.inputs[0].key.bytes.size());
      files.insert(work.inputs[0].file);
    }
  }
  CHECK(keys.size() == all);
  CHECK(files.size() == all);
}

TEST_CASE_FIXTURE(prepared_fixture, "a case whose reference raises is left out, and it is told") {
  const auto target = make("{}", 64);
  const auto candidate = claiming(*this, target, "M == 64");
  const std::string draw = "p/cuda/3#1";
  REQUIRE(make_data_folders(context, target, draw));
  const auto job = build_draw_job(context, target, draw, candidate);
  REQUIRE(job);
  child_result said;
  said.end = child_end::done;
  const auto last = job->workloads.back().uuid;
  for (const auto& work : job->workloads) {
    const bool fine = work.uuid != last;
    if (fine)
      std::ofstream{work.references[0].file} << "a reference";
    const auto one = oracle_says({work.uuid,
      fine ? verdict_status::passed : verdict_status::invalid_reference, "it raised", {}});
    said.lines.push_back(one.lines[0]);
  }
  said.lines.push_back(oracle_says({"w", verdict_status::passed, "", {}}).lines[1]);
  const auto made = finish_draw(context, target, draw, candidate, said, "0123456789abcdef");
  REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  CHECK(made->status == verdict_status::passed);
  CHECK(made->workloads.at(0).sets == job->workloads.size() - 1);
  CHECK(made->reason.find(last + ": it raised") != std::string::npos);
  remove_draw(context, draw);
  CHECK_FALSE(fs::exists(job->workloads[0].references[0].file));
  const auto nothing = finish_draw(context, target, draw, candidate, said, "0123456789abcdef");
  REQUIRE(nothing);
  CHECK(nothing->status == verdict_status::not_checked);
}

TEST_CASE_FIXTURE(prepared_fixture, "numbers that an entry point returned reach the runs") {
  const auto target = make(custom_inputs, 4096, "make");
  const auto& work = target.workloads[0];
  CHECK(all_numbers(context, target, work, input_set::check).error().code == errc::not_found);
  REQUIRE(make_data_folders(context, target));
  prepare_answer answer{"w", verdict_status::passed, "", {}};
  answer.numbers = {{{"k", int64_t{5}}}, {{"k", int64_t{9}}}};
  const auto prepared =
    finish_prepare(context, target, oracle_says(answer), "0123456789abcdef", folder.path.string());
  REQUIRE_MESSAGE(prepared, (prepared ? "" : prepared.error().what));
  CHECK_MESSAGE(prepared->status == verdict_status::passed, prepared->reason);
  const auto check = all_numbers(context, target, work, input_set::check);
  const auto clock = all_numbers(context, target, work, input_set::clock);
  REQUIRE((check && clock));
  CHECK(check->at(0).second.integer == 5);
  CHECK(clock->at(0).second.integer == 9);

  // And so a plan that uses the number resolves, each run with its own.
  const auto stored = store_candidate(*context.blobs, "// device code",
    R"({"schema":"gristmill.plan/1","variants":[{"steps":[{"op":"launch","entry":"f",
      "grid":["k",1,1],"block":[32,1,1],"args":["x","y","k"]}]}]})",
    "k", "", "");
  REQUIRE(stored);
  context.problems.emplace("p", target);
  const auto resolved = resolve_candidate(context, "p", *stored);
  REQUIRE_MESSAGE(resolved, (resolved ? "" : resolved.error().what));
  CHECK(resolved->workloads[0].check.steps[0].grid[0] == 5);
  CHECK(resolved->workloads[0].full.steps[0].grid[0] == 9);
}

TEST_CASE_FIXTURE(prepared_fixture, "one call's numbers stand for both sets") {
  const auto target = make(custom_inputs, 4, "make");
  REQUIRE(make_data_folders(context, target));
  REQUIRE(store_custom_numbers(context, target, target.workloads[0], {{{"k", int64_t{5}}}}));
  for (auto set : {input_set::check, input_set::clock})
    CHECK(all_numbers(context, target, target.workloads[0], set)->at(0).second.integer == 5);
}

TEST_CASE_FIXTURE(prepared_fixture, "a number of the wrong kind is the entry point's error") {
  const auto target = make(custom_inputs, 4096, "make");
  REQUIRE(make_data_folders(context, target));
  for (const named_numbers& numbers :
    {named_numbers{}, named_numbers{{"k", 2.5}}, named_numbers{{"k", int64_t{1} << 40}}}) {
    prepare_answer answer{"w", verdict_status::passed, "", {numbers}};
    const auto prepared = finish_prepare(
      context, target, oracle_says(answer), "0123456789abcdef", folder.path.string());
    REQUIRE(prepared);
    CHECK(prepared->status == verdict_status::runtime_error);
    CHECK(prepared->reason.find("inputs.k") != std::string::npos);
  }
  prepare_answer raised{"w", verdict_status::runtime_error, "the entry point `make`: no", {}};
  const auto prepared =
    finish_prepare(context, target, oracle_says(raised), "0123456789abcdef", folder.path.string());
  REQUIRE(prepared);
  CHECK(prepared->reason.find("shrunken twin") != std::string::npos);
}
