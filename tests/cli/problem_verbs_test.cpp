// `gristmill problem check|show|list` as a user starts them.

#include "tests/cli/document_files.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace gristmill::test;

namespace {

namespace fs = std::filesystem;

/// A folder with two good problems, `one` and `deep/two`.
struct problem_folders {
  scratch root;
  fs::path one = root / "one";
  fs::path two = root / "deep/two";

  problem_folders() {
    for (const auto& folder : {one, two}) {
      write_file(folder / "definition.json", good_definition);
      write_file(folder / "workload.jsonl", good_workloads);
    }
  }
  std::string top() const { return one.parent_path().string(); }
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  text.replace(text.find(what), what.size(), with);
  return text;
}

size_t lines_in(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

} // namespace

TEST_CASE_FIXTURE(problem_folders, "a problem that loads is checked with exit code 0 and no word") {
  for (const auto& path : {one, one / "definition.json", one / "workload.jsonl"}) {
    const auto done = ended({"problem", "check", path.string()});
    CHECK(done.code == 0);
    CHECK(done.err.empty());
    CHECK(done.out.starts_with("ok"));
    CHECK(lines_in(done.out) == 1);
  }
}

TEST_CASE_FIXTURE(
  problem_folders, "a folder of problem folders is walked, one line each, in order") {
  const auto done = ended({"problem", "check", top()});
  CHECK(done.code == 0);
  CHECK(lines_in(done.out) == 2);
  CHECK(done.out.find(two.string()) < done.out.find(one.string()));
}

TEST_CASE_FIXTURE(
  problem_folders, "links that lead back into themselves do not lead the walk astray") {
  fs::create_directory_symlink(top(), two.parent_path() / "back");
  const auto done = ended({"problem", "check", top()});
  CHECK(done.code == 0);
  CHECK(lines_in(done.out) == 2);
}

TEST_CASE_FIXTURE(problem_folders, "all problems are looked at even if the first one is refused") {
  write_file(one / "definition.json", replaced(good_definition, "float32", "float31"));
  const auto done = ended({"problem", "check", one.string(), two.string()});
  CHECK(done.code == 2);
  CHECK(done.says({"definition.json:4", "inputs.x.dtype", "float31", "did you mean `float32`"}));
  CHECK(done.out.find("refused  " + one.string()) != std::string::npos);
  CHECK(done.out.find("ok       " + two.string()) != std::string::npos);
}

TEST_CASE_FIXTURE(problem_folders, "both files of a problem are looked at even if one is refused") {
  write_file(one / "definition.json", replaced(good_definition, "\"name\"", "\"nama\""));
  write_file(one / "workload.jsonl", replaced(good_workloads, "\"random\"", "\"randon\""));
  const auto done = ended({"problem", "check", one.string()});
  CHECK(done.code == 2);
  CHECK(done.says({"definition.json", "name", "workload.jsonl:1", "inputs.x.type", "`random`"}));
}

TEST_CASE_FIXTURE(
  problem_folders, "as JSON the same facts come, each error with file, line, field and rule") {
  const auto good = ended({"problem", "check", top(), "--json"}).json();
  CHECK(good["ok"] == true);
  REQUIRE(good["files"].size() == 2);
  CHECK(good["files"][1]["path"] == one.string());
  CHECK(good["files"][1]["name"] == "twice");
  CHECK(good["files"][1]["workloads"] == 2);
  CHECK(good["files"][1]["errors"].empty());

  write_file(one / "workload.jsonl", replaced(good_workloads, "\"N\": 6}", "\"N\": -6}"));
  const auto done = ended({"problem", "check", one.string(), "--json"});
  CHECK(done.code == 2);
  CHECK(done.err.empty());
  const auto bad = done.json();
  CHECK(bad["ok"] == false);
  const auto error = bad["files"][0]["errors"][0];
  CHECK(error["file"] == (one / "workload.jsonl").string());
  CHECK(error["line"] == 3);
  CHECK(error["field"] == "axes.N");
  CHECK(error["rule"].get<std::string>().find("0 or more") != std::string::npos);
}

TEST_CASE_FIXTURE(problem_folders, "a workload that leaves a shape open is refused with its line") {
  write_file(one / "workload.jsonl", replaced(good_workloads, "\"N\": 6}", "\"M\": 6}"));
  const auto done = ended({"problem", "check", one.string()});
  CHECK(done.code == 2);
  CHECK(done.says({"workload.jsonl:3", "axes.half.expression", "`N`"}));
}

TEST_CASE_FIXTURE(
  problem_folders, "ignored keys are warnings that name the known one, and the exit code stays 0") {
  write_file(one / "workload.jsonl",
    replaced(good_workloads, "\"max_atol\"", "\"required_match_ratio\": 0.98, \"max_atol\""));
  const auto done = ended({"problem", "check", one.string()});
  CHECK(done.code == 0);
  CHECK(done.says({"warning", "workload.jsonl:3", "required_match_ratio",
    "did you mean `required_matched_ratio`"}));
  CHECK(
    ended({"problem", "check", one.string(), "--json"}).json()["files"][0]["warnings"][0]["line"]
    == 3);
}

TEST_CASE_FIXTURE(problem_folders, "the other files of a problem folder are checked with it") {
  write_file(one / "config.json", "{\"iterations\": 5}");
  CHECK(ended({"problem", "check", one.string()}).code == 0);
  write_file(one / "config.json", "{\"iteration\": 5}");
  CHECK(ended({"problem", "check", one.string()}).says({"config.json", "iteration", "iterations"}));
  write_file(one / "config.json", "{}");
  write_file(one / "graph.json", "{}");
  const auto done = ended({"problem", "check", one.string()});
  CHECK(done.code == 2);
  CHECK(done.says({"graph.json", "schema"}));
}

TEST_CASE_FIXTURE(problem_folders, "a file of inputs that is missing is a warning, not an error") {
  const std::string given =
    "{\"uuid\": \"w\", \"axes\": {\"N\": 4}, \"inputs\": {\"x\": {\"type\": "
    "\"safetensors\", \"path\": \"a/x.safetensors\", \"tensor_key\": \"x\"}}}";
  write_file(one / "workload.jsonl", given);
  const auto done = ended({"problem", "check", one.string()});
  CHECK(done.code == 0);
  CHECK(done.says({"warning", "workload.jsonl:1", "inputs.x.path", "blob missing"}));
  write_file(one / "x.safetensors", "");
  CHECK(ended({"problem", "check", one.string()}).err.empty());
  fs::remove(one / "x.safetensors");
  write_file(two / "a/x.safetensors", "");
  CHECK(ended({"problem", "check", one.string()}, {{"FLASHINFER_TRACE_DIR", two.string()}})
          .err.empty());
}

TEST_CASE_FIXTURE(problem_folders, "a misspelt path names the nearest one that is there") {
  const auto done = ended({"problem", "check", top() + "/onee", top() + "/depp/two"});
  CHECK(done.code == 2);
  CHECK(done.says({"onee: no such file or folder; did you mean `" + one.string() + "`",
    "depp/two: no such file or folder", "did you mean `" + two.parent_path().string() + "`"}));
}

TEST_CASE_FIXTURE(problem_folders, "what is no problem is refused with what would be one") {
  write_file(root / "notes/read.txt", "text");
  fs::create_directory(root / "empty");
  CHECK(
    ended({"problem", "check", (root / "notes").string()}).says({"no problem folder", "read.txt"}));
  CHECK(
    ended({"problem", "check", (root / "empty").string()}).says({"no problem folder", "empty"}));
  CHECK(ended({"problem", "check", (root / "notes/read.txt").string()}).says({".json", ".jsonl"}));
  const auto device = ended({"problem", "check", "/dev/null"});
  CHECK(device.code == 2);
}

TEST_CASE_FIXTURE(problem_folders, "a half problem names the file that it lacks") {
  fs::remove(one / "workload.jsonl");
  write_file(one / "workloads.jsonl", good_workloads);
  CHECK(ended({"problem", "check", one.string()})
          .says({"workload.jsonl: no such file", "workloads.jsonl"}));
  fs::remove(two / "definition.json");
  CHECK(ended({"problem", "check", two.string()}).says({"definition.json: no such file"}));
}

TEST_CASE_FIXTURE(problem_folders,
  "binary files, folders in place of files and unreadable ones are refused by name") {
  write_file(one / "definition.json",
    std::string("\x7f"
                "ELF\0\1",
      6));
  CHECK(
    ended({"problem", "check", one.string()}).says({"definition.json: a binary file", "offset 4"}));
  fs::remove(two / "workload.jsonl");
  fs::create_directory(two / "workload.jsonl");
  const auto done = ended({"problem", "check", two.string()});
  CHECK(done.code == 2);
  CHECK(done.says({"workload.jsonl: a folder, where a file is expected"}));
  write_file(one / "definition.json", good_definition);
  REQUIRE(chmod((one / "workload.jsonl").c_str(), 0) == 0);
  if (getuid() != 0) // Root reads everything.
    CHECK(ended({"problem", "check", one.string()}).says({"workload.jsonl: cannot be opened"}));
}

TEST_CASE_FIXTURE(problem_folders, "a document of another kind names the command that takes it") {
  write_file(one / "solution.json", good_solution);
  const auto done = ended({"problem", "check", (one / "solution.json").string()});
  CHECK(done.code == 2);
  CHECK(done.says({"this is a solution, not a definition", "gristmill solution check"}));
}

TEST_CASE_FIXTURE(
  problem_folders, "workloads wrapped in traces are refused with a pointer to the converter") {
  write_file(one / "workload.jsonl",
    "{\"definition\": \"twice\", \"solution\": null, \"workload\": {\"uuid\": \"w\", \"axes\": "
    "{\"N\": "
    "4}, \"inputs\": {}}, \"evaluation\": null}\n");
  const auto done = ended({"problem", "check", one.string()});
  CHECK(done.code == 2);
  CHECK(done.says({"workload.jsonl:1", "gristmill convert"}));
}

TEST_CASE_FIXTURE(problem_folders, "control characters of a file do not reach the terminal") {
  write_file(one / "definition.json",
    replaced(good_definition, "\"name\": \"twice\"", "\"name\": \"twice\", \"\\u001b[2J\": 1"));
  const auto done = ended({"problem", "check", one.string()});
  CHECK(done.code == 0);
  CHECK(done.err.find('\x1b') == std::string::npos);
  CHECK(done.says({"ignored key"}));
}

TEST_CASE_FIXTURE(
  problem_folders, "a problem is shown with its axes, shapes, bytes, tolerances and sources") {
  const auto done = ended({"problem", "show", one.string()});
  CHECK(done.code == 0);
  for (const char* text :
    {"N // 2", "[32]", "256 B", "scalar 0.5", "ones", "standard normal", "atol 0.25", "half=3"}) {
    CAPTURE(text);
    CHECK(done.out.find(text) != std::string::npos);
  }
  const auto shown =
    ended({"problem", "show", (one / "definition.json").string(), "--json"}).json();
  CHECK(shown["definition"] == "twice");
  CHECK(shown["axes"]["half"]["expression"] == "N // 2");
  const auto first = shown["workloads"][0];
  CHECK(first["axes"]["half"] == 32);
  CHECK(first["inputs"]["x"]["shape"] == nlohmann::json{64});
  CHECK(first["inputs"]["x"]["bytes"] == 256);
  CHECK(first["inputs"]["norm_weight"]["drawn"] == "ones");
  CHECK(first["inputs"]["norm_weight"]["bytes"] == 64);
  CHECK(first["inputs"]["eps"]["value"] == 0.5);
  CHECK(first["inputs"]["eps"]["shape"].is_null());
  CHECK(first["input_bytes"] == 320);
  CHECK(first["output_bytes"] == 256);
  CHECK(shown["workloads"][1]["tolerance"]["max_atol"] == 0.25);
  CHECK(shown["workloads"][1]["tolerance"]["required_matched_ratio"] == 0.99);
}

TEST_CASE("built-in problems are shown by name, and a misspelt name gets the nearest one") {
  CHECK(ended({"problem", "show", "softmax"}).code == 0);
  const auto done = ended({"problem", "show", "softmaks"});
  CHECK(done.code == 2);
  CHECK(done.says({"softmaks", "softmax"}));
}

TEST_CASE_FIXTURE(problem_folders, "a workload that cannot be resolved is shown with the reason") {
  write_file(one / "workload.jsonl", "{\"uuid\": \"w\", \"axes\": {}, \"inputs\": {}}");
  const auto done = ended({"problem", "show", one.string()});
  CHECK(done.code == 0);
  CHECK(done.out.find("cannot be resolved: axes.half.expression") != std::string::npos);
}

TEST_CASE_FIXTURE(problem_folders, "a problem that does not load is not shown") {
  write_file(one / "definition.json", "{");
  const auto done = ended({"problem", "show", one.string(), "--json"});
  CHECK(done.code == 2);
  CHECK(done.out.empty());
  CHECK(done.says({"definition.json:1"}));
}

TEST_CASE_FIXTURE(
  problem_folders, "the list has the built-in problems, or those below the folders") {
  const auto built_in = ended({"problem", "list", "--json"}).json();
  REQUIRE(built_in.size() >= 3);
  CHECK(built_in[0].contains("dtypes"));
  const auto done = ended({"problem", "list", top(), "--json"});
  CHECK(done.code == 0);
  const auto found = done.json();
  REQUIRE(found.size() == 2);
  CHECK(found[0]["name"] == "two");
  CHECK(found[0]["path"] == two.string());
  CHECK(found[0]["workloads"] == 2);
  CHECK(found[0]["dtypes"] == nlohmann::json{"float32", "bfloat16"});
  CHECK(found[0]["kinds"] == nlohmann::json{"random", "scalar"});
  CHECK(lines_in(ended({"problem", "list", one.string(), two.string()}).out) == 2);
}

TEST_CASE_FIXTURE(problem_folders, "the list goes on after a problem that does not load") {
  write_file(two / "definition.json", "[]");
  const auto done = ended({"problem", "list", top()});
  CHECK(done.code == 2);
  CHECK(lines_in(done.out) == 1);
  CHECK(done.says({"definition.json", "must be an object"}));
}
