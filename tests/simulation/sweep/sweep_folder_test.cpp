#include "simulation/sweep/sweep_folder.hpp"

#include "simulation/report/lab_metrics.hpp"
#include "tests/simulation/report/made_up.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace gristmill;
using namespace gristmill::test;

namespace {

namespace fs = std::filesystem;

const lab_identity program{"1.2.3", "abcdef0123456789"};

/// A new folder, removed at the end.
class temporary {
public:
  temporary() {
    std::string name = (fs::temp_directory_path() / "gristmill-sweep-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  temporary(const temporary&) = delete;
  temporary& operator=(const temporary&) = delete;
  ~temporary() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }

private:
  fs::path path_;
};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void put(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

void cut(const fs::path& file, size_t bytes) {
  const auto text = content(file);
  REQUIRE(text.size() > bytes);
  put(file, text.substr(0, text.size() - bytes));
}

result<sweep_folder> open(const fs::path& folder, const lab_plan& plan) {
  return sweep_folder::open(folder, plan, "scenario = \"made-up\"\n", program);
}

bool same(const lab_row& a, const lab_row& b) {
  bool curves = a.curve.size() == b.curve.size();
  for (size_t i = 0; curves && i < a.curve.size(); ++i)
    curves = a.curve[i].geomean == b.curve[i].geomean && a.curve[i].time_s == b.curve[i].time_s
      && a.curve[i].gpu_hours == b.curve[i].gpu_hours && a.curve[i].wins == b.curve[i].wins
      && a.curve[i].above_two == b.curve[i].above_two
      && a.curve[i].median_sol == b.curve[i].median_sol;
  return curves && a.variant == b.variant && a.seed == b.seed && a.digest == b.digest
    && a.values == b.values && a.wait_shares == b.wait_shares;
}

} // namespace

TEST_CASE("what a sweep has finished is there again, to the last bit") {
  temporary place;
  const auto plan = made_up_plan({"equal", "oracle"}, 2);
  const auto rows = made_up_rows(plan);
  {
    auto folder = open(place / "s", plan);
    REQUIRE(folder);
    CHECK(folder->rows().empty());
    REQUIRE(folder->append(rows[3]));
    REQUIRE(folder->append(rows[1]));
  }
  auto again = open(place / "s", plan);
  REQUIRE(again);
  REQUIRE(again->rows().size() == 2);
  CHECK(same(again->rows()[0], rows[1]));
  CHECK(same(again->rows()[1], rows[3]));
  CHECK(again->have() == run_set{{0, 2}, {1, 2}});
}

TEST_CASE("a run whose line was cut by a kill is done anew, wherever the cut was") {
  const auto plan = made_up_plan({"equal"}, 3);
  const auto rows = made_up_rows(plan);
  for (const char* file : {"results.csv", "curves.csv", "waits.csv"}) {
    CAPTURE(file);
    temporary place;
    {
      auto folder = open(place / "s", plan);
      REQUIRE(folder);
      REQUIRE(folder->append(rows[0]));
      REQUIRE(folder->append(rows[1]));
    }
    cut(place / "s" / file, 3);
    auto again = open(place / "s", plan);
    REQUIRE(again);
    REQUIRE(again->rows().size() == 1);
    CHECK(same(again->rows()[0], rows[0]));
    REQUIRE(again->append(rows[1]));
    REQUIRE(again->append(rows[2]));
    REQUIRE(again->finish(rows));
    auto last = open(place / "s", plan);
    // The same process holds the lock of `again`, which does not exclude itself.
    REQUIRE(last);
    CHECK(last->rows().size() == 3);
    for (size_t i = 0; i < 3; ++i)
      CHECK(same(last->rows()[i], rows[i]));
  }
}

TEST_CASE("finished files are equal whatever the order of the runs and the kills before") {
  const auto plan = made_up_plan({"equal", "oracle"}, 2);
  const auto rows = made_up_rows(plan);
  temporary place;
  auto first = open(place / "a", plan);
  REQUIRE(first);
  for (const auto& row : rows)
    REQUIRE(first->append(row));
  REQUIRE(first->finish(rows));
  {
    auto second = open(place / "b", plan);
    REQUIRE(second);
    REQUIRE(second->append(rows[2]));
    REQUIRE(second->append(rows[0]));
  }
  cut(place / "b" / "results.csv", 1);
  auto second = open(place / "b", plan);
  REQUIRE(second);
  REQUIRE(second->finish(rows));
  for (const char* file : {"results.csv", "curves.csv", "waits.csv", "plan.txt"}) {
    CAPTURE(file);
    CHECK(content(place / "a" / file) == content(place / "b" / file));
  }
}

TEST_CASE("another plan, another build and a changed scenario are refused with what changed") {
  temporary place;
  const auto plan = made_up_plan({"equal", "oracle"}, 2);
  REQUIRE(open(place / "s", plan));
  const auto refused = [&](const lab_plan& with, const lab_identity& who, const char* part) {
    auto folder = sweep_folder::open(place / "s", with, "", who);
    REQUIRE_FALSE(folder);
    CAPTURE(folder.error().what);
    CHECK(folder.error().code == errc::invalid_input);
    CHECK(folder.error().what.find(part) != std::string::npos);
  };
  auto other = plan;
  other.seeds = 3;
  refused(other, program, "was: seeds = 2");
  refused(other, program, "is: seeds = 3");
  refused(plan, {"1.2.3", "fedcba"}, "is: build = fedcba");
  other = plan;
  other.variants[1].what.planner = "mine";
  refused(other, program, "planner=mine");
  other = plan;
  other.variants[0].what.patience_s = 77;
  refused(other, program, "77");
  CHECK(open(place / "s", plan));
}

TEST_CASE("a file that somebody has edited is refused with its line, and nothing is lost") {
  temporary place;
  const auto plan = made_up_plan({"equal"}, 2);
  const auto rows = made_up_rows(plan);
  {
    auto folder = open(place / "s", plan);
    REQUIRE(folder);
    REQUIRE(folder->append(rows[0]));
    REQUIRE(folder->append(rows[1]));
  }
  const auto file = place / "s" / "results.csv";
  const auto good = content(file);
  const auto refused = [&](const std::string& text, const char* part) {
    put(file, text);
    auto folder = open(place / "s", plan);
    REQUIRE_FALSE(folder);
    CAPTURE(folder.error().what);
    CHECK(folder.error().what.find(part) != std::string::npos);
    CHECK(content(file) == text);
  };
  refused("variant,seed\n", "results.csv:1");
  refused(good + "7,8,9\n", "results.csv:4");
  refused(good + good.substr(good.find('\n') + 1), "stands twice");
  put(file, good);
  CHECK(open(place / "s", plan)->rows().size() == 2);
}

TEST_CASE("a folder with something else in it is left alone") {
  temporary place;
  const auto plan = made_up_plan({"equal"}, 1);
  fs::create_directories(place / "papers");
  put(place / "papers" / "thesis.txt", "years of work");
  const auto folder = open(place / "papers", plan);
  REQUIRE_FALSE(folder);
  CHECK(folder.error().what.find("something else") != std::string::npos);
  put(place / "file", "x");
  CHECK_FALSE(open(place / "file", plan));
  CHECK_FALSE(fs::exists(place / "papers" / "plan.txt"));
}
