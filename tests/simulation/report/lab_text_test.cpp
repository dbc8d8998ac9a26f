#include "simulation/report/lab_text.hpp"

#include "tests/simulation/report/made_up.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const lab_identity program{"1.2.3", "abcdef0123456789"};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

summary_cell measured(double mean, double half) {
  summary_cell out;
  out.applies = true;
  out.over = {mean, half, 1, 20};
  return out;
}

} // namespace

TEST_CASE("a number shows two digits of its half width, and its sign where it is a difference") {
  CHECK(cell_text(measured(12.3456, 0.412)) == "12.35 ± 0.41");
  CHECK(cell_text(measured(12.3456, 41.2)) == "12 ± 41");
  CHECK(cell_text(measured(1234567, 4120)) == "1234567 ± 4120");
  CHECK(cell_text(measured(0.000123, 0.0000041)) == "0.0001230 ± 0.0000041");
  CHECK(difference_text(measured(0.5, 0.05)) == "+0.500 ± 0.050");
  CHECK(difference_text(measured(-0.5, 0.05)) == "-0.500 ± 0.050");
  CHECK(cell_text(measured(3, 0)) == "3 ± 0");
  CHECK(cell_text({}) == "-");
  auto one = measured(12.345, 0);
  one.over.count = 1;
  CHECK(cell_text(one) == "12.35");
  auto never = measured(1, 1);
  never.never = 3;
  never.over.count = 17;
  CHECK(cell_text(never) == "none in 3 of 20");
}

TEST_CASE("variants are called as the columns of a sheet") {
  CHECK(letter_of(0) == "A");
  CHECK(letter_of(25) == "Z");
  CHECK(letter_of(26) == "AA");
  CHECK(letter_of(26 + 26 * 26) == "AAA");
}

TEST_CASE("every table says what made it: simulated, version, build, seeds, configs, digests") {
  const auto plan = made_up_plan({"equal", "oracle"}, 3);
  const auto rows = made_up_rows(plan);
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  const auto text = to_text(plan, *summary, program);
  for (const std::string& part : {std::string("SIMULATED"), program.version, program.build,
         std::string("seeds 1 to 3"), plan.variants[1].config.substr(0, 16),
         summary->variants[0].digest, summary->variants[1].digest, std::string("baseline"),
         std::string("a bound"), std::string("95 % interval"), std::string("wait p50"),
         std::string("B - A"), std::string("the same in every seed: ")}) {
    CAPTURE(part);
    CHECK(has(text, part));
  }
}

TEST_CASE("an interval that spans zero is told as no ranking") {
  const auto plan = made_up_plan({"equal", "oracle"}, 2);
  auto rows = made_up_rows(plan);
  for (auto& row : rows)
    row.values[own_metric("wait_p50_s")] = row.variant == row.seed % 2 ? 3 : 5;
  const auto text = to_text(plan, *summarise(plan, rows), program);
  CHECK(has(text, "no ranking: the interval spans zero"));
}

TEST_CASE("with one seed the table says that there is no interval and compares nothing") {
  const auto plan = made_up_plan({"equal", "oracle"}, 1);
  const auto text = to_text(plan, *summarise(plan, made_up_rows(plan)), program);
  CHECK(has(text, "One seed: there is no interval"));
  CHECK(has(text, "seed 1,"));
  CHECK_FALSE(has(text, "±"));
  CHECK_FALSE(has(text, "B - A"));
}

TEST_CASE("many variants take a line each, and no line is the wrong variant's") {
  std::vector<std::string> planners = {"equal"};
  for (int i = 1; i < 30; ++i)
    planners.push_back("ucb(a=" + std::to_string(i) + ")");
  const auto plan = made_up_plan(planners, 2);
  const auto text = to_text(plan, *summarise(plan, made_up_rows(plan)), program);
  CHECK(has(text, "\nAD  "));
  CHECK(has(text, "AD - A"));
}

TEST_CASE("the JSON is one document without infinities") {
  for (uint32_t seeds : {1u, 3u}) {
    const auto plan = made_up_plan({"equal", "oracle"}, seeds);
    const auto rows = made_up_rows(plan);
    const auto text = to_json(plan, *summarise(plan, rows), rows, program);
    const auto json = nlohmann::json::parse(text);
    CHECK(json.at("schema") == "gristmill.lab/1");
    CHECK(json.at("simulated") == true);
    CHECK(json.at("variants").size() == 2);
    CHECK(json.at("variants")[1].at("runs").size() == seeds);
    const auto& wait = json.at("variants")[0].at("metrics").at("wait_p50_s");
    CHECK(wait.at("mean").is_number());
    CHECK(wait.at("half").is_null() == (seeds == 1));
    CHECK(json.at("differences")[0].at("metrics").at("geomean").at("verdict")
      == (seeds == 1 ? "-" : "better"));
  }
}

TEST_CASE("summary and differences as tables have a row a metric, all of equal length") {
  auto plan = made_up_plan({"equal", "oracle"}, 2);
  plan.points.front() = {{"gpus.count", "2"}};
  const auto summary = summarise(plan, made_up_rows(plan));
  REQUIRE(summary);
  for (const auto& text : {summary_csv(plan, *summary), differences_csv(plan, *summary)}) {
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    const size_t columns = csv_fields(line)->size();
    size_t rows = 0;
    while (std::getline(lines, line)) {
      CHECK(csv_fields(line)->size() == columns);
      ++rows;
    }
    // Two variants have all; a difference of shares of one gap is none.
    const size_t metrics = summary->metrics.size();
    CHECK((rows == 2 * metrics || rows == metrics - 1));
  }
}
