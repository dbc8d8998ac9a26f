// `gristmill solution check`, `trace check` and `convert` as a user starts them.

#include "tests/cli/document_files.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace gristmill::test;

namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  text.replace(text.find(what), what.size(), with);
  return text;
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::string old_workloads =
  R"({"definition": "twice", "solution": null, "workload": {"uuid": "w0", "axes": {"N": 256}, "inputs": {"x": {"type": "random"}}}, "evaluation": null})"
  "\n"
  R"({"definition": "twice", "solution": null, "workload": {"uuid": "w1", "axes": {"N": 8}, "inputs": {"x": {"type": "random"}}}, "evaluation": null})"
  "\n";

const std::string old_definition =
  R"({"name": "twice", "tags": ["x"], "axes": {"N": {"type": "var"}},
  "constraints": ["N > 0"], "inputs": {"x": {"shape": ["N"], "dtype": "float32"}},
  "outputs": {"y": {"shape": ["N"], "dtype": "float32"}}, "reference": "def run(x): return x"})";

const std::string old_solution = R"({"name": "mine", "definition": "twice", "author": "somebody",
  "spec": {"language": "triton", "target_hardware": ["LOCAL"], "entry_point": "main.py::run"},
  "sources": [{"path": "main.py", "content": "def run(x): return x"}]})";

} // namespace

TEST_CASE("a solution that loads is checked with exit code 0 and its facts") {
  scratch root;
  const auto file = (root / "solution.json").string();
  write_file(file, good_solution);
  const auto done = ended({"solution", "check", file});
  CHECK(done.code == 0);
  CHECK(done.err.empty());
  CHECK(done.out.find("mine for twice, cuda_cpp, 1 source") != std::string::npos);
  const auto facts = ended({"solution", "check", file, "--json"}).json();
  CHECK(facts["ok"] == true);
  CHECK(facts["files"][0]["name"] == "mine");
  CHECK(facts["files"][0]["definition"] == "twice");
  CHECK(facts["files"][0]["entry_point"] == "k.cu::run");
  CHECK(facts["files"][0]["languages"] == nlohmann::json{"cuda_cpp"});
}

TEST_CASE("all solutions are looked at even if the first one is refused") {
  scratch root;
  const auto bad = (root / "bad.json").string();
  const auto good = (root / "good.json").string();
  write_file(bad, replaced(good_solution, "LOCAL", "local"));
  write_file(good, good_solution);
  const auto done = ended({"solution", "check", bad, good});
  CHECK(done.code == 2);
  CHECK(done.says({"bad.json:3", "spec.target_hardware", "local", "LOCAL"}));
  CHECK(done.out.find("ok       " + good) != std::string::npos);
  const auto json = ended({"solution", "check", bad, good, "--json"}).json();
  CHECK(json["ok"] == false);
  CHECK(json["files"][0]["ok"] == false);
  CHECK(json["files"][0]["errors"][0]["line"] == 3);
  CHECK(json["files"][1]["ok"] == true);
}

TEST_CASE("an absent content comes from the file beside the solution") {
  scratch root;
  const auto file = (root / "solution.json").string();
  write_file(file, replaced(good_solution, ", \"content\": \"// nothing\"", ""));
  const auto missing = ended({"solution", "check", file});
  CHECK(missing.code == 2);
  CHECK(missing.says({"sources.0.content", "k.cu"}));
  write_file(root / "k.cu", "// here");
  CHECK(ended({"solution", "check", file}).code == 0);
}

TEST_CASE("a solution that would overwrite the evaluation is refused") {
  scratch root;
  const auto file = (root / "solution.json").string();
  auto text = replaced(good_solution, "\"sources\": [",
    "\"sources\": [{\"path\": \"torch.py\", \"content\": \"x\"}, ");
  write_file(file, text);
  const auto done = ended({"solution", "check", file});
  CHECK(done.code == 2);
  CHECK(done.says({"sources.0.path", "torch.py"}));
}

TEST_CASE("a solution is compared with the problem that it is said to be for") {
  scratch root;
  const auto file = (root / "solution.json").string();
  write_file(file, good_solution);
  write_file(root / "twice/definition.json", good_definition);
  write_file(root / "twice/workload.jsonl", good_workloads);
  CHECK(ended({"solution", "check", file, "--problem", (root / "twice").string()}).code == 0);
  const auto other = ended({"solution", "check", file, "--problem", "softmax"});
  CHECK(other.code == 2);
  CHECK(other.says({"solution.json", "twice", "softmax"}));
  const auto lost = ended({"solution", "check", file, "--problem", (root / "twce").string()});
  CHECK(lost.code == 2);
  CHECK(lost.says({"twce", "did you mean"}));
  CHECK(lost.out.find("ok       " + file) != std::string::npos);
}

TEST_CASE("what is no solution is refused with what would be one") {
  scratch root;
  write_file(root / "solution_a.json", good_solution);
  const auto folder = root / "";
  const auto done =
    ended({"solution", "check", folder.string(), (root / "solutoin_a.json").string()});
  CHECK(done.code == 2);
  CHECK(done.says({"a folder, where a file is expected", "solution_a.json",
    "solutoin_a.json: no such file or folder; did you mean `"}));
  write_file(root / "definition.json", good_definition);
  CHECK(ended({"solution", "check", (root / "definition.json").string()})
          .says({"this is a definition, not a solution", "gristmill problem check"}));
  write_file(root / "binary.json", std::string("a\0b", 3));
  CHECK(ended({"solution", "check", (root / "binary.json").string()}).says({"a binary file"}));
  write_file(root / "cut.json", good_solution.substr(0, 60));
  CHECK(ended({"solution", "check", (root / "cut.json").string()}).says({"cut.json:2"}));
}

TEST_CASE("a solution of the older form is refused with a pointer to the converter") {
  scratch root;
  write_file(root / "old.json", old_solution);
  const auto done = ended({"solution", "check", (root / "old.json").string()});
  CHECK(done.code == 2);
  CHECK(done.says({"old.json", "spec.languages", "gristmill convert"}));
}

TEST_CASE("traces that load are counted by status") {
  scratch root;
  const auto file = (root / "traces.jsonl").string();
  write_file(file, good_traces);
  const auto done = ended({"trace", "check", file});
  CHECK(done.code == 0);
  CHECK(done.err.empty());
  CHECK(done.out.find("2 traces, 1 PASSED, 1 RUNTIME_ERROR") != std::string::npos);
  const auto facts = ended({"trace", "check", file, "--json"}).json()["files"][0];
  CHECK(facts["traces"] == 2);
  CHECK(facts["statuses"]["PASSED"] == 1);
  CHECK(facts["statuses"]["RUNTIME_ERROR"] == 1);
  CHECK(facts["solutions"] == 1);
}

TEST_CASE("a trace that breaks the rules of its status is refused with its line") {
  scratch root;
  const auto bad = (root / "bad.jsonl").string();
  const auto good = (root / "good.jsonl").string();
  write_file(bad, replaced(good_traces, "RUNTIME_ERROR", "PASSED"));
  write_file(good, good_traces);
  const auto done = ended({"trace", "check", bad, good});
  CHECK(done.code == 2);
  CHECK(done.says({"bad.jsonl:2", "evaluation"}));
  CHECK(done.out.find("ok       " + good) != std::string::npos);
  write_file(bad, replaced(good_traces, "PASSED", "PASED"));
  CHECK(ended({"trace", "check", bad})
          .says({"bad.jsonl:1", "evaluation.status", "did you mean `PASSED`"}));
}

TEST_CASE("a second trace of one solution on one workload is a warning") {
  scratch root;
  write_file(root / "t.jsonl", good_traces + good_traces);
  const auto done = ended({"trace", "check", (root / "t.jsonl").string()});
  CHECK(done.code == 0);
  CHECK(done.says({"warning", "w0", "w1"}));
}

TEST_CASE("a trace file that is empty, cut, binary or missing is refused") {
  scratch root;
  write_file(root / "empty.jsonl", "\n\n");
  write_file(root / "cut.jsonl", good_traces.substr(0, good_traces.size() - 20));
  write_file(root / "binary.jsonl", std::string(10, '\0'));
  const auto done =
    ended({"trace", "check", (root / "empty.jsonl").string(), (root / "cut.jsonl").string(),
      (root / "binary.jsonl").string(), (root / "emty.jsonl").string()});
  CHECK(done.code == 2);
  CHECK(done.says({"empty.jsonl: no trace in it", "cut.jsonl:2", "binary.jsonl: a binary file",
    "emty.jsonl: no such file or folder; did you mean `"}));
}

TEST_CASE("a problem of the older form is converted into one that loads") {
  scratch root;
  write_file(root / "old/definition.json", old_definition);
  write_file(root / "old/workload_trace.jsonl", old_workloads);
  write_file(root / "old/solution.json",
    replaced(old_solution, "\"entry_point\"", "\"binding\": \"torch\", \"entry_point\""));
  const auto done = ended({"convert", (root / "old/definition.json").string(),
    (root / "old/workload_trace.jsonl").string(), (root / "old/solution.json").string(), "--out",
    (root / "new").string()});
  CHECK(done.code == 0);
  CHECK(done.says({"note", "tags", "constraints"}));
  CHECK(ended({"problem", "check", (root / "new").string()}).out.find("2 workloads")
    != std::string::npos);
  CHECK(ended({"solution", "check", (root / "new/solution.json").string(), "--problem",
                (root / "new").string()})
          .code
    == 0);
}

TEST_CASE("one file is converted to stdout, ready for a file") {
  scratch root;
  write_file(root / "lines.jsonl", old_workloads);
  const auto done = ended({"convert", (root / "lines.jsonl").string()});
  CHECK(done.code == 0);
  write_file(root / "p/definition.json", old_definition);
  write_file(root / "p/workload.jsonl", done.out);
  CHECK(ended({"problem", "check", (root / "p").string()}).code == 0);
  const auto json = ended({"convert", (root / "lines.jsonl").string(), "--json"}).json();
  CHECK(json["files"][0]["kind"] == "workloads");
  CHECK(json["files"][0]["text"] == done.out);
}

TEST_CASE("what cannot be converted is refused, and the other files are converted all the same") {
  scratch root;
  write_file(root / "solution.json",
    replaced(old_solution, "\"language\": \"triton\"", "\"language\": \"tilelang\""));
  write_file(root / "definition.json", old_definition);
  write_file(root / "else.json", "{\"a\": 1}");
  const auto done =
    ended({"convert", (root / "solution.json").string(), (root / "definition.json").string(),
      (root / "else.json").string(), "--out", (root / "new").string(), "--json"});
  CHECK(done.code == 2);
  const auto json = done.json();
  CHECK(json["ok"] == false);
  CHECK(json["files"][0]["errors"][0]["field"] == "spec.language");
  CHECK(json["files"][1]["ok"] == true);
  CHECK(json["files"][1]["written_to"] == (root / "new/definition.json").string());
  CHECK(json["files"][2]["ok"] == false);
  CHECK(fs::exists(root / "new/definition.json"));
  CHECK_FALSE(fs::exists(root / "new/solution.json"));
}

TEST_CASE("nothing is overwritten by a conversion") {
  scratch root;
  write_file(root / "a/definition.json", old_definition);
  write_file(root / "b/definition.json", old_definition);
  write_file(root / "new/definition.json", "mine");
  const auto taken =
    ended({"convert", (root / "a/definition.json").string(), "--out", (root / "new").string()});
  CHECK(taken.code == 2);
  CHECK(taken.says({"definition.json: exists"}));
  CHECK(content(root / "new/definition.json") == "mine");
  const auto twice = ended({"convert", (root / "a/definition.json").string(),
    (root / "b/definition.json").string(), "--out", (root / "two").string()});
  CHECK(twice.code == 2);
  CHECK(twice.says({"b/definition.json", "a/definition.json"}));
  CHECK(fs::exists(root / "two/definition.json"));
}

TEST_CASE("several files need a folder to go to") {
  scratch root;
  write_file(root / "a.json", old_definition);
  const auto done = ended({"convert", (root / "a.json").string(), (root / "a.json").string()});
  CHECK(done.code == 2);
  CHECK(done.says({"--out"}));
  write_file(root / "file", "");
  CHECK(
    ended({"convert", (root / "a.json").string(), "--out", (root / "file").string()}).code == 2);
}

TEST_CASE("a verb without a file, or a misspelt one, is refused with what there is") {
  CHECK(ended({"solution", "check"}).code == 2);
  CHECK(ended({"trace", "chek"}).code == 2);
  CHECK(ended({"problem", "chek", "x"}).says({"chek", "check"}));
  CHECK(ended({"problem", "check", "--jsn", "x"}).says({"--jsn", "--json"}));
  CHECK(ended({"konvert"}).says({"konvert", "convert"}));
}
