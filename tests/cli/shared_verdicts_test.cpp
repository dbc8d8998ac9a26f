// Every file of the shared data gets the verdict of the official models through the command line:
// each named on its own, in one call a kind of file, and read from the JSON.

#include "tests/cli/document_files.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>

using namespace gristmill::test;

namespace {

namespace fs = std::filesystem;

/// Empty, said loudly, where there is no shared folder.
fs::path data_folder() {
  const char* shared = std::getenv("GRISTMILL_SHARED");
  if (shared == nullptr || !fs::exists(fs::path{shared} / "data/sol-execbench/expected.json")) {
    MESSAGE("SKIPPED: set GRISTMILL_SHARED to the shared folder to compare all verdicts");
    return {};
  }
  return fs::path{shared} / "data/sol-execbench";
}

bool all_fine(const nlohmann::json& expected) {
  if (!expected.is_array())
    return expected["ok"].get<bool>();
  for (const auto& row : expected)
    if (!row["ok"].get<bool>())
      return false;
  return true;
}

/// "axes.K.AxisConst.value" without the names of the official classes.
std::string leading_path(const std::string& at) {
  for (const char* name : {".Axis", ".Random", ".Safetensors", ".Scalar", ".Custom", "..[key]"})
    if (const size_t cut = at.find(name); cut != std::string::npos)
      return at.substr(0, cut);
  return at;
}

/// Each field that the official models blame is the field of an error, or the start of one.
void check_blame(const nlohmann::json& errors, const nlohmann::json& expected) {
  const auto& row = expected.is_array() ? expected[0] : expected;
  if (!row.contains("at"))
    return;
  for (const auto& each : row["at"]) {
    const auto wanted = leading_path(each.get<std::string>());
    CAPTURE(wanted);
    bool found = false;
    for (const auto& error : errors)
      found = found
        || (error["field"].is_string() && error["field"].get<std::string>().starts_with(wanted));
    CHECK(found);
  }
}

} // namespace

TEST_CASE("every shared file gets the official verdict") {
  const auto folder = data_folder();
  if (folder.empty())
    return;
  std::ifstream in(folder / "expected.json");
  const auto expected = nlohmann::json::parse(in);
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [file, verdict] : expected.items())
    files[fs::path(file).filename().string().starts_with("solution") ? "solution" : "problem"]
      .push_back(file);
  REQUIRE(files["problem"].size() > 100);
  REQUIRE(files["solution"].size() > 20);
  size_t refused = 0;
  for (const auto& [verb, names] : files) {
    std::vector<std::string> arguments{verb, "check", "--json"};
    for (const auto& name : names)
      arguments.push_back((folder / name).string());
    const auto done = ended(arguments);
    CHECK(done.code == 2);
    const auto rows = done.json()["files"];
    REQUIRE(rows.size() == names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i]);
      const auto& verdict = expected[names[i]];
      CHECK(rows[i]["ok"] == all_fine(verdict));
      if (rows[i]["ok"] == true)
        continue;
      ++refused;
      check_blame(rows[i]["errors"], verdict);
      for (const auto& error : rows[i]["errors"])
        CHECK(error["line"].is_number());
    }
  }
  CHECK(refused == 21);
}

TEST_CASE("a shared problem is shown with the official axes and shapes") {
  const auto folder = data_folder();
  if (folder.empty())
    return;
  std::ifstream in(folder / "expected.json");
  const auto expected = nlohmann::json::parse(in);
  for (const char* name : {"rmsnorm", "gqa_paged_decode", "flux_rope", "rmsnorm_bwd"}) {
    CAPTURE(name);
    const auto shown = ended({"problem", "show", (folder / name).string(), "--json"}).json();
    const auto& rows = expected[std::string(name) + "/workload.jsonl"];
    REQUIRE(shown["workloads"].size() == rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& work = shown["workloads"][i];
      CHECK(work["uuid"] == rows[i]["uuid"]);
      CHECK(work["axes"] == rows[i]["axes"]);
      CHECK(work["tolerance"] == rows[i]["tolerance"]);
      for (const char* part : {"inputs", "outputs"})
        for (const auto& [tensor, shape] : rows[i][part].items())
          CHECK(work[part][tensor]["shape"] == shape);
    }
  }
}

TEST_CASE("the shared workloads of the older form convert into a problem that loads") {
  const auto folder = data_folder();
  if (folder.empty())
    return;
  scratch root;
  const auto old = folder / "_ancestor/gemm_n4096_k4096";
  CHECK(ended({"problem", "check", (old / "workload_trace.jsonl").string()}).code == 2);
  CHECK(ended({"convert", (old / "definition.json").string(),
                (old / "workload_trace.jsonl").string(), "--out", (root / "new").string()})
          .code
    == 0);
  const auto done = ended({"problem", "check", (root / "new").string()});
  CHECK(done.code == 0);
  CHECK(done.out.find("43 workloads") != std::string::npos);
}
