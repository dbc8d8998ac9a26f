#include "simulation/import/trace_import.hpp"

#include "journal/event_line.hpp"
#include "simulation/import/import_fields.hpp"
#include "simulation/replay/lease_trace.hpp"
#include "simulation/replay/replay.hpp"

#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

using namespace gristmill;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

namespace fs = std::filesystem;

fs::path corpus(const std::string& name) {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  REQUIRE(source != nullptr);
  return fs::path(source) / "tests/corpus/traces" / name;
}

struct imported {
  import_summary summary;
  lease_trace trace;
};

imported import_file(import_form form, const fs::path& file, const import_options& options) {
  auto jobs = read_import(form, file, options);
  REQUIRE_MESSAGE(jobs, jobs.error().what);
  lease_trace_reader reader;
  uint64_t line = 0;
  auto summary = write_lease_trace(
    std::move(*jobs), form, file.filename().string(), options, [&](const std::string& text) {
      auto e = parse_line(text);
      REQUIRE_MESSAGE(e, e.error().what);
      auto taken = reader.take(*e, ++line);
      REQUIRE_MESSAGE(taken, taken.error().what);
    });
  REQUIRE_MESSAGE(summary, summary.error().what);
  auto trace = reader.finish();
  REQUIRE_MESSAGE(trace, trace.error().what);
  return {*summary, *trace};
}

/// What is said of one line (after a good header for openb).
std::string complaint(import_form form, const std::string& text) {
  auto reader = make_import_reader(form);
  imported_trace out;
  uint64_t number = 0;
  if (form == import_form::openb) {
    auto header = reader->take("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
                               "creation_time,deletion_time,scheduled_time",
      ++number, out);
    REQUIRE(header);
  }
  auto taken = reader->take(text, ++number, out);
  return taken ? std::string{} : taken.error().what;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool tells(const std::vector<std::string>& all, const std::string& part) {
  for (const auto& one : all)
    if (says(one, part))
      return true;
  return false;
}

} // namespace

TEST_CASE("SWF: submit and run times become arrivals and holds, scaled and in order") {
  import_options options;
  options.gpus = 2;
  auto [summary, trace] = import_file(import_form::swf, corpus("small.swf"), options);
  CHECK(summary.jobs == 6);
  CHECK(trace.intended);
  CHECK(trace.source == "trace of swf");
  REQUIRE(trace.requests.size() == 6);
  CHECK(trace.gpus.size() == 2);
  // Jobs 1 and 3 come first, in the order of the file; 100 s is the beginning.
  const auto& first = trace.requests[0];
  CHECK(first.asked == milliseconds{0});
  CHECK(first.hold == seconds{36});
  CHECK(first.estimate == seconds{72});
  CHECK(trace.problems.at(first.problem) == "user-3");
  CHECK(trace.agents.at(first.agent) == "job-1");
  CHECK(trace.requests[1].asked == milliseconds{0});
  CHECK(trace.requests[1].estimate == seconds{0});
  CHECK(trace.requests[2].asked == milliseconds{600});
  // Job 5 runs 900 s after scaling, which is cut to the cap.
  CHECK(trace.requests[3].hold == seconds{600});
  CHECK(trace.requests[3].what == lease_class::official);
  CHECK(trace.problems.at(trace.requests[4].problem) == "user-unknown");
  CHECK(trace.requests[5].asked == seconds{100});
  CHECK(tells(summary.lost, "1 jobs without a run time"));
  CHECK(tells(summary.lost, "1 jobs on several processors"));
  CHECK(tells(summary.lost, "1 jobs that waited for another job"));
  CHECK(tells(summary.lost, "1 holds are cut to 600 s"));
}

TEST_CASE("SWF: every field is checked and named") {
  CHECK(complaint(import_form::swf, "; a comment").empty());
  CHECK(complaint(import_form::swf, "").empty());
  CHECK(complaint(import_form::swf, "  \t ; also one").empty());
  CHECK(says(complaint(import_form::swf, "1 2 3"), "18 fields between blanks, not 3"));
  CHECK(
    says(complaint(import_form::swf, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"), "not 19"));
  CHECK(says(complaint(import_form::swf, "1 2 3 x 5 6 7 8 9 10 11 12 13 14 15 16 17 18"),
    "field 4 (run time): 'x' is not a number"));
  CHECK(says(complaint(import_form::swf, "1 -2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"),
    "field 2 (submit time)"));
  CHECK(says(
    complaint(import_form::swf, "1 1e99 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"), "within 1e15"));
  CHECK(
    says(complaint(import_form::swf, "1 nan 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"), "field 2"));
}

TEST_CASE("OpenB: finished pods with GPUs hold them from their start to their end") {
  import_options options;
  options.time_scale = 0.1;
  options.gpus = 3;
  auto [summary, trace] = import_file(import_form::openb, corpus("small_openb.csv"), options);
  CHECK(summary.jobs == 3);
  REQUIRE(trace.requests.size() == 6);
  CHECK(trace.requests[0].hold == seconds{359});
  CHECK(trace.problems.at(trace.requests[0].problem) == "LS");
  CHECK(trace.requests[1].asked == seconds{40});
  CHECK(trace.requests[1].hold == seconds{100});
  for (size_t i = 2; i < 6; ++i) {
    CHECK(trace.requests[i].asked == seconds{100});
    CHECK(trace.requests[i].hold == seconds{50});
    CHECK(trace.agents.at(trace.requests[i].agent) == "mine-6");
    CHECK(trace.problems.at(trace.requests[i].problem) == "none");
  }
  CHECK(tells(summary.lost, "1 pods without a GPU"));
  CHECK(tells(summary.lost, "1 pods that still ran"));
  CHECK(tells(summary.lost, "1 pods that never ran"));
  CHECK(tells(summary.lost, "1 pods that shared a GPU"));
  CHECK(tells(summary.lost, "1 pods with several GPUs"));
  CHECK(tells(summary.lost, "1 pods that wanted certain models"));
  CHECK(tells(summary.lost, "1 pods with no time"));
}

TEST_CASE("OpenB: every field is checked and named") {
  auto wrong = [](const std::string& line) { return complaint(import_form::openb, line); };
  CHECK(wrong("a,1,1,1,1000,,LS,Succeeded,1,3,2").empty());
  CHECK(says(wrong("a,1,1"), "11 fields between commas, not 3"));
  CHECK(says(wrong("a,1,1,1,1000,,LS,Succeeded,1,3,2,4"), "not 12"));
  CHECK(says(wrong("a,1,1,x,1000,,LS,Succeeded,1,3,2"), "field num_gpu"));
  CHECK(says(wrong("a,1,1,65,1000,,LS,Succeeded,1,3,2"), "num_gpu: 65 is not within 0..64"));
  CHECK(says(wrong("a,1,1,1,,,LS,Succeeded,1,3,2"), "field gpu_milli"));
  CHECK(says(wrong("a,1,1,1,1000,,LS,Succeeded,-1,3,2"), "creation_time"));
  CHECK(says(wrong("a,1,1,1,1000,,LS,Succeeded,1,x,2"), "field deletion_time"));
  CHECK(says(wrong("a,1,1,1,1000,\"V,P\",LS,Succeeded,1,3,2"), "between quotes"));
  auto reader = make_import_reader(import_form::openb);
  imported_trace out;
  CHECK(says(reader->take("a,b,c", 1, out).error().what, "the header must be name,cpu_milli"));
}

TEST_CASE("Gavel: steps tell how long a job is among those of its type") {
  import_options options;
  options.time_scale = 0.01;
  options.mean_job_s = 2000;
  options.gpus = 2;
  auto [summary, trace] = import_file(import_form::gavel, corpus("small_gavel.trace"), options);
  REQUIRE(trace.requests.size() == 5);
  // 1000 and 3000 steps around a mean of 2000 s.
  CHECK(trace.requests[0].hold == seconds{10});
  CHECK(trace.requests[1].hold == seconds{30});
  CHECK(trace.requests[2].hold == seconds{20});
  CHECK(trace.requests[2].weight == 2);
  CHECK(trace.requests[3].asked == trace.requests[2].asked);
  CHECK(trace.requests[4].weight == 1);
  CHECK(trace.problems.at(trace.requests[0].problem) == "Small net (batch 8)");
  CHECK(tells(summary.lost, "4 jobs have steps and no times"));
  CHECK(tells(summary.lost, "1 deadlines"));
  CHECK(tells(summary.lost, "1 weights that are not whole"));
}

TEST_CASE("Gavel: every field is checked and named") {
  auto wrong = [](const char* steps, const char* gpus, const char* weight, const char* arrival) {
    return complaint(import_form::gavel,
      fmt::format("a\tb\tc\td\t1\t{}\t{}\t{}\t-1\t{}", steps, gpus, weight, arrival));
  };
  CHECK(wrong("1", "1", "1", "0").empty());
  CHECK(says(complaint(import_form::gavel, "a b c"), "10 fields between tabs, not 1"));
  CHECK(says(wrong("0", "1", "1", "0"), "field 6"));
  CHECK(says(wrong("1", "0", "1", "0"), "field 7"));
  CHECK(says(wrong("1", "1.5", "1", "0"), "field 7"));
  CHECK(says(wrong("1", "99", "1", "0"), "field 7"));
  CHECK(says(wrong("1", "1", "0", "0"), "field 8"));
  CHECK(says(wrong("1", "1", "1", "-1"), "field 10"));
}

TEST_CASE("without a number of GPUs there are as many as make the load 80 %") {
  import_options options;
  options.hold_cap_s = 0;
  auto [summary, trace] = import_file(import_form::swf, corpus("small.swf"), options);
  // 36 + 18 + 9 + 900 + 0.6 + 1.2 s in 100 s: 9.648 busy, over 0.8 is 12.06.
  CHECK(summary.gpus == 13);
  CHECK(summary.offered_load == doctest::Approx(9.648 / 13));
  CHECK(summary.hold_max_s == doctest::Approx(900));
}

TEST_CASE("a limit keeps the earliest requests and whole jobs only") {
  import_options options;
  options.limit = 4;
  auto [summary, trace] = import_file(import_form::openb, corpus("small_openb.csv"), options);
  CHECK(trace.requests.size() == 2);
  CHECK(tells(summary.lost, "1 later jobs are beyond --limit"));
}

TEST_CASE("options out of range are refused with their flag") {
  auto wrong = [](auto change) {
    import_options options;
    change(options);
    auto read = read_import(import_form::swf, corpus("small.swf"), options);
    return read ? std::string{} : read.error().what;
  };
  CHECK(says(wrong([](auto& o) { o.time_scale = 0; }), "--time-scale"));
  CHECK(says(wrong([](auto& o) { o.time_scale = NAN; }), "--time-scale"));
  CHECK(says(wrong([](auto& o) { o.gpus = 5000; }), "--gpus"));
  CHECK(says(wrong([](auto& o) { o.limit = 0; }), "--limit"));
  CHECK(says(wrong([](auto& o) { o.limit = 16'001; }), "--limit"));
  CHECK(says(wrong([](auto& o) { o.hold_cap_s = -1; }), "--hold-cap"));
  CHECK(says(wrong([](auto& o) { o.mean_job_s = 0; }), "--mean-job"));
  auto form = parse_import_form("swv");
  REQUIRE_FALSE(form);
  CHECK(says(form.error().what, "did you mean `swf`"));
}

TEST_CASE("files that are missing, empty, too long or hostile are refused with their line") {
  auto folder = fs::temp_directory_path() / fmt::format("gristmill-import-{}", ::getpid());
  fs::create_directories(folder);
  auto wrong = [&](const std::string& text) {
    auto file = folder / "x";
    std::ofstream(file, std::ios::binary) << text;
    auto read = read_import(import_form::swf, file, {});
    return read ? std::string{} : read.error().what;
  };
  CHECK(says(wrong(""), "no job with a GPU"));
  CHECK(says(wrong("; only words\n"), "no job with a GPU and a run time in its 1 lines"));
  CHECK(says(wrong(std::string(70'000, '1') + "\n"), "line 1: longer than 65536 bytes"));
  CHECK(says(wrong(std::string(1'000, '\0')), "line 1:"));
  CHECK(says(wrong("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\r\n1 2"), "line 2:"));
  CHECK(wrong("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18").empty());
  auto missing = read_import(import_form::swf, folder / "none", {});
  CHECK(missing.error().code == errc::not_found);
  CHECK(read_import(import_form::swf, folder, {}).error().code == errc::invalid_input);
  fs::remove_all(folder);
}

TEST_CASE("names from outside are cut and made printable") {
  CHECK(name_field("a\x1b[31mb\xff") == "a_[31mb_");
  CHECK(name_field(std::string(500, 'n')).size() == 120);
}

TEST_CASE("an imported trace can be replayed under several policies") {
  import_options options;
  options.gpus = 1;
  auto [summary, trace] = import_file(import_form::gavel, corpus("small_gavel.trace"), options);
  replay_options wanted;
  wanted.policies = {"fifo", "sept", "stride"};
  auto report = replay_trace(trace, wanted);
  REQUIRE_MESSAGE(report, report.error().what);
  REQUIRE(report->policies.size() == 3);
  for (const auto& one : report->policies) {
    CHECK(one.metrics.grants == 5);
    CHECK(one.metrics.wait_max_s > 0);
  }
}

TEST_CASE("the traces of others that lie beside the project are imported whole") {
  const char* shared = std::getenv("GRISTMILL_SHARED");
  if (shared == nullptr) {
    MESSAGE("SKIPPED: GRISTMILL_SHARED names no folder with data/traces");
    return;
  }
  auto traces = fs::path(shared) / "data/traces";
  import_options options;
  auto openb = import_file(import_form::openb, traces / "openb_pod_list_default.csv", options);
  CHECK(openb.summary.requests > 1000);
  auto gavel =
    import_file(import_form::gavel, traces / "gavel_physical_max_min_fairness.trace", options);
  CHECK(gavel.summary.jobs == 96);
}
