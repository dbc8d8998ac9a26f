#include "protocol/problem.hpp"
#include "protocol/solution.hpp"

#include "protocol/json_document.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace gristmill;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ordered_json sample() {
  return ordered_json::parse(R"({"name":"s","definition":"d","author":"a","description":"what",
    "spec":{"languages":["pytorch","triton"],"target_hardware":["B200"],"entry_point":"a/k.py::run",
      "dependencies":["torch"],"destination_passing_style":false,"binding":"torch",
      "compile_options":{"cflags":["-O1"],"ld_flags":[]}},
    "sources":[{"path":"a/k.py","content":"x"},{"path":"b.txt","content":"y"}]})");
}

/// A sample with one more source.
std::string with_path(const std::string& path) {
  auto document = sample();
  document["sources"].push_back({{"path", path}, {"content", "z"}});
  return document.dump();
}

struct solution_folder {
  std::filesystem::path path =
    std::filesystem::temp_directory_path() / ("gristmill-solution-" + std::to_string(::getpid()));
  solution_folder() { std::filesystem::create_directories(path / "own" / "a"); }
  ~solution_folder() { std::filesystem::remove_all(path); }
  void write(const char* file, const std::string& text) const {
    std::ofstream{path / file, std::ios::binary} << text;
  }
  /// Of a solution whose two contents are missing.
  std::filesystem::path write_solution() const {
    auto document = sample();
    document["sources"][0].erase("content");
    document["sources"][1]["content"] = "";
    write("own/solution.json", document.dump(2));
    return path / "own" / "solution.json";
  }
};

} // namespace

TEST_CASE("a solution is read with all its fields, in their order") {
  const auto read = parse_solution(sample().dump(), "solution.json");
  REQUIRE(read);
  CHECK(read->name == "s");
  CHECK(read->definition_name == "d");
  CHECK(read->author == "a");
  CHECK(read->description == "what");
  CHECK(read->languages == std::vector<std::string>{"pytorch", "triton"});
  CHECK_FALSE(read->is_cpp());
  CHECK(read->entry_file() == "a/k.py");
  CHECK(read->entry_function() == "run");
  CHECK(read->dependencies == std::vector<std::string>{"torch"});
  CHECK_FALSE(read->destination_passing_style);
  CHECK(read->binding == "torch");
  REQUIRE(read->options);
  CHECK(*read->options == compile_options{{"-O1"}, {"-O3", "--use_fast_math"}, {}});
  CHECK(read->sources[1] == source_file{"b.txt", "y"});
}

TEST_CASE("the style of a solution defaults to destinations, and its flags to none") {
  auto document = sample();
  document["spec"].erase("destination_passing_style");
  document["spec"].erase("compile_options");
  const auto read = parse_solution(document.dump(), "solution.json");
  REQUIRE(read);
  CHECK(read->destination_passing_style);
  CHECK_FALSE(read->options);
}

TEST_CASE("errors of a solution name file, line and field, all at once") {
  auto document = sample();
  document["author"] = 5;
  document["spec"]["languages"][1] = "tritn";
  document["sources"][1].erase("content");
  const auto what = parse_solution(document.dump(2), "s.json").error().what;
  CHECK(what
    == "s.json:9: spec.languages.1: unknown language `tritn`; did you mean `triton`?\n"
       "s.json:4: author: must be a string, not an integer\n"
       "s.json:32: sources.1.content: a string is required");
}

TEST_CASE("ignored keys of a solution become warnings with their line") {
  auto document = sample();
  document["spec"]["entrypoint"] = "x";
  document["licence"] = "y";
  std::vector<std::string> warnings;
  REQUIRE(parse_solution(document.dump(), "s.json", &warnings));
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0] == "s.json:1: ignored key `spec.entrypoint`; did you mean `entry_point`?");
  CHECK(contains(warnings[1], "ignored key `licence`"));
}

TEST_CASE("a solution of the older form is sent to the converter") {
  auto document = sample();
  document["spec"].erase("languages");
  document["spec"]["language"] = "python";
  const auto what = parse_solution(document.dump(), "s.json").error().what;
  CHECK(contains(what, "s.json:1: spec.languages: "));
  CHECK(contains(what, "gristmill convert"));
}

TEST_CASE("paths that replace or shadow are refused here, though the format allows them") {
  for (const char* path : {"definition.json", "Config.JSON", "workload.jsonl", "solution.json",
         "_reference.py", "torch.py", "sitecustomize.py", "sol_execbench/__init__.py",
         "torch/nn/x.py", "json.py", "os.so", "math.cpython-312-x86_64-linux-gnu.so", "x.pth",
         "a/x.pth", "./k.py", "a/./x.py", "a//x.py", "dir/", "a\\k.py", "C:/k.py", "c:k.py",
         "B.txt", "a/K.py", "a", "b.txt/c.py", "new\nline.py"}) {
    CAPTURE(path);
    const auto read = parse_solution(with_path(path), "s.json");
    REQUIRE_FALSE(read);
    CHECK(contains(read.error().what, "s.json:1: sources."));
    CHECK(contains(read.error().what, "refused here, though the format allows it"));
    const auto official =
      parse_solution(with_path(path), "s.json", nullptr, solution_rules::official);
    REQUIRE(official);
    CHECK_FALSE(dangerous_paths(*official).empty());
  }
}

TEST_CASE("ordinary paths are not taken for dangerous ones") {
  for (const char* path : {"kernel.py", "utils.py", "torch_kernel.py", "src/torch.py",
         "ops/math.py", "cutlass/gemm.h", "json/value.hpp", "torch.cu", "torch.md", "..k/x.py",
         "a/definition.json", "reference.py", "deep/er/still.cuh", "café.py"}) {
    CAPTURE(path);
    CHECK(parse_solution(with_path(path), "s.json"));
  }
}

TEST_CASE_FIXTURE(solution_folder, "missing contents are filled from the files beside") {
  const auto file = write_solution();
  write("own/a/k.py", "def run(): pass\n");
  write("own/b.txt", "text");
  const auto read = load_solution(file);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().what));
  CHECK(read->sources[0].content == "def run(): pass\n");
  CHECK(read->sources[1].content == "text");
  CHECK_FALSE(parse_solution(ordered_json::parse(std::ifstream{file}).dump(), "s.json"));
}

TEST_CASE_FIXTURE(solution_folder, "a missing, empty or broken file beside is named") {
  const auto file = write_solution();
  write("own/b.txt", "");
  auto what = load_solution(file).error().what;
  CHECK(
    contains(what, "sources.0.content: absent or empty, and `" + (path / "own/a/k.py").string()));
  CHECK(contains(what, "is not there"));
  CHECK(contains(what, "sources.1.content: absent or empty"));
  CHECK(contains(what, "is empty too"));
  write("own/b.txt", "\xff");
  CHECK(contains(load_solution(file).error().what, "is not UTF-8"));
  CHECK(load_solution(path / "none.json").error().code == errc::not_found);
}

TEST_CASE_FIXTURE(solution_folder, "nothing outside the folder is read through a link") {
  const auto file = write_solution();
  write("secret", "s");
  std::filesystem::create_symlink(path / "secret", path / "own" / "b.txt");
  std::filesystem::create_directory_symlink(path, path / "own" / "up");
  CHECK(contains(load_solution(file).error().what, "lies outside the folder"));
  auto document = sample();
  document["sources"][1] = {{"path", "up/secret"}};
  write("own/solution.json", document.dump());
  CHECK(contains(load_solution(file).error().what, "lies outside the folder"));
  document["sources"][1] = {{"path", "../secret"}};
  write("own/solution.json", document.dump());
  const auto what = load_solution(file).error().what;
  CHECK(contains(what, "sources.1.path: `../secret` must not have the component `..`"));
}

TEST_CASE("a solution for another definition does not fit") {
  auto given = parse_solution(sample().dump(), "s.json");
  REQUIRE(given);
  problem target;
  target.def.name = "d";
  CHECK(check_solution_fits(*given, target));
  target.def.name = "e";
  CHECK(contains(check_solution_fits(*given, target).error().what, "is for `d`, but"));
}

TEST_CASE("a written solution reads as the same one, defaults filled in") {
  for (const bool full : {true, false}) {
    auto document = sample();
    if (!full)
      document["spec"] = ordered_json::parse(
        R"({"languages":[],"target_hardware":["LOCAL"],"entry_point":"a/k.py::"})");
    const auto read = parse_solution(document.dump(), "s.json");
    REQUIRE(read);
    const auto written = to_json(*read);
    CHECK(parse_solution(written, "s.json").value() == *read);
    CHECK(written.ends_with("}\n"));
    CHECK(contains(written, full ? "\"binding\": \"torch\"" : "\"binding\": null"));
    CHECK(contains(written, full ? "\"cflags\": [" : "\"compile_options\": null"));
  }
}

TEST_CASE("bytes that are not UTF-8 are written as the replacement character") {
  solution given = parse_solution(sample().dump(), "s.json").value();
  given.sources[0].content = "a\xff";
  CHECK(parse_solution(to_json(given), "s.json")->sources[0].content == "a\xef\xbf\xbd");
}
