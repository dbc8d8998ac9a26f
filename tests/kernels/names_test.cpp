// Kernels are found by what a reference does, never by what a problem is called.

#include "kernels/lowering/program_space.hpp"
#include "tests/kernels/corpus.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace gristmill;
using namespace gristmill::test;

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool in_word(char c) {
  return c == '_' || c == '-' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool starts = at == 0 || !in_word(text[at - 1]);
    const size_t end = at + word.size();
    if (starts && (end == text.size() || !in_word(text[end])))
      return true;
  }
  return false;
}

/// What the problems of the shared folder are called, by their folders and by their files.
std::set<std::string> shared_names(const fs::path& root) {
  std::set<std::string> names;
  for (const auto& place : fs::directory_iterator(root)) {
    if (!fs::exists(place.path() / "workload.jsonl"))
      continue;
    names.insert(place.path().filename().string());
    if (const auto loaded = load_problem(place.path()))
      names.insert(loaded->def.name);
  }
  // Words for operators that any problem may be called, and two of ours are.
  for (const char* word : {"gemm", "rmsnorm", "softmax"})
    names.erase(word);
  return names;
}

} // namespace

TEST_CASE("nothing under kernels names a problem of the shared folder") {
  const char* shared = std::getenv("GRISTMILL_SHARED");
  const char* source = std::getenv("GRISTMILL_SOURCE");
  if (shared == nullptr || source == nullptr) {
    MESSAGE("SKIPPED: GRISTMILL_SHARED or GRISTMILL_SOURCE is not set");
    return;
  }
  const auto names = shared_names(fs::path(shared) / "data" / "sol-execbench");
  CHECK(names.size() >= 40);
  for (const auto& file : fs::recursive_directory_iterator(fs::path(source) / "kernels")) {
    if (!file.is_regular_file())
      continue;
    const auto text = read_file(file.path());
    for (const auto& name : names) {
      const bool named = has_word(text, name) || has_word(file.path().stem().string(), name);
      CHECK_MESSAGE(!named, file.path().string() << " names " << name);
    }
  }
}

TEST_CASE("a word is found where it stands alone") {
  CHECK(has_word("a flux b", "flux"));
  CHECK(has_word("flux", "flux"));
  CHECK_FALSE(has_word("influx fluxes flux_2", "flux"));
}

TEST_CASE("a problem with every name changed has the same programs") {
  size_t compared = 0;
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto other = renamed(one);
    const auto space = program_space::make(one.target, one.graph);
    const auto other_space = program_space::make(other.target, other.graph);
    REQUIRE(space.has_value() == other_space.has_value());
    if (!space)
      continue;
    ++compared;
    CHECK(space->size() == other_space->size());
    REQUIRE(space->partitions() == other_space->partitions());
    for (size_t partition = 0; partition < space->partitions(); ++partition) {
      const auto first = space->first(partition);
      CHECK(space->key(first) == other_space->key(other_space->first(partition)));
      const auto made = space->generate(first);
      const auto other_made = other_space->generate(first);
      REQUIRE(made.has_value() == other_made.has_value());
      // Names alone may differ, which line breaks do not depend on.
      if (made)
        CHECK(std::count(made->source.begin(), made->source.end(), '\n')
          == std::count(other_made->source.begin(), other_made->source.end(), '\n'));
    }
  }
  CHECK(compared >= 20);
}
