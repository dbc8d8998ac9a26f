#include "protocol/problem.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace gristmill;

namespace {

const std::string definition_text = R"({"name":"op","axes":{"N":{}},
  "inputs":{"x":{"shape":["N"],"dtype":"float32"}},
  "outputs":{"y":{"shape":["N"],"dtype":"float32"}},"reference":"def run(x): return x","tags":[]})";
const std::string workload_text = R"({"uuid":"u","axes":{"N":4},"inputs":{}})";

struct problem_folder {
  std::filesystem::path path =
    std::filesystem::temp_directory_path() / ("gristmill-problem-" + std::to_string(::getpid()));
  problem_folder() {
    std::filesystem::create_directories(path);
    write("definition.json", definition_text);
    write("workload.jsonl", workload_text);
  }
  ~problem_folder() { std::filesystem::remove_all(path); }
  void write(const char* file, const std::string& text) const {
    std::ofstream{path / file} << text;
  }
};

} // namespace

TEST_CASE_FIXTURE(problem_folder, "a problem has the name of its folder, however that is written") {
  for (const auto& spelling : {path, path / "", path / "."}) {
    auto loaded = load_problem(spelling);
    REQUIRE(loaded);
    CHECK(loaded->name == path.filename().string());
    CHECK(loaded->def.name == "op");
    CHECK(loaded->workloads.size() == 1);
    CHECK(loaded->graph_json.empty());
    CHECK(loaded->definition_text == definition_text);
    CHECK(loaded->workload_text == workload_text);
    CHECK(loaded->warnings.size() == 1);
  }
}

TEST_CASE_FIXTURE(problem_folder, "the operator graph comes along when there is one") {
  write("graph.json", "{}");
  CHECK(load_problem(path)->graph_json == "{}");
}

TEST_CASE_FIXTURE(problem_folder, "what is missing or empty is named") {
  write("workload.jsonl", "\n");
  CHECK(load_problem(path).error().what.find("no workload") != std::string::npos);
  std::filesystem::remove(path / "workload.jsonl");
  CHECK(load_problem(path).error().code == errc::not_found);
  CHECK(load_problem(path / "nowhere").error().what.find("no such problem") != std::string::npos);
}

TEST_CASE("a built-in problem comes from texts") {
  auto made = problem_from_texts("copy", definition_text, workload_text, "g");
  REQUIRE(made);
  CHECK(made->name == "copy");
  CHECK(made->folder.empty());
  CHECK(made->graph_json == "g");
  auto broken = problem_from_texts("copy", "{", workload_text, "");
  REQUIRE_FALSE(broken);
  CHECK(broken.error().what.find("copy/definition.json") != std::string::npos);
}
