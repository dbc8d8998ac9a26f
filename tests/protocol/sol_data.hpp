#pragma once

#include "protocol/json_document.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Folders with problems, verdicts and vectors: the one of our own, and the shared one when the
/// environment names it. What is missing is said loudly.
inline std::vector<std::filesystem::path> sol_roots() {
  std::vector<std::filesystem::path> roots;
  if (const char* source = std::getenv("GRISTMILL_SOURCE"); source != nullptr)
    roots.push_back(std::filesystem::path{source} / "tests" / "corpus" / "sol");
  else
    MESSAGE("SKIPPED: set GRISTMILL_SOURCE to the source folder to run our own conformance files");
  const char* shared = std::getenv("GRISTMILL_SHARED");
  if (shared != nullptr && std::filesystem::exists(shared))
    roots.push_back(std::filesystem::path{shared} / "data" / "sol-execbench");
  else
    MESSAGE("SKIPPED: set GRISTMILL_SHARED to the shared folder to run the conformance vectors");
  return roots;
}

inline std::vector<ordered_json> vectors_of(const std::string& kind) {
  std::vector<ordered_json> out;
  for (const auto& root : sol_roots()) {
    auto text = read_text_file(root / "_vectors" / "vectors.jsonl", 1 << 20);
    REQUIRE(text);
    for (size_t begin = 0; begin < text->size();) {
      const size_t end = std::min(text->find('\n', begin), text->size());
      auto line = parse_json(std::string_view{*text}.substr(begin, end - begin), "vectors.jsonl");
      REQUIRE(line);
      if (line->at("kind") == kind)
        out.push_back(std::move(*line));
      begin = end + 1;
    }
  }
  return out;
}

/// "axes.K.AxisConst.value" without the names of the official classes.
inline std::string leading_path(const std::string& at) {
  for (const char* name : {".Axis", ".Random", ".Safetensors", ".Scalar", ".Custom", "..[key]"})
    if (const size_t cut = at.find(name); cut != std::string::npos)
      return at.substr(0, cut);
  return at;
}

/// The message names each field that the official loader blames.
inline void check_blame(const std::string& what, const ordered_json& expect) {
  if (!expect.contains("at"))
    return;
  for (const auto& each : expect["at"]) {
    const auto path = leading_path(each.get<std::string>());
    CAPTURE(what);
    CAPTURE(path);
    CHECK(what.find(path) != std::string::npos);
  }
}

} // namespace gristmill
