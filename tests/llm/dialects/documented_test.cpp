#include "protocol/json_document.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <regex>
#include <sstream>

using namespace gristmill;

namespace {

std::filesystem::path checkout() {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  REQUIRE_MESSAGE(source != nullptr, "run by ctest, or set GRISTMILL_SOURCE to the checkout");
  return source;
}

/// The sources of the tests in a folder and below it, with each name of a test on one line.
std::string tests_below(const std::filesystem::path& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(checkout() / folder))
    if (entry.path().extension() == ".cpp")
      all += *read_text_file(entry.path(), size_t{1} << 20);
  // A long name begins in a line of its own and may go on in the next one.
  all = std::regex_replace(all, std::regex{R"(TEST_CASE\(\n *")"}, "TEST_CASE(\"");
  return std::regex_replace(all, std::regex{R"("\n *")"}, "");
}

/// The traps of docs/model-dialects.md, from its table on.
std::string table_of_traps() {
  const auto page = read_text_file(checkout() / "docs/model-dialects.md", size_t{1} << 20);
  REQUIRE(page);
  const auto begin = page->find("## Traps");
  REQUIRE(begin != std::string::npos);
  return page->substr(begin);
}

} // namespace

TEST_CASE("every test that docs/model-dialects.md names is there, and every trap has one") {
  const auto page = table_of_traps();
  const auto tests = tests_below("tests/llm/dialects");
  auto rest = std::string_view{page};
  size_t named = 0;
  while (true) {
    const auto open = rest.find('"');
    if (open == std::string_view::npos)
      break;
    const auto close = rest.find('"', open + 1);
    REQUIRE(close != std::string_view::npos);
    std::string name{rest.substr(open + 1, close - open - 1)};
    // In the text a name may go on in the next line.
    for (auto& c : name)
      c = c == '\n' ? ' ' : c;
    // Words of a server that stand in quotes in the middle column.
    if (name.find(' ') != std::string::npos && name != "budget exceeded") {
      CAPTURE(name);
      CHECK(tests.find("TEST_CASE(\"" + name + "\")") != std::string::npos);
      ++named;
    }
    rest.remove_prefix(close + 1);
  }
  CHECK(named > 30);
  size_t traps = 0;
  for (size_t at = 0; (at = tests.find("TEST_CASE(\"", at)) != std::string::npos; ++at) {
    const auto start = at + std::string_view{"TEST_CASE(\""}.size();
    const auto name = tests.substr(start, tests.find("\")", start) - start);
    if (!name.starts_with("trap ") && !name.starts_with("report"))
      continue;
    CAPTURE(name);
    CHECK(page.find("\"" + name + "\"") != std::string::npos);
    ++traps;
  }
  CHECK(traps > 30);
}

TEST_CASE("every report that docs/model-dialects.md lists has a test of its name") {
  const auto page = table_of_traps();
  const auto tests = tests_below("tests/llm") + tests_below("tests/planning");
  const std::regex named{R"~(TEST_CASE(_FIXTURE\(\s*\w+,\s*|\()"([^"]*)")~"};
  std::vector<std::string> names;
  for (std::sregex_iterator at{tests.begin(), tests.end(), named}, end; at != end; ++at)
    names.push_back((*at)[2].str());
  // Of the first column: the repository, perhaps behind its owner, and the number.
  const std::regex report{R"(([\w.-]+)(#\d+))"};
  size_t reports = 0;
  std::istringstream lines{page};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| "))
      continue;
    const auto cell = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator at{cell.begin(), cell.end(), report}, end; at != end; ++at) {
      CAPTURE(at->str());
      const auto repository = (*at)[1].str();
      // A name may have the repository once for several numbers; #24 is no part of #244.
      const std::regex number{(*at)[2].str() + "(?![0-9])"};
      CHECK(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return name.find(repository) != std::string::npos && std::regex_search(name, number);
      }));
      ++reports;
    }
  }
  CHECK(reports > 45);
}
