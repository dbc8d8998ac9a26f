// `gristmill export` and `gristmill score` on a run of the program itself: what a run gives away
// loads under our own checks, and a score refuses what would make it say too much.

#include "tests/cli/program.hpp"

#include <cstdio>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

using namespace gristmill::test;
using nlohmann::json;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  REQUIRE_MESSAGE(in, file.string());
  return text.str();
}

std::string write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

struct answer {
  int code = 0;
  std::string out;
  std::string err;
};

answer gristmill(std::vector<std::string> arguments) {
  program p(std::move(arguments));
  const int code = p.wait();
  return {code, p.out(), p.err()};
}

/// One run of one problem and its export, made once for all cases.
struct exported_run {
  scratch folder;
  std::string run = (folder / "softmax-run").string();
  fs::path out = folder / "out";
  answer exporting;

  exported_run() {
    const auto ran = gristmill({"run", "softmax", "--seed", "1", "--workers", "1", "--toolchain",
      "clang", "--budget", "3attempts", "--out", run});
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    exporting = gristmill({"export", run, "--out", out.string()});
    INFO(exporting.err);
    REQUIRE(exporting.code == 0);
  }
};

/// The cases change copies of its files, never the files.
class export_fixture {
public:
  export_fixture() {
    static const exported_run once;
    made = &once;
  }

  std::string traces() const { return (made->out / "traces.jsonl").string(); }
  std::string bounds() const { return (made->out / "bounds.json").string(); }

  std::string changed_bounds(const std::function<void(ordered_json&)>& change) const {
    auto table = ordered_json::parse(read(bounds()));
    change(table);
    return write(folder / "bounds.json", table.dump());
  }
  /// Each line in turn; one that becomes null is left out.
  std::string changed_traces(const std::function<void(ordered_json&)>& change) const {
    std::istringstream lines(read(traces()));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      auto one = ordered_json::parse(line);
      change(one);
      if (!one.is_null())
        text += one.dump() + "\n";
    }
    return write(folder / "traces.jsonl", text);
  }

  json scored(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "score");
    arguments.push_back("--json");
    const auto got = gristmill(std::move(arguments));
    INFO(got.err);
    REQUIRE(got.code == 0);
    return json::parse(got.out);
  }
  /// Exit code 2, all of the texts on stderr, nothing on stdout.
  void refused(
    const std::vector<std::string>& arguments, const std::vector<std::string>& wanted) const {
    const auto got = gristmill(arguments);
    CAPTURE(got.err);
    CHECK(got.code == 2);
    CHECK(got.out.empty());
    for (const auto& text : wanted)
      CHECK_MESSAGE(got.err.find(text) != std::string::npos, text);
  }

  const exported_run* made = nullptr;
  scratch folder;
};

} // namespace

TEST_CASE_FIXTURE(export_fixture, "what a run exports loads under our own checks") {
  const auto solution = (made->out / "softmax/solution.json").string();
  const auto checked = gristmill({"solution", "check", solution, "--problem", "softmax"});
  INFO(checked.out, checked.err);
  CHECK(checked.code == 0);
  CHECK(checked.err.find("warning") == std::string::npos);
  const auto own =
    gristmill({"solution", "check", solution, "--problem", (made->out / "softmax").string()});
  CHECK(own.code == 0);
  const auto other = gristmill({"solution", "check", solution, "--problem", "rmsnorm"});
  CHECK_MESSAGE(other.code == 2, "it is for another problem");
  CHECK(gristmill({"problem", "check", (made->out / "softmax").string()}).code == 0);

  const auto traced = gristmill({"trace", "check", traces(), "--json"});
  INFO(traced.out);
  CHECK(traced.code == 0);
  CHECK(traced.out.find("\"PASSED\": 3") != std::string::npos);
  CHECK(read(traces()) == read(made->out / "softmax/traces.jsonl"));
}

TEST_CASE_FIXTURE(export_fixture, "an export says that its times are modelled, and its methods") {
  CHECK(made->exporting.out.find("1 of 1 problems") != std::string::npos);
  CHECK(made->exporting.out.find("MODELLED") != std::string::npos);
  std::istringstream lines(read(traces()));
  for (std::string line; std::getline(lines, line);) {
    const auto evaluation = json::parse(line).at("evaluation");
    CHECK(evaluation.at("environment").at("hardware") == "mock:h200");
    CHECK(evaluation.at("correctness").at("extra").at("origin") == "MODELLED");
    CHECK(evaluation.at("performance").at("reference_latency_ms") == 0);
  }
  const auto table = json::parse(read(bounds()));
  const auto sol = table.at("t_sol_method").get<std::string>();
  const auto base = table.at("t_b_method").get<std::string>();
  CHECK(sol != base);
  CHECK(sol.find("bytes") != std::string::npos);
  CHECK(sol.find("plain kernel") == std::string::npos);
  CHECK(base.find("plain kernel") != std::string::npos);
  CHECK(base.find("MODELLED") != std::string::npos);
}

TEST_CASE_FIXTURE(export_fixture, "an export goes into a new folder only, and changes no other") {
  const auto before = read(traces());
  refused({"export", made->run, "--out", made->out.string()}, {"not an empty folder", "--out"});
  CHECK(read(traces()) == before);
  const auto file = write(folder / "file", "mine");
  refused({"export", made->run, "--out", file}, {"not an empty folder"});
  CHECK(read(file) == "mine");
}

TEST_CASE_FIXTURE(export_fixture, "a run that does not exist is refused with the nearest one") {
  const auto near = "did you mean `" + made->run + "`";
  const auto wrong = made->run.substr(0, made->run.size() - 1) + "m";
  const auto target = folder / "target";
  refused({"export", wrong, "--out", target.string()}, {"is not a run", near});
  CHECK_FALSE(fs::exists(target));
  refused({"export", wrong + "/", "--out", target.string()}, {near});
  refused({"report", wrong}, {near});
}

TEST_CASE_FIXTURE(export_fixture, "text and JSON of a score agree, and both name the table") {
  const auto as_json = scored({traces(), "--bounds", bounds()});
  const auto text = gristmill({"score", traces(), "--bounds", bounds()});
  REQUIRE(text.code == 0);
  CAPTURE(text.out);
  const auto shows = [&](const std::string& what) {
    CHECK_MESSAGE(text.out.find(what) != std::string::npos, what);
  };
  const auto fixed = [](const json& number, int digits) {
    char out[64];
    std::snprintf(out, sizeof out, "%.*f", digits, number.get<double>());
    return std::string{out};
  };
  const auto& problem = as_json.at("problems").at(0);
  shows(fixed(problem.at("score_mean"), 4));
  shows(fixed(problem.at("score_median"), 4));
  shows(fixed(problem.at("speedup_geomean"), 3) + "x");
  shows(problem.at("workloads_passed").dump() + "/" + problem.at("workloads_total").dump());
  shows(as_json.at("bounds").at("sha256").get<std::string>());
  shows(as_json.at("bounds").at("source").get<std::string>());
  shows("mock:h200");
  shows("MODELLED");
  CHECK(as_json.at("modelled") == true);
  CHECK(as_json.at("suite").at("workloads_passed") == 3);
  // The fastest kernel was at least as fast as the baseline, which scores one half.
  CHECK(as_json.at("suite").at("score_mean").get<double>() >= 0.5);
  CHECK(as_json.at("suite").at("score_mean").get<double>() < 1);
}

TEST_CASE_FIXTURE(export_fixture, "a table without provenance is refused by the missing field") {
  for (const char* field : {"source", "date", "device", "clock", "schema"}) {
    const auto table = changed_bounds([&](ordered_json& t) { t.erase(field); });
    refused({"score", traces(), "--bounds", table}, {table, field});
  }
  const auto older = changed_bounds([](ordered_json& t) {
    t["schema"] = "gristmill.bounds/1";
    for (const char* field : {"clock", "t_sol_method", "t_b_method"})
      t.erase(field);
    ordered_json rows = t["problems"]["softmax"]["workloads"];
    t["problems"]["softmax"] = rows;
  });
  refused({"score", traces(), "--bounds", older}, {"clock: missing", "gristmill.bounds/2"});
  const auto dummy =
    changed_bounds([](ordered_json& t) { t["problems"]["softmax"]["sol_is_dummy"] = true; });
  refused({"score", traces(), "--bounds", dummy}, {"softmax", "sol_is_dummy"});
  refused({"score", traces(), "--bounds", (folder / "none.json").string()}, {"no such file"});
  refused({"score", traces()}, {"--bounds"});
}

TEST_CASE_FIXTURE(export_fixture, "times of one device are not scored against another's") {
  const auto b200 = changed_bounds([](ordered_json& t) { t["device"] = "NVIDIA B200"; });
  refused({"score", traces(), "--bounds", b200}, {"mock:h200", "B200", "--device"});
  refused({"score", traces(), "--bounds", b200, "--device", "NVIDIA H200"}, {"mock:h200"});
  CHECK(scored({traces(), "--bounds", b200, "--device", "mock:h200"}).at("other_device") == true);
  bool first = true;
  const auto mixed = changed_traces([&](ordered_json& t) {
    if (std::exchange(first, false))
      t["evaluation"]["environment"]["hardware"] = "NVIDIA B200";
  });
  refused({"score", mixed, "--bounds", bounds()}, {"two devices"});
}

TEST_CASE_FIXTURE(export_fixture, "what has no trace counts 0 and stays in the denominators") {
  const auto whole = scored({traces(), "--bounds", bounds()});
  const double full = whole.at("suite").at("score_mean").get<double>();
  double lost = 0;
  const auto short_one = changed_traces([&](ordered_json& t) {
    if (t["workload"]["uuid"] == "softmax-odd-33x77")
      t = nullptr;
  });
  for (const auto& w : whole.at("problems").at(0).at("workloads"))
    if (w.at("uuid") == "softmax-odd-33x77")
      lost = w.at("score").get<double>();
  REQUIRE(lost > 0);
  const auto missing = scored({short_one, "--bounds", bounds()});
  CHECK(missing.at("suite").at("workloads") == 3);
  CHECK(missing.at("suite").at("workloads_passed") == 2);
  CHECK(missing.at("problems").at(0).at("missing") == 1);
  CHECK(missing.at("problems").at(0).at("score_mean").get<double>()
    == doctest::Approx(full - lost / 3));

  // A problem of the table that nobody has tried halves the score of the suite.
  const auto two = changed_bounds([](ordered_json& t) {
    t["problems"]["untried"]["workloads"]["u"] = {{"t_sol_ns", 1.0}, {"t_b_ns", 2.0}};
  });
  const auto half = scored({traces(), "--bounds", two});
  CHECK(half.at("suite").at("problems") == 2);
  CHECK(half.at("suite").at("workloads") == 4);
  CHECK(half.at("suite").at("score_mean").get<double>() == doctest::Approx(full / 2));
}

TEST_CASE_FIXTURE(export_fixture, "a trace of an unknown problem or workload is refused by name") {
  const auto unknown = changed_traces([](ordered_json& t) { t["definition"] = "softmux"; });
  refused({"score", unknown, "--bounds", bounds()}, {"softmux", "did you mean `softmax`"});
  const auto workload = changed_traces([](ordered_json& t) { t["workload"]["uuid"] = "other"; });
  refused({"score", workload, "--bounds", bounds()}, {"`other`", "softmax"});
  refused({"score", traces(), traces(), "--bounds", bounds()}, {"second trace"});
}

TEST_CASE_FIXTURE(export_fixture, "a time below T_SOL counts 0 until somebody has looked at it") {
  const std::string key = "softmax:softmax-clock-8192x2048";
  const auto fast = changed_traces([](ordered_json& t) {
    if (t["workload"]["uuid"] == "softmax-clock-8192x2048")
      t["evaluation"]["performance"]["latency_ms"] = 0.000001;
  });
  const auto row = [](const json& score) {
    for (const auto& w : score.at("problems").at(0).at("workloads"))
      if (w.at("uuid") == "softmax-clock-8192x2048")
        return w;
    return json{};
  };
  const auto before = row(scored({fast, "--bounds", bounds()}));
  CHECK(before.at("needs_audit") == true);
  CHECK(before.at("score") == 0);
  CHECK(before.at("speedup") == 1);
  CHECK(before.at("t_k_ns").get<double>() == doctest::Approx(1));
  const auto text = gristmill({"score", fast, "--bounds", bounds()});
  CHECK(text.out.find("audit") != std::string::npos);
  const auto after = row(scored({fast, "--bounds", bounds(), "--audited", key}));
  CHECK(after.at("audited") == true);
  CHECK(after.at("score") == 1);
  refused({"score", traces(), "--bounds", bounds(), "--audited", key}, {"nothing to audit"});
  refused({"score", fast, "--bounds", bounds(), "--audited", "softmax:clock"}, {"PROBLEM:UUID"});
}
