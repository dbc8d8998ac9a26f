#include "protocol/child_answers.hpp"
#include "tensors/tensor_file.hpp"
#include "tests/gpu/children/child_fixture.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace gristmill;

namespace {

struct judge_fixture : child_fixture {
  job_directory& folder = new_job();
  job what;

  judge_fixture() {
    what.kind = job_kind::judge;
    what.nonce = nonce;
  }

  void write(const std::string& file, const std::vector<float>& values) {
    REQUIRE(write_tensor_file(folder.file(file), bytes_of(values)));
  }

  void add(const std::string& uuid, const std::string& solution, const std::string& reference) {
    judge_workload work;
    work.uuid = uuid;
    work.calls = {{"set 0", false, {{{"y", dtype::float32, {4}, 16, solution}, reference}}}};
    what.judge.workloads.push_back(work);
  }

  evaluation judge() {
    const auto answer = run_job(child_profile::judge, "gristmill-judge", what, folder);
    REQUIRE_MESSAGE(answer.end == child_end::done, answer.log);
    auto read = read_judge_answers(answer.lines, nonce);
    REQUIRE_MESSAGE(read, read.error().what);
    return *read;
  }
};

} // namespace

TEST_CASE_FIXTURE(judge_fixture, "equal outputs pass, others miss, and both are counted") {
  write("ref", {1, 2, 3, 4});
  write("good", {1, 2, 3, 4});
  write("bad", {1, 2, 3, 40});
  add("w-good", "good", "ref");
  add("w-bad", "bad", "ref");
  const auto found = judge();
  REQUIRE(found.workloads.size() == 2);
  CHECK(found.workloads[0].uuid == "w-good");
  CHECK(found.workloads[0].status == verdict_status::passed);
  REQUIRE(found.workloads[0].outputs.size() == 1);
  CHECK(found.workloads[0].outputs[0].elements == 4);
  const auto& bad = found.workloads[1];
  CHECK(bad.status == verdict_status::incorrect_numerical);
  REQUIRE(bad.outputs.size() == 1);
  CHECK(bad.outputs[0].mismatches == 1);
  CHECK(bad.outputs[0].miss_tiles.size() == 64);
  CHECK(static_cast<double>(bad.outputs[0].max_absolute_error) == 36);
  CHECK(bad.detail.find("1 of 4") != std::string::npos);
}

TEST_CASE_FIXTURE(judge_fixture, "an output that is missing or short is the candidate's error") {
  write("ref", {1, 2, 3, 4});
  write("short", {1, 2, 3});
  add("w-short", "short", "ref");
  add("w-missing", "missing", "ref");
  const auto found = judge();
  CHECK(found.workloads[0].status == verdict_status::runtime_error);
  CHECK(found.workloads[0].detail.find("`y` has the wrong size") != std::string::npos);
  CHECK(found.workloads[1].status == verdict_status::runtime_error);
  CHECK(found.workloads[1].detail.find("`y` was not written") != std::string::npos);
}

TEST_CASE_FIXTURE(judge_fixture, "a reference that is missing is nobody's verdict") {
  write("good", {1, 2, 3, 4});
  add("w", "good", "missing");
  CHECK(judge().workloads[0].status == verdict_status::infrastructure);
}

TEST_CASE_FIXTURE(
  judge_fixture, "the tolerance of the workload decides, and the flag is passed on") {
  write("ref", {1, 2, 3, 4});
  write("near", {1, 2, 3, 4.5});
  add("w", "near", "ref");
  what.judge.workloads[0].allowed.atol = 1;
  what.judge.workloads[0].shrunken = true;
  const auto found = judge();
  CHECK(found.workloads[0].status == verdict_status::passed);
  CHECK(found.workloads[0].shrunken);
}

TEST_CASE_FIXTURE(judge_fixture, "zeros and NaN are named as what they are") {
  write("ref", {1, 2, 3, 4});
  write("zeros", {0, 0, 0, 0});
  write("nan", {1, 2, 3, std::numeric_limits<float>::quiet_NaN()});
  add("w-zeros", "zeros", "ref");
  add("w-nan", "nan", "ref");
  const auto found = judge();
  CHECK(found.workloads[0].outputs[0].all_zero);
  CHECK(found.workloads[0].detail.find("all zero") != std::string::npos);
  CHECK(found.workloads[1].outputs[0].has_nan);
  CHECK(found.workloads[1].detail.find("NaN") != std::string::npos);
}

TEST_CASE_FIXTURE(judge_fixture, "where the misses lie is said in words") {
  std::vector<float> reference(64 * 64, 1);
  auto tail = reference;
  for (size_t row = 0; row < 64; ++row)
    tail[row * 64 + 63] = 0;
  write("ref", reference);
  write("tail", tail);
  judge_workload work;
  work.uuid = "w";
  work.calls = {{"set 0", false, {{{"y", dtype::float32, {64, 64}, 64 * 64 * 4, "tail"}, "ref"}}}};
  what.judge.workloads.push_back(work);
  const auto found = judge();
  CHECK(found.workloads[0].status == verdict_status::incorrect_numerical);
  CHECK(found.workloads[0].detail
    == "`y`: 64 of 4096 elements miss the tolerance, largest error 1; misses cluster in the last "
       "columns");
}

TEST_CASE_FIXTURE(
  judge_fixture, "integers that the rule cannot tell apart are a warning, no failure") {
  const std::vector<int64_t> reference{16777216, 5};
  const std::vector<int64_t> near{16777217, 5};
  REQUIRE(write_tensor_file(folder.file("ref"), bytes_of(reference)));
  REQUIRE(write_tensor_file(folder.file("near"), bytes_of(near)));
  for (const auto& [uuid, file] : {std::pair{"w-near", "near"}, std::pair{"w-same", "ref"}}) {
    judge_workload work;
    work.uuid = uuid;
    work.calls = {{"set 0", false, {{{"y", dtype::int64, {2}, 16, file}, "ref"}}}};
    what.judge.workloads.push_back(work);
  }
  const auto found = judge();
  CHECK(found.workloads[0].status == verdict_status::passed);
  CHECK(found.workloads[0].detail.find("warning: `y` holds integers that differ") == 0);
  CHECK(found.workloads[1].status == verdict_status::passed);
  CHECK(found.workloads[1].detail.empty());
}

TEST_CASE_FIXTURE(judge_fixture, "fp8 and packed fp4 outputs are compared as what they mean") {
  // +-0, 1 and 2 of E4M3; then the pairs (1, 2) and (2, 2) of E2M1.
  const std::vector<uint8_t> fp8_reference{0x00, 0x38, 0x40};
  const std::vector<uint8_t> fp8_same{0x80, 0x38, 0x40};
  const std::vector<uint8_t> fp4_reference{0x42};
  const std::vector<uint8_t> fp4_other{0x44};
  REQUIRE(write_tensor_file(folder.file("fp8_ref"), bytes_of(fp8_reference)));
  REQUIRE(write_tensor_file(folder.file("fp8"), bytes_of(fp8_same)));
  REQUIRE(write_tensor_file(folder.file("fp4_ref"), bytes_of(fp4_reference)));
  REQUIRE(write_tensor_file(folder.file("fp4"), bytes_of(fp4_other)));
  judge_workload work;
  work.uuid = "w";
  work.calls = {{"set 0", false,
    {{{"a", dtype::float8_e4m3fn, {3}, 3, "fp8"}, "fp8_ref"},
      {{"b", dtype::float4_e2m1fn_x2, {2}, 1, "fp4"}, "fp4_ref"}}}};
  what.judge.workloads.push_back(work);
  const auto found = judge();
  REQUIRE(found.workloads[0].outputs.size() == 2);
  CHECK(found.workloads[0].outputs[0].passed);
  CHECK_FALSE(found.workloads[0].outputs[1].passed);
  CHECK(found.workloads[0].outputs[1].mismatches == 1);
  CHECK(static_cast<double>(found.workloads[0].outputs[1].max_absolute_error) == 1);
  CHECK(found.workloads[0].detail.find("`b`: 1 of 2") == 0);
}

TEST_CASE_FIXTURE(
  judge_fixture, "how far off an output is stands beside the verdict, whatever it is") {
  write("ref", {1, 2, 4, 8});
  write("near", {1, 2, std::nextafter(4.0F, 5.0F), 8});
  add("w", "near", "ref");
  const auto found = judge();
  REQUIRE(found.workloads[0].outputs.size() == 1);
  const auto& output = found.workloads[0].outputs[0];
  CHECK(output.passed);
  CHECK(output.ulp_histogram == std::vector<uint64_t>{3, 1});
  CHECK(static_cast<double>(output.relative_rms_error) > 0);
  CHECK(static_cast<double>(output.relative_rms_error) < 1e-6);
}

TEST_CASE_FIXTURE(
  judge_fixture, "of several calls the first that fails speaks, else the worst one") {
  write("ref", {1, 2, 3, 4});
  write("same", {1, 2, 3, 4});
  write("near", {1, 2, 3, 4.01F});
  write("bad", {1, 2, 3, 40});
  const auto call = [](const char* label, const char* file) {
    return judge_call{label, false, {{{"y", dtype::float32, {4}, 16, file}, "ref"}}};
  };
  for (const bool with_bad : {false, true}) {
    judge_workload work;
    work.uuid = with_bad ? "w-bad" : "w-good";
    work.calls = {call("set 0", "same"), call("set 0, timed 17", "near"), call("set 1", "same")};
    if (with_bad)
      work.calls.insert(work.calls.begin() + 2, call("set 0, timed 31", "bad"));
    what.judge.workloads.push_back(work);
  }
  const auto found = judge();
  const auto& good = found.workloads[0];
  CHECK(good.status == verdict_status::passed);
  CHECK(good.calls == 3);
  CHECK(good.call == "set 0, timed 17");
  CHECK(static_cast<double>(good.outputs[0].max_absolute_error) > 0.005);
  const auto& bad = found.workloads[1];
  CHECK(bad.status == verdict_status::incorrect_numerical);
  CHECK(bad.call == "set 0, timed 31");
  CHECK(bad.calls == 3); // Those up to the one that failed.
  CHECK(bad.detail.find("set 0, timed 31: `y`: 1 of 4") == 0);
}

TEST_CASE_FIXTURE(judge_fixture, "a job of another kind is not done") {
  what.kind = job_kind::run;
  what.run.device = "mock:h200";
  what.run.instruction_limit = 1;
  const auto answer = run_job(child_profile::judge, "gristmill-judge", what, folder);
  CHECK(answer.end == child_end::no_done);
  CHECK(answer.log.find("not judge") != std::string::npos);
}

TEST_CASE_FIXTURE(judge_fixture, "a job that cannot be read is not done") {
  REQUIRE(folder.write("job.json", "{}"));
  child_request request;
  request.id = 1000;
  request.profile = child_profile::judge;
  request.argv = {"gristmill-judge", folder.path()};
  request.job_directory = folder.path();
  request.nonce = nonce;
  request.deadline = patience;
  // The jail reads what the job may see, so it may be the first to refuse.
  const auto answer = run(request);
  CHECK(answer.end != child_end::done);
  CHECK(answer.status != 0);
}
