#pragma once

#include "tests/cli/program.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

namespace gristmill::test {

namespace fs = std::filesystem;
using nlohmann::json;

inline std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Two tiny problems with a softmax of the program's own, so that no other reference is needed, and
/// candidates for them.
struct tiny_run {
  scratch folder;
  std::vector<std::string> arguments;

  explicit tiny_run(const std::string& gpus = "mock:h200:2") {
    arguments = {"run"};
    for (const char* name : {"tiny_a", "tiny_b"}) {
      auto to = folder / name;
      fs::create_directories(to);
      for (const char* file : {"definition.json", "graph.json"})
        fs::copy_file(source_file(std::string("kernels/builtin/softmax/") + file), to / file);
      int rows = name == std::string("tiny_a") ? 9 : 4;
      std::ofstream(to / "workload.jsonl") << fmt::format(
        R"({{"axes":{{"rows":{},"classes":33}},"inputs":{{"logits":{{"type":"random"}}}},)"
        R"("uuid":"only","tolerance":{{"max_atol":1e-06,"max_rtol":0.0001}}}})"
        "\n",
        rows);
      arguments.push_back(to.string());
    }
    arguments.insert(arguments.end(),
      {"--proposer", "scripted", "--seed", "1", "--gpus", gpus, "--workers", "3", "--oracle",
        "native", "--toolchain", "clang"});
    for (const char* problem : {"tiny_a", "tiny_b"}) {
      for (int i = 0; i < 3; ++i)
        give(problem, "right", fmt::format("right_{}", i));
      give(problem, "wrong", "wrong_0");
      give(problem, "does_not_compile", "broken_0");
    }
  }

  /// A candidate of the corpus with another text, so that it is another candidate.
  void give(const std::string& problem, const std::string& from, const std::string& name) {
    auto base = folder / (problem + "_" + name);
    std::ofstream(base.string() + ".cu")
      << text_of(source_file("tests/corpus/candidates/" + from + ".cu")) << "// " << name << "\n";
    std::ofstream(base.string() + ".plan.json")
      << text_of(source_file("tests/corpus/candidates/" + from + ".plan.json"));
    arguments.push_back("--candidate");
    arguments.push_back(problem + "=" + base.string() + ".cu");
  }

  std::vector<std::string> starting(const fs::path& out) const {
    auto all = arguments;
    all.insert(all.end(), {"--out", out.string(), "--json"});
    return all;
  }
};

/// What the log has of these kinds.
inline std::vector<json> log_of(const fs::path& run, const std::vector<std::string>& kinds) {
  std::vector<std::string> arguments = {"log", "show", run.string(), "--json"};
  program show(arguments);
  REQUIRE(show.wait() == 0);
  std::vector<json> out;
  std::istringstream lines(show.out());
  for (std::string line; std::getline(lines, line);) {
    auto e = json::parse(line);
    if (std::find(kinds.begin(), kinds.end(), e.at("kind").get<std::string>()) != kinds.end())
      out.push_back(std::move(e));
  }
  return out;
}

using verdict_set = std::map<std::tuple<std::string, std::string, std::string>, std::string>;

inline verdict_set verdicts_of(const fs::path& run) {
  verdict_set out;
  for (const auto& e : log_of(run, {"verdict"})) {
    const auto& data = e.at("data");
    auto name = std::make_tuple(e.at("problem").get<std::string>(),
      e.at("candidate").get<std::string>(), data.at("key").get<std::string>());
    CHECK_MESSAGE(!out.contains(name), "a second verdict for " << std::get<2>(name));
    out[name] = fmt::format("{} {} {}", data.at("status").get<std::string>(),
      data.at("objective_ns").get<uint64_t>(), data.at("speedup").get<double>());
  }
  return out;
}

} // namespace gristmill::test
