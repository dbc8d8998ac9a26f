#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <fstream>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

struct row {
  std::string family;
  std::string example;
  std::string state;
};

/// Cells of a line of a table; `\|` is a bar within a cell.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result{""};
  for (size_t i = 0; i < line.size(); ++i) {
    if (line.compare(i, 2, "\\|") == 0)
      result.back() += line[++i];
    else if (line[i] == '|')
      result.emplace_back();
    else
      result.back() += line[i];
  }
  for (std::string& cell : result) {
    const size_t first = cell.find_first_not_of(' ');
    const size_t last = cell.find_last_not_of(' ');
    cell = first == std::string::npos ? "" : cell.substr(first, last - first + 1);
  }
  return result;
}

std::vector<row> rows() {
  std::ifstream file(GRISTMILL_PTX_COVERAGE);
  std::vector<row> result;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = cells(line);
    if (parts.size() != 6 || (parts[4] != "runs" && parts[4] != "refused"))
      continue;
    REQUIRE(parts[2].size() > 2);
    REQUIRE(parts[2].front() == '`');
    result.push_back({parts[1], parts[2].substr(1, parts[2].size() - 2), parts[4]});
  }
  return result;
}

} // namespace

TEST_CASE("each example of the table of instructions is decoded, or refused, as the table says") {
  const std::vector<row> all = rows();
  REQUIRE(all.size() > 40);
  for (const row& r : all) {
    CAPTURE(r.family);
    CAPTURE(r.example);
    const std::string declarations = r.example == "call malloc;" ? ".extern .func malloc();\n" : "";
    const auto m =
      parse(std::string(head) + declarations + entry("{ " + r.example + " }").substr(head.size()));
    if (r.state == "runs") {
      if (!m)
        FAIL_CHECK(m.error().what);
    } else {
      REQUIRE_FALSE(m);
      CHECK(m.error().code == gristmill::errc::unsupported);
      CHECK(m.error().what.find("PTX line ") == 0);
    }
  }
}
