#include "simulation/report/lab_metrics.hpp"
#include "tests/simulation/report/made_up.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <set>

using namespace gristmill;
using namespace gristmill::test;

TEST_CASE("a row of results reads back as the same numbers, whatever stands in names") {
  auto plan = made_up_plan({"equal", "oracle"}, 3);
  plan.variants[1].what.lease_policy = "priority(by=class,order=\"a,b\")/fifo";
  plan.points.front() = {{"gpus.count", "27"}, {"case", "a, \"b\""}};
  auto row = made_up_rows(plan)[4];
  row.values[0] = std::numeric_limits<double>::infinity();
  row.values[1] = 0.1 + 0.2;
  row.values[2] = 5e-324;
  const auto line = results_line(plan, row);
  REQUIRE(line.ends_with("\n"));
  CHECK(line.find('\n') == line.size() - 1);
  auto back = row_from_results(plan, std::string_view(line).substr(0, line.size() - 1));
  REQUIRE(back);
  CHECK(back->variant == row.variant);
  CHECK(back->seed == row.seed);
  CHECK(back->digest == row.digest);
  CHECK(back->transitions == row.transitions);
  CHECK(back->values == row.values);
  const auto head = csv_fields(results_head(plan));
  REQUIRE(head);
  CHECK(head->size() == csv_fields(line)->size());
}

TEST_CASE("a row that is not of this sweep is refused and says why") {
  const auto plan = made_up_plan({"equal"}, 2);
  const auto rows = made_up_rows(plan);
  auto line = results_line(plan, rows[0]);
  line.pop_back();
  const auto refused = [&](const std::string& text, const char* why) {
    auto row = row_from_results(plan, text);
    REQUIRE_FALSE(row);
    CAPTURE(row.error().what);
    CHECK(row.error().code == errc::invalid_input);
    CHECK(row.error().what.find(why) != std::string::npos);
  };
  const auto with = [&](size_t field, const std::string& value) {
    auto fields = *csv_fields(line);
    fields[field] = value;
    std::string out;
    for (const auto& each : fields)
      out += (out.empty() ? "" : ",") + csv_field(each);
    return out;
  };
  CHECK(row_from_results(plan, with(0, "0")));
  refused("", "fields");
  refused(line + ",1", "fields");
  refused("\"" + line, "quote");
  refused(with(0, "1"), "variant 1");
  refused(with(0, "-1"), "variant -1");
  refused(with(4, "3"), "seed 3");
  refused(with(4, "1x"), "seed 1x");
  refused(with(5, "beef"), "configuration beef");
  refused(with(7, "many"), "transitions many");
  refused(with(8, "some"), "points some");
  refused(with(9, "slow"), "wait_p50_s slow");
}

TEST_CASE("keys of metrics are unique, plain and found by name") {
  std::set<std::string_view> seen;
  for (const auto& metric : own_metrics()) {
    CAPTURE(metric.key);
    CHECK(seen.insert(metric.key).second);
    CHECK(metric.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_")
      == std::string_view::npos);
    CHECK(own_metrics()[own_metric(metric.key)].key == metric.key);
  }
  CHECK(own_metric("no such thing") == own_metrics().size());
}

TEST_CASE("metrics of a run without a single lease are numbers") {
  for (const auto& metric : own_metrics()) {
    CAPTURE(metric.key);
    CHECK_FALSE(std::isnan(metric.of(lab_result{})));
  }
}

TEST_CASE("shares of GPU time add up to one and overhead is of the leased time only") {
  const auto run = made_up_result(0, 1);
  double sum = 0;
  for (const char* key :
    {"gpu_useful", "gpu_compile", "gpu_launch", "gpu_wasted", "gpu_verify", "gpu_down", "gpu_free"})
    sum += own_metrics()[own_metric(key)].of(run);
  CHECK(sum == doctest::Approx(1));
  // 360 s of launch and 360 s of proof, of 5040 s under lease.
  CHECK(own_metrics()[own_metric("overhead")].of(run) == doctest::Approx(720.0 / 5040));
}

TEST_CASE("the Lorenz curve ends at one, is the diagonal for equals, and cuts agents in parts") {
  std::vector<agent_share> equal(3, {"a", 1, 1, 10});
  for (double share : {0.0, 0.1, 0.5, 1.0})
    CHECK(lorenz_share(equal, share) == doctest::Approx(share));
  const std::vector<agent_share> one_takes_all = {{"a", 1, 0, 0}, {"b", 1, 0, 0}, {"c", 1, 9, 9}};
  CHECK(lorenz_share(one_takes_all, 0.6) == 0);
  CHECK(lorenz_share(one_takes_all, 5.0 / 6) == doctest::Approx(0.5));
  CHECK(lorenz_share(one_takes_all, 1) == 1);
  CHECK(lorenz_share({}, 0.3) == 0.3);
  CHECK(lorenz_share({{"idle", 1, 0, 0}}, 0.3) == 0.3);
}

TEST_CASE("rows are put in order by variant, then seed") {
  const auto plan = made_up_plan({"equal", "oracle"}, 2);
  auto rows = made_up_rows(plan);
  std::swap(rows[0], rows[3]);
  std::swap(rows[1], rows[2]);
  sort_rows(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].variant == i / 2);
    CHECK(rows[i].seed == 1 + i % 2);
  }
}
