#include "simulation/report/lab_summary.hpp"

#include "tests/simulation/report/made_up.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const summary_cell& cell(const lab_summary& summary, size_t variant, const char* key) {
  return summary.variants[variant].cells[summary.metric(key)];
}

lab_verdict verdict(const lab_summary& summary, size_t difference, const char* key) {
  return summary.differences[difference].verdicts[summary.metric(key)];
}

/// Sets the value of a metric in every row of a variant.
void set(
  std::vector<lab_row>& rows, size_t variant, const char* key, const std::vector<double>& by_seed) {
  size_t s = 0;
  for (auto& row : rows)
    if (row.variant == variant)
      row.values[own_metric(key)] = by_seed[s++];
}

} // namespace

TEST_CASE("means and intervals are over the seeds of a variant") {
  const auto plan = made_up_plan({"equal", "oracle"}, 3);
  auto rows = made_up_rows(plan);
  set(rows, 1, "wait_p50_s", {1, 2, 3});
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  const auto& one = cell(*summary, 1, "wait_p50_s");
  CHECK(one.over.mean == 2);
  CHECK(one.over.half == doctest::Approx(4.302652730 / std::sqrt(3.0)));
  CHECK(one.over.count == 3);
}

TEST_CASE("a difference is ranked only where its interval leaves zero out") {
  const auto plan = made_up_plan({"equal", "oracle"}, 4);
  auto rows = made_up_rows(plan);
  // Lower is better.
  set(rows, 0, "wait_p50_s", {10, 20, 30, 40});
  set(rows, 1, "wait_p50_s", {11, 21.1, 30.9, 41});
  // Spans zero.
  set(rows, 0, "wait_p90_s", {1, 2, 3, 4});
  set(rows, 1, "wait_p90_s", {2, 1, 4, 3});
  set(rows, 1, "wait_max_s", {0, 1, 0, 1});
  set(rows, 0, "wait_max_s", {5, 6, 7, 8});
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  REQUIRE(summary->differences.size() == 1);
  CHECK(summary->differences[0].variant == 1);
  CHECK(summary->differences[0].baseline == 0);
  CHECK(verdict(*summary, 0, "wait_p50_s") == lab_verdict::worse);
  CHECK(verdict(*summary, 0, "wait_p90_s") == lab_verdict::undecided);
  CHECK(verdict(*summary, 0, "wait_max_s") == lab_verdict::better);
  CHECK(verdict(*summary, 0, "geomean") == lab_verdict::better);
  CHECK(verdict(*summary, 0, "overhead") == lab_verdict::same);
  // More GPU-hours are neither good nor bad.
  set(rows, 1, "gpu_hours", {3, 3.1, 3, 3.1});
  CHECK(verdict(*summarise(plan, rows), 0, "gpu_hours") == lab_verdict::differs);
}

TEST_CASE("one seed has neither an interval nor a ranking") {
  const auto plan = made_up_plan({"equal", "oracle"}, 1);
  const auto rows = made_up_rows(plan);
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  for (size_t m = 0; m < summary->metrics.size(); ++m) {
    CAPTURE(summary->metrics[m].key);
    CHECK_FALSE(summary->variants[1].cells[m].has_interval());
    CHECK(summary->differences[0].verdicts[m] == lab_verdict::none);
  }
  CHECK(summary->variants[0].digest == rows[0].digest);
}

TEST_CASE("GPU-hours to a target are counted against equal share of the same seed") {
  const auto plan = made_up_plan({"equal", "oracle"}, 2);
  const auto summary = summarise(plan, made_up_rows(plan));
  REQUIRE(summary);
  // Equal share is at its own end when its GPU-hours are.
  CHECK(cell(*summary, 0, "budget_to_equal").over.mean == doctest::Approx(1));
  // The other grows by 0.05 a point in place of 0.04, so it needs 8 of 10 points.
  CHECK(cell(*summary, 1, "budget_to_equal").over.mean == doctest::Approx(0.8));
  CHECK(cell(*summary, 1, "hours_to_95").over.mean < cell(*summary, 0, "hours_to_95").over.mean);
}

TEST_CASE("a target that was not reached in a seed leaves no mean at all") {
  const auto plan = made_up_plan({"equal", "late"}, 3);
  auto rows = made_up_rows(plan);
  for (auto& row : rows)
    if (row.variant == 1 && row.seed == 2)
      for (auto& p : row.curve)
        p.geomean = 1;
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  const auto& late = cell(*summary, 1, "hours_to_95");
  CHECK(late.never == 1);
  CHECK_FALSE(late.has_mean());
  CHECK(verdict(*summary, 0, "hours_to_95") == lab_verdict::none);
}

TEST_CASE("the gap closed is 0 for equal share, 1 for the oracle, and in between for the others") {
  auto plan = made_up_plan({"equal", "half", "oracle"}, 4);
  auto rows = made_up_rows(plan);
  set(rows, 0, "area", {1.0, 1.1, 1.2, 1.3});
  set(rows, 1, "area", {1.1, 1.2, 1.3, 1.4});
  set(rows, 2, "area", {1.21, 1.3, 1.4, 1.5});
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  CHECK(cell(*summary, 0, "gap_closed").over.mean == doctest::Approx(0));
  CHECK(cell(*summary, 2, "gap_closed").over.mean == doctest::Approx(1));
  CHECK(cell(*summary, 2, "gap_closed").over.half == doctest::Approx(0).epsilon(1e-9));
  // Sum of gains over sum of gaps: 0.4 / 0.81, not the mean of four ratios.
  CHECK(cell(*summary, 1, "gap_closed").over.mean == doctest::Approx(0.4 / 0.81));
  CHECK(cell(*summary, 1, "gap_closed").over.half > 0);
}

TEST_CASE("where the gap itself may be none, no share of it is named") {
  const auto plan = made_up_plan({"equal", "half", "oracle"}, 3);
  auto rows = made_up_rows(plan);
  set(rows, 0, "area", {1.0, 1.1, 1.2});
  set(rows, 2, "area", {1.1, 1.0, 1.2});
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  CHECK_FALSE(cell(*summary, 1, "gap_closed").has_mean());
}

TEST_CASE("without problems there are no outcomes, and without equal share nothing beside it") {
  auto plan = made_up_plan({"equal"}, 2);
  plan.variants[0].what.problems = 0;
  const auto bare = summarise(plan, made_up_rows(plan));
  REQUIRE(bare);
  CHECK_FALSE(cell(*bare, 0, "geomean").applies);
  CHECK_FALSE(cell(*bare, 0, "gap_closed").applies);
  CHECK(cell(*bare, 0, "wait_p50_s").applies);
  const auto other = made_up_plan({"mine"}, 2);
  const auto alone = summarise(other, made_up_rows(other));
  REQUIRE(alone);
  CHECK(cell(*alone, 0, "geomean").applies);
  CHECK_FALSE(cell(*alone, 0, "hours_to_95").applies);
}

TEST_CASE("a later point of a grid is compared with the first, bounds are not") {
  auto plan = made_up_plan({"equal", "mine", "equal", "mine"}, 2);
  plan.points = {{{"gpus.count", "27"}}, {{"gpus.count", "54"}}};
  plan.baselines = {0, 2};
  plan.variants[2].point = plan.variants[3].point = 1;
  plan.variants[2].is_bound = true;
  const auto summary = summarise(plan, made_up_rows(plan));
  REQUIRE(summary);
  REQUIRE(summary->differences.size() == 3);
  const auto pair = [&](size_t i) {
    return std::pair{summary->differences[i].variant, summary->differences[i].baseline};
  };
  CHECK(pair(0) == std::pair<size_t, size_t>{1, 0});
  CHECK(pair(1) == std::pair<size_t, size_t>{3, 2});
  CHECK(pair(2) == std::pair<size_t, size_t>{3, 1});
}

TEST_CASE("runs that are missing or out of place are no summary") {
  const auto plan = made_up_plan({"equal", "oracle"}, 2);
  auto rows = made_up_rows(plan);
  auto fewer = rows;
  fewer.pop_back();
  CHECK_FALSE(summarise(plan, fewer));
  std::swap(rows[0], rows[1]);
  CHECK_FALSE(summarise(plan, rows));
}

TEST_CASE("the band of outcomes begins at one and ends where the slowest seed ended") {
  const auto plan = made_up_plan({"equal"}, 2);
  auto rows = made_up_rows(plan);
  rows[1].curve.resize(5);
  const auto band = geomean_band(rows, 0);
  REQUIRE(band.x.size() == 101);
  CHECK(band.x.front() == 0);
  CHECK(band.mean.front() == 1);
  CHECK(band.x.back() == doctest::Approx(1.0));
  CHECK(band.low.size() == band.x.size());
  CHECK(
    band.mean.back() == doctest::Approx((rows[0].curve[4].geomean + rows[1].curve[4].geomean) / 2));
  rows.pop_back();
  CHECK(geomean_band(rows, 0).low.empty());
  CHECK(geomean_band({}, 0).x.empty());
}
