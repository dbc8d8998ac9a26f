#pragma once

#include "actors/node_context.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <string>

namespace gristmill::test {

/// A run as its coordinator has it, whose problem is a folder so that it has to travel.
struct travelling_run : small_run {
  std::shared_ptr<run_context> here;

  travelling_run() {
    auto folder_of_problem = folder.path / "given" / "softmax";
    std::filesystem::create_directories(folder_of_problem);
    const auto& made = context->problems.at("softmax");
    auto write = [&](const char* name, const std::string& text) {
      std::ofstream{folder_of_problem / name, std::ios::binary} << text;
    };
    write("definition.json", made.definition_text);
    write("workload.jsonl", made.workload_text);
    write("graph.json", made.graph_json);
    auto loaded = load_problem(folder_of_problem);
    REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().what));
    here = std::make_shared<run_context>(*context);
    here->problems.clear();
    here->problems.emplace("softmax", *loaded);
    here->toolchain = "clang-19.1.7";
    here->rounds = 2;
  }

  run_terms terms(bool rehearsal = false) {
    run_terms_rest rest;
    rest.run = "run-1";
    rest.rehearsal = rehearsal;
    rest.proposer = rehearsal ? "sleep" : "template";
    auto made = make_run_terms(*here, rest);
    REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
    return *made;
  }
};

/// As a keeper that has fetched it.
inline void copy_blob(const blob_store& from, blob_store& to, const blob_ref& ref) {
  auto text = from.get(ref);
  REQUIRE_MESSAGE(text, (text ? "" : text.error().what));
  REQUIRE(to.put(*text));
}

} // namespace gristmill::test
