// What reports of compute-sanitizer mean. The texts are of our own wording in its form.

#include "scoring/sanitizer_report.hpp"

#include "scoring/integrity.hpp"
#include "scoring/verdict.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace gristmill;

namespace {

const std::string banner = "========= COMPUTE-SANITIZER\n";
const std::string no_errors = "========= ERROR SUMMARY: 0 errors\n";

sanitizer_look read(const std::string& text, sanitizer_circumstances how = {},
  sanitizer_tool tool = sanitizer_tool::memcheck) {
  how.error_status = 86;
  return read_sanitizer_report(tool, text, how);
}

std::string bad_write(const std::string& where, int thread) {
  return "========= Invalid __global__ write of size 4 bytes\n"
         "=========     at "
    + where + "\n=========     by thread (" + std::to_string(thread)
    + ",0,0) in block (8,0,0)\n"
      "=========     Address 0x7f0000001000 is out of bounds\n"
      "=========     and is 1 bytes after the nearest allocation at 0x7f0000000000 of size 4,096\n"
      "=========\n";
}

} // namespace

TEST_CASE("a report without errors is clean, whatever the target prints between") {
  const auto look = read("hello\n" + banner + "printed by a kernel\n" + no_errors);
  CHECK(look.end == look_end::clean);
  CHECK(look.why.empty());
  CHECK(look.findings.empty());
}

TEST_CASE("reports of one kind at one place are one finding with a count") {
  sanitizer_circumstances how;
  how.status = 86;
  how.not_called = "workload a: the kernel faulted";
  const auto look =
    read(banner + bad_write("void rows<float, (int)4>(float *, int)+0x90 in k.cu:12", 0)
        + bad_write("void rows<float, (int)4>(float *, int)+0x90 in k.cu:12", 1)
        + bad_write("other(int)+0x10", 2) + "========= Target application returned an error\n"
        + "========= ERROR SUMMARY: 3 errors\n",
      how);
  REQUIRE(look.end == look_end::found);
  REQUIRE(look.findings.size() == 2);
  CHECK(look.findings[0].kind == "Invalid __global__ write of size 4 bytes");
  CHECK(look.findings[0].kernel == "rows<float, (int)4>");
  CHECK(look.findings[0].where == "void rows<float, (int)4>(float *, int)+0x90 in k.cu:12");
  CHECK(look.findings[0].count == 2);
  CHECK(look.findings[0].example.find("out of bounds, and is 1 bytes after") != std::string::npos);
  CHECK(look.findings[1].kernel == "other");
  CHECK(look.why.empty());
}

TEST_CASE("a place as older versions write it names the kernel too") {
  const auto look = read(banner + bad_write("0x00000160 in /a/k.cu:12:spaces::rows(float*)", 0)
    + "========= ERROR SUMMARY: 1 error\n");
  REQUIRE(look.findings.size() == 1);
  CHECK(look.findings[0].kernel == "spaces::rows");
}

TEST_CASE("races are errors with two places and hazards; warnings are notes") {
  const auto text = banner
    + "========= Error: Race reported between Write access at sum(int *)+0x90 in r.cu:5\n"
      "=========     and Read access at sum(int *)+0x1a0 in r.cu:9 [508 hazards]\n"
      "=========\n"
      "========= Warning: Race reported between Write access at other(int *)+0x30\n"
      "=========     and Write access at other(int *)+0x40 [2 hazards]\n"
      "=========\n"
      "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n";
  const auto look = read(text, {}, sanitizer_tool::racecheck);
  REQUIRE(look.end == look_end::found);
  REQUIRE(look.findings.size() == 1);
  CHECK(look.findings[0].kernel == "sum");
  CHECK(look.findings[0].count == 508);
  CHECK(look.findings[0].kind == "Race reported between Write access and Read access");
  CHECK(look.notes.size() == 1);
  const auto calm =
    read(banner + "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", {},
      sanitizer_tool::racecheck);
  CHECK(calm.end == look_end::clean);
  // A warning alone refuses nobody, and is told.
  const auto warned = read(banner
      + "========= Warning: Race reported between Write access at other(int *)+0x30\n"
        "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\n",
    {}, sanitizer_tool::racecheck);
  CHECK(warned.end == look_end::clean);
  CHECK(warned.notes.size() == 1);
}

TEST_CASE("barriers and unset values are read like accesses") {
  const auto sync = read(banner
      + "========= Barrier error detected. Divergent thread(s) in block\n"
        "=========     at halves(int*)+0x70 in s.cu:4\n"
        "=========     by thread (32,0,0) in block (0,0,0)\n"
        "========= ERROR SUMMARY: 1 error\n",
    {}, sanitizer_tool::synccheck);
  REQUIRE(sync.findings.size() == 1);
  CHECK(sync.findings[0].kernel == "halves");
  const auto init = read(banner
      + "========= Uninitialized __global__ memory read of size 4 bytes\n"
        "=========     at adds(float*)+0x70\n"
        "========= ERROR SUMMARY: 1 error\n",
    {}, sanitizer_tool::initcheck);
  CHECK(init.end == look_end::found);
}

TEST_CASE("what is missing is a reason and never a pass") {
  sanitizer_circumstances failed;
  failed.status = 1;
  sanitizer_circumstances stopped;
  stopped.ended = "over the limit of 60s";
  sanitizer_circumstances uncalled;
  uncalled.not_called = "the runner made no call";
  sanitizer_circumstances cut;
  cut.is_cut = true;
  sanitizer_circumstances status;
  status.status = 86;
  struct gap {
    std::string text;
    sanitizer_circumstances how;
    std::string why;
  };
  const std::vector<gap> all{
    {"", {}, "no report"},
    {"command not found\n", failed, "no report of compute-sanitizer was written (exit status 1)"},
    {banner, {}, "no summary"},
    {banner + "========= Target application terminated before first instrumented API call\n"
        + no_errors,
      {}, "terminated before"},
    {banner + "========= Target application returned an error\n" + no_errors, failed, "an error"},
    {banner + "========= Error: No attachable process found\n" + no_errors, {}, "attachable"},
    {banner + "========= Device not supported\n" + no_errors, {}, "not supported"},
    {banner + "========= Internal Sanitizer Error\n" + no_errors, {}, "Internal"},
    {banner + no_errors, stopped, "over the limit of 60s"},
    {banner + no_errors, uncalled, "the runner made no call"},
    {banner + no_errors, cut, "longer than"},
    {banner + no_errors, failed, "exit status 1"},
    {banner + no_errors, status, "the exit status tells of errors"},
    {banner + "========= ERROR SUMMARY: 4 errors\n", {}, "counts 4 errors"},
    {banner + "========= ERROR SUMMARY: many\n", {}, "no summary"},
  };
  for (const auto& [text, how, why] : all) {
    CAPTURE(text);
    const auto look = read(text, how);
    CAPTURE(look.why);
    CHECK(look.end == look_end::did_not_look);
    CHECK(look.why.find(why) != std::string::npos);
  }
}

TEST_CASE("what was seen before the end stays a finding, with why there may be more") {
  sanitizer_circumstances stopped;
  stopped.ended = "over the limit of 60s";
  const auto look = read(banner + bad_write("k(int)+0x10", 0), stopped);
  CHECK(look.end == look_end::found);
  CHECK(look.why == "over the limit of 60s");
}

TEST_CASE("a flood is cut with a count") {
  std::string text = banner;
  for (int i = 0; i < 1000; ++i)
    text += bad_write("k(int)+0x" + std::to_string(i), 0);
  text += "========= ERROR SUMMARY: 1500 errors\n"
          "========= ERROR SUMMARY: 500 errors were not printed. Use more.\n";
  const auto look = read(text);
  CHECK(look.findings.size() == sanitizer_findings_max);
  CHECK(look.left_out == 1000 - sanitizer_findings_max + 500);
  const auto told = finding_of(
    {"a/cuda/1", "c", "NVIDIA X", "compute-sanitizer 1", "limits", true, {}, "", {}}, look);
  CHECK(told.detail.find("reports are not kept") != std::string::npos);
  CHECK(told.detail.size() < 1000);
}

TEST_CASE("failed calls of the driver are notes, because they are ours or follow from errors") {
  const auto look = read(banner
    + "========= Program hit CUDA_ERROR_X (error 1) due to \"a\" on CUDA API call to b.\n"
      "=========\n"
      "========= Host API uninitialized memory access\n"
      "=========     at host access to 0x7f0000000000 of size 4 bytes\n"
      "========= ERROR SUMMARY: 2 errors\n");
  CHECK(look.end == look_end::clean);
  CHECK(look.notes.size() == 2);
}

TEST_CASE("lines of any length and with any bytes are kept within limits") {
  std::string hostile = banner + "========= " + std::string(100'000, 'x') + "\n=========     at "
    + std::string(50'000, '(') + "\x1b[31m)+0x1\n========= \n" + no_errors;
  const auto look = read(hostile);
  REQUIRE(look.findings.size() == 1);
  CHECK(look.findings[0].kind.size() < 300);
  CHECK(look.findings[0].where.find('\x1b') == std::string::npos);
}

TEST_CASE("a finding of the sanitizer refuses the candidate on every workload and accuses nobody") {
  evidence of;
  of.yardsticks = {{"a", 100, time_origin::measured, 0, 0}};
  workload_measurement measured;
  measured.uuid = "a";
  measured.status = verdict_status::passed;
  measured.time_ns = 90;
  of.measured.origin = time_origin::measured;
  of.measured.workloads = {measured};
  workload_evaluation judged;
  judged.uuid = "a";
  judged.status = verdict_status::passed;
  output_evaluation output;
  output.output = "y";
  output.passed = true;
  judged.outputs.push_back(output);
  of.judged.workloads = {judged};
  REQUIRE(decide(of).decided.status == verdict_status::passed);
  sanitizer_record record;
  record.program = "compute-sanitizer 1";
  record.device = "NVIDIA X";
  record.looks = {read(banner + bad_write("k(int)+0x10", 0) + "========= ERROR SUMMARY: 1 error\n"),
    read(banner + no_errors), read("")};
  of.measured.findings = findings_of(record);
  REQUIRE(of.measured.findings.size() == 1);
  const auto now = decide(of).decided;
  CHECK(now.status == verdict_status::runtime_error);
  REQUIRE(now.findings.size() == 1);
  CHECK(now.findings[0].rule == "sanitizer");
  CHECK_FALSE(now.findings[0].fatal);
}
