#include "protocol/problem_files.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace gristmill;
namespace fs = std::filesystem;

namespace {

const std::string definition_text = R"({"name":"op","axes":{"N":{}},
  "inputs":{"x":{"shape":["N"],"dtype":"float32"}},
  "outputs":{"y":{"shape":["N"],"dtype":"float32"}},"reference":"def run(x): return x"})";
const std::string workload_text = R"({"uuid":"u","axes":{"N":4},"inputs":
  {"x":{"type":"safetensors","path":"data/x.safetensors","tensor_key":"x"}}})";

struct two_machines {
  fs::path here = fs::temp_directory_path() / ("gristmill-files-a-" + std::to_string(::getpid()));
  fs::path there = fs::temp_directory_path() / ("gristmill-files-b-" + std::to_string(::getpid()));

  two_machines() {
    fs::create_directories(here / "an op");
    write(here / "an op" / "definition.json", definition_text);
    auto line = workload_text;
    line.erase(line.find('\n'), 1);
    write(here / "an op" / "workload.jsonl", line);
    write(here / "an op" / "graph.json", "{}");
  }
  ~two_machines() {
    fs::remove_all(here);
    fs::remove_all(there);
  }

  static void write(const fs::path& file, const std::string& text) { std::ofstream{file} << text; }

  problem load() const { return *load_problem(here / "an op"); }

  /// The hashes are the store's to check; here they only have to look like some.
  static problem_listing list(const std::string& name, const std::vector<problem_text>& texts) {
    problem_listing out{name, {}};
    for (const auto& each : texts)
      out.files.push_back({each.name, {std::string(64, 'a'), each.text.size()}});
    return out;
  }
};

TEST_SUITE_BEGIN("problem files");

TEST_CASE_FIXTURE(two_machines, "the same loader reads the same problem on another machine") {
  // What lies beside them stays where it is.
  write(here / "an op" / "notes.txt", "a secret");
  fs::create_directories(here / "an op" / "baseline");
  const auto original = load();
  const auto texts = *problem_texts(original);
  REQUIRE(texts.size() == 3);
  const auto copy = write_problem(there, list("an op", texts), texts);
  REQUIRE(copy);
  CHECK(copy->name == original.name);
  CHECK(copy->def == original.def);
  CHECK(copy->workloads == original.workloads);
  CHECK(copy->definition_text == original.definition_text);
  CHECK(copy->workload_text == original.workload_text);
  CHECK(copy->graph_json == original.graph_json);
  CHECK_FALSE(fs::exists(there / "an op" / "notes.txt"));
  // A second start of the node finds the first one's folder.
  CHECK(write_problem(there, list("an op", texts), texts));
}

TEST_CASE_FIXTURE(two_machines, "a problem without a graph has two files, a built-in one none") {
  fs::remove(here / "an op" / "graph.json");
  CHECK(problem_texts(load())->size() == 2);
  const auto built_in =
    *problem_from_texts("copy", definition_text, R"({"uuid":"u","axes":{"N":4},"inputs":{}})", "");
  CHECK(problem_texts(built_in)->empty());
  CHECK(check_listing({"copy", {}}));
  CHECK(write_problem(there, {"copy", {}}, {}).error().code == errc::unsupported);
}

TEST_CASE_FIXTURE(two_machines, "a file above 1 MiB does not travel, and the message says which") {
  auto large = load();
  large.workload_text.resize(problem_file_bytes_max + 1, ' ');
  const auto refused = problem_texts(large);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_input);
  CHECK(refused.error().what.find("`workload.jsonl` has 1048577 bytes") != std::string::npos);
}

TEST_CASE_FIXTURE(
  two_machines, "a listing from a stranger names no other file and no other place") {
  const auto texts = *problem_texts(load());
  const auto good = list("an op", texts);
  CHECK(check_listing(good));
  const auto refused = [&](auto change, const std::string& says) {
    auto listing = good;
    change(listing);
    const auto answer = check_listing(listing);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == errc::invalid_input);
    CHECK_MESSAGE(answer.error().what.find(says) != std::string::npos, answer.error().what);
    CHECK_FALSE(write_problem(there, listing, texts));
  };
  for (const char* name : {"", ".", "..", "../x", "/etc", "a/b", "a\nb"})
    refused([&](auto& l) { l.name = name; }, "the name must be that of one folder");
  refused([](auto& l) { l.name.assign(256, 'x'); }, "1 to 255 bytes");
  for (const char* name : {"../definition.json", "/etc/passwd", "sub/graph.json", ""})
    refused([&](auto& l) { l.files[0].name = name; }, "is no file of a problem");
  refused([](auto& l) { l.files[0].name = "definitoin.json"; }, "did you mean `definition.json`?");
  refused([](auto& l) { l.files[2].name = "workload.jsonl"; }, "comes twice");
  refused([](auto& l) { l.files.erase(l.files.begin()); }, "definition.json is missing");
  refused([](auto& l) { l.files[1].content.bytes = problem_file_bytes_max + 1; }, "at most");
  refused([](auto& l) { l.files[1].content.sha256 = "../../etc/passwd"; }, "is no SHA-256");
  refused([](auto& l) { l.files.resize(problem_files_max + 1); }, "at most 64 travel");
  CHECK_FALSE(fs::exists(there));
}

TEST_CASE_FIXTURE(two_machines, "a listing survives its JSON, and a wrong field is named") {
  const auto good = list("an op", *problem_texts(load()));
  auto json = to_json(good);
  CHECK(*parse_listing(json, "terms.problems[0]") == good);
  json["files"][1]["name"] = "../x";
  CHECK(parse_listing(json, "terms.problems[0]").error().what.find("terms.problems[0]: ") == 0);
  json["files"][1] = {{"name", "graph.json"}, {"sha256", 5}, {"bytes", 1}};
  CHECK(parse_listing(json, "terms").error().what.find("terms.files[1]") != std::string::npos);
  CHECK_FALSE(parse_listing(ordered_json::array(), "terms"));
}

TEST_CASE_FIXTURE(two_machines, "texts that are not those of the listing are not written") {
  auto texts = *problem_texts(load());
  const auto listing = list("an op", texts);
  texts[0].text += " ";
  CHECK(write_problem(there, listing, texts).error().code == errc::invalid_input);
  texts.pop_back();
  CHECK(write_problem(there, listing, texts).error().code == errc::invalid_input);
  CHECK_FALSE(fs::exists(there));
}

TEST_CASE_FIXTURE(two_machines, "a problem that does not load leaves no folder behind") {
  auto texts = *problem_texts(load());
  texts[0].text = "{";
  CHECK_FALSE(write_problem(there, list("an op", texts), texts));
  CHECK_FALSE(fs::exists(there / "an op"));
}

TEST_CASE_FIXTURE(two_machines, "a link in the place of the folder is replaced, not followed") {
  fs::create_directories(there / "elsewhere");
  write(there / "elsewhere" / "precious", "kept");
  fs::create_directory_symlink(there / "elsewhere", there / "an op");
  const auto texts = *problem_texts(load());
  CHECK(write_problem(there, list("an op", texts), texts));
  CHECK(fs::exists(there / "elsewhere" / "precious"));
  CHECK_FALSE(fs::exists(there / "elsewhere" / "definition.json"));
}

TEST_CASE_FIXTURE(
  two_machines, "data files stay behind, and what a node lacks is said in a sentence") {
  const auto texts = *problem_texts(load());
  const auto copy = *write_problem(there, list("an op", texts), texts);
  auto missing = missing_data(copy, {});
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].find("data/x.safetensors") != std::string::npos);
  CHECK(missing[0].find("FLASHINFER_TRACE_DIR on this machine") != std::string::npos);
  fs::create_directories(there / "blobs");
  write(there / "blobs" / "x.safetensors", "tensors");
  const std::vector<fs::path> roots{there / "blobs"};
  CHECK(missing_data(copy, roots).empty());
}

TEST_SUITE_END();

} // namespace
