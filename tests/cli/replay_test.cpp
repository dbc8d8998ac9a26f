#include "tests/cli/document_files.hpp"
#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <iterator>

using namespace gristmill::test;
using nlohmann::json;

namespace {

/// The file of the corpus: fifo recorded, sept would have served another second.
std::string two_policies() {
  return source_file("tests/corpus/traces/two_policies.jsonl");
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST_CASE("a journal is replayed under its own policy and under others") {
  auto done = ended({"replay", two_policies(), "--policy", "sept", "--json"});
  REQUIRE_MESSAGE(done.code == 0, done.err);
  auto report = done.json();
  CHECK(report.at("schema") == "gristmill.replay/1");
  CHECK(report.at("recorded_policy") == "fifo");
  CHECK(report.at("recorded").at("grants") == 3);
  REQUIRE(report.at("policies").size() == 2);
  const auto& own = report["policies"][0];
  CHECK(own.at("own") == true);
  CHECK(own.at("divergence").is_null());
  CHECK(own.at("agreed") == 3);
  const auto& sept = report["policies"][1];
  CHECK(sept.at("policy") == "sept");
  CHECK(sept.at("divergence").at("position") == 2);
  CHECK(sept.at("divergence").at("recorded").at("line") == 9);
  CHECK(sept.at("divergence").at("recorded").at("agent") == "long");
  CHECK(sept.at("divergence").at("replayed").at("agent") == "short");
  CHECK(report.at("assumptions").size() >= 4);

  auto text = ended({"replay", two_policies()});
  CHECK(text.code == 0);
  for (const char* part : {"3 requests, 3 grants", "recorded under: fifo", "assumed",
         "fifo (its own): no divergence", "first divergence at grant 2, line 9", "recorded  at 0.1",
         "util %", "digests of the replays"})
    CHECK_MESSAGE(text.out.find(part) != std::string::npos, part, "\n", text.out);
}

TEST_CASE("the result and the journal of a replay go to new files, and the journal replays again") {
  scratch folder;
  auto report = (folder / "report.json").string();
  auto journal = (folder / "again.jsonl").string();
  auto done = ended({"replay", two_policies(), "--out", report, "--journal", journal});
  REQUIRE_MESSAGE(done.code == 0, done.err);
  CHECK(json::parse(text_of(report)).at("policies").size() == 3);
  auto check = ended({"replay", journal, "--check"});
  CHECK_MESSAGE(check.code == 0, check.out);
  auto again = ended({"replay", journal, "--policy", "fifo", "--json"});
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(again.json().at("policies").at(0).at("divergence").is_null());

  auto taken = ended({"replay", two_policies(), "--out", report});
  CHECK(taken.code == 2);
  CHECK(taken.err.find("exists already") != std::string::npos);
}

TEST_CASE("a replay that fails leaves no new file, and none that was there is touched") {
  scratch folder;
  auto report = (folder / "report.json").string();
  auto journal = (folder / "again.jsonl").string();
  auto refused = [&](const std::string& policy) {
    return ended(
      {"replay", two_policies(), "--policy", policy, "--out", report, "--journal", journal});
  };
  CHECK(refused("seppt").code == 2);
  CHECK_FALSE(std::filesystem::exists(report));
  CHECK_FALSE(std::filesystem::exists(journal));
  write_file(report, "mine");
  CHECK(refused("sept").code == 2);
  CHECK(text_of(report) == "mine");
  CHECK_FALSE(std::filesystem::exists(journal));
}

TEST_CASE("a run is replayed from its directory, its database and its exported lines") {
  scratch folder;
  auto run = (folder / "rehearsal").string();
  program rehearse({"run", "softmax", "--gpus", "sleep:5ms:2", "--proposer", "sleep", "--workers",
    "5", "--budget", "60attempts", "--seed", "1", "--lease-policy", "fifo", "--out", run});
  rehearse.wait();
  auto from_folder = ended({"replay", run, "--json"});
  REQUIRE_MESSAGE(from_folder.code == 0, from_folder.err);
  auto report = from_folder.json();
  CHECK(report.at("source") == "run");
  CHECK(report.at("recorded").at("grants") == 60);
  CHECK(report.at("gpus") == 2);
  CHECK(report.at("agents") == 5);
  CHECK(report.at("recorded_policy") == "fifo");

  auto shown = ended({"log", "show", run, "--json"});
  REQUIRE(shown.code == 0);
  write_file(folder / "lines.jsonl", shown.out);
  auto from_lines = ended({"replay", (folder / "lines.jsonl").string(), "--json"});
  REQUIRE_MESSAGE(from_lines.code == 0, from_lines.err);
  auto from_database = ended({"replay", run + "/run.db", "--json"});
  CHECK(from_database.out == from_folder.out);
  CHECK(from_lines.json().at("policies") == report.at("policies"));
}

TEST_CASE("what cannot be replayed is refused with file and line") {
  scratch folder;
  auto refused = [&](const std::string& text, const std::string& part) {
    write_file(folder / "j", text);
    auto done = ended({"replay", (folder / "j").string()});
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    CHECK_MESSAGE(done.err.find(part) != std::string::npos, done.err);
    auto check = ended({"replay", (folder / "j").string(), "--check"});
    CHECK(check.code == 2);
    CHECK_MESSAGE(check.out.find(part) != std::string::npos, check.out);
  };
  auto good = text_of(two_policies());
  refused("", "nothing in it");
  refused("hello\n", "line 1:");
  refused(good.substr(0, good.size() - 30), "line 14:");
  refused(good.substr(0, good.find('\n') + 1), "nobody asked for a GPU");
  auto other = good;
  other.replace(other.find("\"v\":1"), 5, "\"v\":7");
  refused(other, "reads schema 1, the line has v 7");

  auto missing = ended({"replay", (folder / "none").string()});
  CHECK(missing.code == 2);
  CHECK(missing.err.find("no such file") != std::string::npos);
  auto policy = ended({"replay", two_policies(), "--policy", "seppt"});
  CHECK(policy.code == 2);
  CHECK(policy.err.find("sept") != std::string::npos);
  auto until = ended({"replay", two_policies(), "--until", "soon"});
  CHECK(until.code == 2);
  CHECK(until.err.find("--until soon") != std::string::npos);
  auto both = ended({"replay", two_policies(), "--check", "--policy", "fifo"});
  CHECK(both.code == 2);
}

TEST_CASE("a check tells what is in a journal, as text and as JSON") {
  auto text = ended({"replay", two_policies(), "--check"});
  CHECK(text.code == 0);
  CHECK(text.out.find("3 requests, 3 grants, 3 agents, 1 GPUs: sound") != std::string::npos);
  auto found = ended({"replay", two_policies(), "--check", "--json"});
  CHECK(found.code == 0);
  CHECK(found.json().at("sound") == true);
  CHECK(found.json().at("lease_policy") == "fifo");
}

TEST_CASE("records of other clusters are imported and replayed") {
  scratch folder;
  auto out = (folder / "t.jsonl").string();
  auto done = ended({"import-trace", "openb", source_file("tests/corpus/traces/small_openb.csv"),
    "--out", out, "--gpus", "2", "--json"});
  REQUIRE_MESSAGE(done.code == 0, done.err);
  CHECK(done.json().at("requests") == 6);
  CHECK(done.json().at("lost").size() >= 5);
  auto report = ended({"replay", out, "--policy", "fifo", "--policy", "sept", "--json"});
  REQUIRE_MESSAGE(report.code == 0, report.err);
  CHECK(report.json().at("intended") == true);
  CHECK(report.json().at("policies").size() == 2);
  CHECK(report.json().at("policies").at(0).at("metrics").at("grants") == 6);

  auto again = ended(
    {"import-trace", "openb", source_file("tests/corpus/traces/small_openb.csv"), "--out", out});
  CHECK(again.code == 2);
  CHECK(again.err.find("exists already") != std::string::npos);
  auto form = ended({"import-trace", "openbb", out, "--out", (folder / "x").string()});
  CHECK(form.code == 2);
  CHECK(form.err.find("did you mean `openb`") != std::string::npos);
  auto wrong = ended({"import-trace", "swf", out, "--out", (folder / "x").string()});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("line 1: a job has 18 fields") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
}
