#include "protocol/child_answers.hpp"
#include "protocol/device_description.hpp"
#include "tensors/tensor_file.hpp"
#include "tests/gpu/children/child_fixture.hpp"
#include "tests/gpu/children/doubling.hpp"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>

using namespace gristmill;

namespace {

/// With kernels that do something wrong, and one that prints.
const std::string kernels =
  std::string(doubling_ptx) + R"(.visible .entry beyond(.param .u64 in, .param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd2+512], %r1;
  ret;
}

.visible .entry crooked(.param .u64 in, .param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd2+2], %r1;
  ret;
}

.visible .entry spoils(.param .u64 in, .param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [in];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd2], %r1;
  ret;
}

.visible .entry endless(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<2>;
again:
  add.u32 %r1, %r1, 1;
  bra again;
}

.visible .entry remembers(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<2>;
  mov.u32 %r1, 7;
  st.global.u32 [memory], %r1;
  ret;
}

.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 hello[8] = {104, 101, 108, 108, 111, 10, 0, 0};

.visible .entry talks(.param .u64 in, .param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  mov.u64 %rd1, hello;
  cvta.global.u64 %rd2, %rd1;
  { .param .b64 format; .param .b64 arguments; .param .b32 result;
    st.param.b64 [format], %rd2;
    st.param.b64 [arguments], 0;
    call.uni (result), vprintf, (format, arguments);
  }
  ret;
}
)";

int line_of(const std::string& text) {
  const auto at = kernels.find(text);
  REQUIRE(at != std::string::npos);
  return 1
    + static_cast<int>(
      std::count(kernels.begin(), kernels.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

struct runner_fixture : child_fixture {
  job_directory& folder = new_job();
  job what;
  child_result answer;

  runner_fixture() {
    what.kind = job_kind::run;
    what.nonce = nonce;
    what.token = 5;
    what.run.device = "mock:h200";
    what.run.instruction_limit = 100'000;
    REQUIRE(folder.write("unit.ptx", kernels));
    run_unit unit{"unit", "unit.ptx", {}};
    for (const char* name :
      {"doubled", "beyond", "crooked", "spoils", "endless", "remembers", "nothing", "talks"})
      unit.entries.push_back({name, name});
    what.run.units = {unit};
    std::vector<float> values;
    for (int i = 0; i < 128; ++i)
      values.push_back(static_cast<float>(i));
    REQUIRE(write_tensor_file(folder.file("x.bin"), bytes_of(values)));
  }

  run_pass pass_of(const std::string& entry, const std::string& output) {
    run_pass in;
    in.unit = "unit";
    in.buffers = {make_run_buffer(small_buffer(resolved_buffer::role::input, "x"), "x.bin", 512),
      make_run_buffer(small_buffer(resolved_buffer::role::output, "y"), output, 0)};
    in.steps = {launch_of(entry)};
    return in;
  }

  run_workload& add(const std::string& entry, bool clock = false) {
    run_workload work;
    work.uuid = entry;
    work.cases.push_back({"set 0", pass_of(entry, entry + ".out")});
    work.has_clock = clock;
    if (clock)
      work.clock = pass_of(entry, "");
    what.run.workloads.push_back(work);
    return what.run.workloads.back();
  }

  run_answers run_all() {
    answer = run_job(child_profile::runner, "gristmill-runner", what, folder);
    REQUIRE_MESSAGE(answer.end == child_end::done, answer.log);
    auto read = read_run_answers(answer.lines, nonce);
    REQUIRE_MESSAGE(read, read.error().what);
    return *read;
  }

  std::vector<float> output(const std::string& entry) {
    auto file = mapped_file::open(folder.file(entry + ".out"), 512);
    REQUIRE_MESSAGE(file, file.error().what);
    std::vector<float> values(128);
    std::memcpy(values.data(), file->bytes().data(), 512);
    return values;
  }
};

} // namespace

TEST_CASE_FIXTURE(
  runner_fixture, "a good kernel passes, its outputs are written and its time is modelled") {
  add("doubled", true);
  const auto found = run_all();
  REQUIRE(found.workloads.size() == 1);
  const auto& measured = found.workloads[0];
  CHECK_MESSAGE(measured.status == verdict_status::passed, measured.detail);
  const auto values = output("doubled");
  for (int i = 0; i < 128; ++i)
    CHECK(values[static_cast<size_t>(i)] == static_cast<float>(2 * i));
  CHECK(measured.time_ns > 0);
  CHECK(measured.samples_ns == std::vector<uint64_t>{measured.time_ns});
  CHECK_FALSE(measured.terms.empty());
  CHECK_FALSE(measured.bound.empty());
  CHECK(found.findings.empty());
}

TEST_CASE_FIXTURE(runner_fixture, "the same job gives the same time") {
  add("doubled", true);
  const auto first = run_all().workloads[0].time_ns;
  add("doubled", true);
  const auto again = run_all();
  CHECK(again.workloads[0].time_ns == first);
  CHECK(again.workloads[1].time_ns == first);
}

TEST_CASE_FIXTURE(
  runner_fixture, "a fault is reported with its PTX line, and the next workload runs") {
  add("beyond", true);
  add("doubled");
  const auto found = run_all();
  REQUIRE(found.workloads.size() == 2);
  CHECK(found.workloads[0].status == verdict_status::runtime_error);
  CHECK(found.workloads[0].time_ns == 0);
  CHECK(found.workloads[1].status == verdict_status::passed);
  const auto faults = lines_of(answer, child_line_kind::fault);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].at("workload") == "beyond");
  CHECK(faults[0].at("ptx_line") == line_of("st.global.u32 [%rd2+512]"));
  CHECK(faults[0].at("text") == found.workloads[0].detail);
  CHECK(faults[0].at("fault").get<std::string>().find("bounds") != std::string::npos);
}

TEST_CASE_FIXTURE(runner_fixture, "a misaligned access is the candidate's error") {
  add("crooked");
  const auto found = run_all();
  CHECK(found.workloads[0].status == verdict_status::runtime_error);
  CHECK(lines_of(answer, child_line_kind::fault).at(0).at("ptx_line")
    == line_of("st.global.u32 [%rd2+2]"));
}

TEST_CASE_FIXTURE(
  runner_fixture, "a kernel that writes to an input faults, and the file stays as it was") {
  add("spoils");
  CHECK(run_all().workloads[0].status == verdict_status::runtime_error);
  auto file = mapped_file::open(folder.file("x.bin"), 512);
  REQUIRE(file);
  CHECK(file->bytes()[0] == std::byte{0});
}

TEST_CASE_FIXTURE(runner_fixture, "a kernel that does not end is a TIMEOUT") {
  add("endless", true);
  const auto found = run_all();
  CHECK(found.workloads[0].status == verdict_status::timeout);
  CHECK(found.workloads[0].time_ns == 0);
}

TEST_CASE_FIXTURE(runner_fixture, "a kernel that leaves something in a global is found out") {
  add("remembers");
  const auto found = run_all();
  REQUIRE(found.findings.size() == 2); // It writes no output either.
  CHECK(found.findings[0].rule == "changes_global");
  CHECK(found.findings[0].workload == "remembers");
  CHECK(found.findings[0].fatal);
}

TEST_CASE_FIXTURE(
  runner_fixture, "an output that no kernel writes holds neither zeros nor an answer") {
  add("nothing");
  const auto found = run_all();
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].rule == "unwritten_output");
  CHECK(found.findings[0].fatal);
  CHECK(found.findings[0].detail.find("512 bytes from byte 0") != std::string::npos);
  const auto values = output("nothing");
  CHECK(std::count(values.begin(), values.end(), 0.0F) < 8);
  int answers = 0;
  for (int i = 0; i < 128; ++i)
    answers += values[static_cast<size_t>(i)] == static_cast<float>(2 * i);
  CHECK(answers < 8);
}

TEST_CASE_FIXTURE(runner_fixture, "restored scratch must be zero after the call") {
  for (const bool restores : {true, false}) {
    CAPTURE(restores);
    auto& in = add("nothing").cases[0].pass;
    in.buffers.push_back(
      make_run_buffer(small_buffer(resolved_buffer::role::scratch, "lock", "restored"), "", 0));
    resolved_step dirty;
    dirty.what = resolved_step::op::memset;
    dirty.buffer = 2;
    dirty.offset = 8;
    dirty.bytes = 4;
    dirty.value = restores ? 0 : 1;
    in.steps.push_back(dirty);
    const auto measured = run_all().workloads.back();
    CHECK(measured.status == (restores ? verdict_status::passed : verdict_status::runtime_error));
    CHECK((measured.detail.find("byte 8") != std::string::npos) == !restores);
    what.run.workloads.clear();
  }
}

TEST_CASE_FIXTURE(runner_fixture, "scratch begins undefined or zero as declared") {
  for (const char* init : {"undefined", "zero", "restored"}) {
    CAPTURE(init);
    auto& in = add("nothing").cases[0].pass;
    in.buffers.push_back(
      make_run_buffer(small_buffer(resolved_buffer::role::scratch, "s", init), "", 0));
    resolved_step copy;
    copy.what = resolved_step::op::copy;
    copy.buffer = 1;
    copy.src_buffer = 2;
    copy.bytes = 512;
    in.steps.push_back(copy);
    REQUIRE(run_all().workloads[0].status == verdict_status::passed);
    const auto values = output("nothing");
    const bool zero = std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
    CHECK(zero == (std::string(init) != "undefined"));
    what.run.workloads.clear();
  }
}

TEST_CASE_FIXTURE(runner_fixture, "the clock runs on a pattern that stands for the whole input") {
  auto& work = add("doubled", true);
  const std::vector<float> page(1 << 20, 1.0F);
  REQUIRE(write_tensor_file(folder.file("pattern.bin"), bytes_of(page)));
  auto& big = work.clock.buffers[0];
  big.what.shape = {int64_t{1} << 28};
  big.what.bytes = uint64_t{1} << 30;
  big.file = "pattern.bin";
  big.file_bytes = 4 << 20;
  const auto found = run_all();
  CHECK_MESSAGE(found.workloads[0].status == verdict_status::passed, found.workloads[0].detail);
  CHECK(found.workloads[0].time_ns > 0);
}

TEST_CASE_FIXTURE(runner_fixture, "arguments that do not fit the entry are the candidate's error") {
  add("doubled").cases[0].pass.steps[0].args.pop_back();
  const auto found = run_all();
  CHECK(found.workloads[0].status == verdict_status::runtime_error);
  CHECK(found.workloads[0].detail.find("16 bytes of arguments") != std::string::npos);
}

TEST_CASE_FIXTURE(runner_fixture, "an input file that is missing is infrastructure") {
  add("doubled").cases[0].pass.buffers[0].file = "nowhere.bin";
  CHECK(run_all().workloads[0].status == verdict_status::infrastructure);
}

TEST_CASE_FIXTURE(runner_fixture, "an empty buffer is a null pointer and an empty file") {
  auto& in = add("nothing").cases[0].pass;
  in.buffers[1].what.shape = {0};
  in.buffers[1].what.bytes = 0;
  CHECK(run_all().workloads[0].status == verdict_status::passed);
  CHECK(std::filesystem::file_size(folder.file("nothing.out")) == 0);
}

TEST_CASE_FIXTURE(runner_fixture, "code that cannot be loaded is the candidate's error") {
  REQUIRE(folder.write("unit.ptx", "this is no PTX"));
  add("doubled");
  CHECK(run_all().workloads[0].status == verdict_status::runtime_error);
}

TEST_CASE_FIXTURE(
  runner_fixture, "what a kernel prints stands in the runner's log, up to a limit") {
  add("talks");
  CHECK(run_all().workloads[0].status == verdict_status::passed);
  CHECK(answer.log.find("printed by talks:\nhello\nhello\n") != std::string::npos);
  for (int i = 0; i < 60; ++i)
    add("talks");
  CHECK(run_all().workloads.size() == 61);
  CHECK(answer.log.find("(more was printed, which is not kept)") != std::string::npos);
}

TEST_CASE_FIXTURE(
  runner_fixture, "blocks of both sides run in processes of their own, in an order that is drawn") {
  add("doubled", true);
  what.run.samples = 5;
  auto rival = what.run;
  rival.workloads[0].cases.clear();
  what.run.against = {rival};
  what.run.blocks = 4;
  const auto found = run_all();
  REQUIRE(found.workloads.size() == 1);
  const auto& measured = found.workloads[0];
  CHECK_MESSAGE(measured.status == verdict_status::passed, measured.detail);
  CHECK(output("doubled")[3] == 6);
  REQUIRE(measured.written.size() == 1);
  CHECK(measured.written[0].call == "check");
  REQUIRE(measured.blocks.size() == 8);
  size_t rivals = 0;
  for (size_t i = 0; i < 8; ++i) {
    CHECK(measured.blocks[i].median_ns == measured.time_ns); // A modelled clock is always equal.
    CHECK(measured.blocks[i].mad_ns == 0);
    CHECK(measured.blocks[i].samples == 2);
    rivals += measured.blocks[i].rival ? 1 : 0;
  }
  CHECK(rivals == 4);
  for (size_t i = 0; i < 8; i += 4) {
    CHECK(measured.blocks[i].rival == measured.blocks[i + 3].rival);
    CHECK(measured.blocks[i].rival != measured.blocks[i + 1].rival);
  }
  CHECK(measured.samples_ns.size() == 8);
  CHECK_FALSE(measured.terms.empty());
  // Nothing of the blocks is left for the judge to stumble over.
  for (const auto& each : std::filesystem::directory_iterator(folder.path()))
    CHECK_FALSE(each.is_directory());
}

TEST_CASE_FIXTURE(
  runner_fixture, "what breaks the candidate is its own, what breaks the incumbent is ours") {
  add("doubled", true);
  auto rival = what.run;
  rival.workloads[0].cases.clear();
  what.run.blocks = 2;
  SUBCASE("the incumbent faults") {
    rival.workloads[0].clock = pass_of("beyond", "");
    what.run.against = {rival};
    const auto measured = run_all().workloads[0];
    CHECK(measured.status == verdict_status::infrastructure);
    CHECK(measured.detail.find("the incumbent failed in block") == 0);
  }
  SUBCASE("the candidate faults in a block") {
    what.run.workloads[0].clock = pass_of("beyond", "");
    what.run.against = {rival};
    const auto measured = run_all().workloads[0];
    CHECK(measured.status == verdict_status::runtime_error);
    CHECK(measured.detail.find("block ") == 0);
  }
  SUBCASE("the candidate faults in its check, and the others are timed once without a comparison") {
    add("beyond", true);
    rival = what.run;
    what.run.against = {rival};
    const auto found = run_all();
    CHECK(found.workloads[0].status == verdict_status::passed);
    CHECK(found.workloads[0].time_ns > 0);
    REQUIRE(found.workloads[0].blocks.size() == 1);
    CHECK_FALSE(found.workloads[0].blocks[0].rival);
    CHECK(found.workloads[1].status == verdict_status::runtime_error);
    CHECK(found.workloads[1].time_ns == 0);
  }
  SUBCASE("the code of the incumbent is gone") {
    rival.units[0].file = "nowhere.ptx";
    what.run.against = {rival};
    const auto measured = run_all().workloads[0];
    CHECK(measured.status == verdict_status::infrastructure);
    CHECK(measured.detail.find("ended without done") != std::string::npos);
  }
  SUBCASE("the code of the candidate is gone") {
    what.run.units[0].file = "nowhere.ptx";
    what.run.against = {rival};
    CHECK(run_all().workloads[0].status == verdict_status::runtime_error);
  }
}

TEST_CASE_FIXTURE(runner_fixture, "a device is described in a line that can be read") {
  const auto asked = [&](const std::string& option, const std::string& device) {
    child_request request;
    request.id = 4711;
    request.argv = {program_folder() + "/gristmill-runner", option, device};
    request.job_directory = folder.path();
    request.nonce = "none";
    request.deadline = patience;
    return run(request);
  };
  const auto ended = asked("--describe", "mock:h200");
  CHECK(ended.status == 0);
  const auto described = descriptions_from_text(ended.log);
  REQUIRE_MESSAGE(described, described.error().what);
  REQUIRE(described->size() == 1);
  const auto& one = described->front();
  CHECK(one.device == "mock:h200");
  CHECK(one.model == "h200");
  CHECK(one.arch == "sm_90a");
  CHECK(one.sm_count == 132);
  CHECK(one.origin == time_origin::modelled);
  CHECK(asked("--describe", "mock:h300").status == 2);
  CHECK(asked("--describe", "cuda:first").log.find("cuda:N") != std::string::npos);
  CHECK(asked("--health", "mock:h200").status == 2);
  CHECK(asked("--canary", "cuda:x").status == 2);
}

TEST_CASE_FIXTURE(runner_fixture, "an unknown device ends the runner without done") {
  what.run.device = "mock:h300";
  add("doubled");
  const auto ended = run_job(child_profile::runner, "gristmill-runner", what, folder);
  CHECK(ended.end == child_end::no_done);
  CHECK(ended.log.find("h300") != std::string::npos);
}
