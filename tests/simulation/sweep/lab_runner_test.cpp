#include "simulation/sweep/lab_runner.hpp"

#include "simulation/sweep/lab_line.hpp"
#include "tests/simulation/report/made_up.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <mutex>
#include <stdexcept>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// Stands in for the laboratory: the level is the number in the planner's name.
result<lab_result> stand_in(const scenario& what, lab_engine, lab_options options) {
  if (options.stop && options.stop())
    return fail(errc::shutting_down, "stopped");
  if (what.planner == "broken")
    return fail(errc::invalid_input, "unknown planner `broken`");
  if (what.planner == "unlucky" && options.world.seed == 3)
    return fail(errc::refused, "the queue is not stable");
  if (what.planner == "throws")
    throw std::runtime_error("bad_alloc or so");
  if (options.progress)
    options.progress(0.5);
  return made_up_result(static_cast<double>(what.planner.size()), options.world.seed);
}

struct outcome {
  result<void> ended;
  std::vector<lab_row> rows;
  double done = 0;
};

outcome run_all(const lab_plan& plan, unsigned jobs, const run_set& have = {}) {
  outcome out;
  std::atomic<double> done = 0;
  runner_options options;
  options.run = stand_in;
  options.jobs = jobs;
  options.done = &done;
  options.on_row = [&out](lab_row&& row) -> result<void> {
    out.rows.push_back(std::move(row));
    return {};
  };
  out.ended = run_plan(plan, have, options);
  out.done = done;
  sort_rows(out.rows);
  return out;
}

} // namespace

TEST_CASE("what comes out does not depend on the number of threads") {
  const auto plan = made_up_plan({"equal", "ucb", "oracle"}, 7);
  const auto one = run_all(plan, 1);
  REQUIRE(one.ended);
  REQUIRE(one.rows.size() == 21);
  CHECK(one.done == 21);
  for (unsigned jobs : {2u, 5u, 64u}) {
    const auto many = run_all(plan, jobs);
    REQUIRE(many.ended);
    REQUIRE(many.rows.size() == one.rows.size());
    for (size_t i = 0; i < one.rows.size(); ++i) {
      CHECK(many.rows[i].digest == one.rows[i].digest);
      CHECK(many.rows[i].values == one.rows[i].values);
    }
  }
}

TEST_CASE("every variant runs with the same seeds, and what is there already is left out") {
  auto plan = made_up_plan({"equal", "oracle"}, 3);
  plan.first_seed = 40;
  const auto rest = run_all(plan, 2, {{0, 40}, {1, 41}});
  REQUIRE(rest.ended);
  REQUIRE(rest.rows.size() == 4);
  CHECK(rest.rows[0].seed == 41);
  CHECK(rest.rows[1].seed == 42);
  CHECK(rest.rows[2].seed == 40);
  CHECK(rest.rows[3].seed == 42);
  CHECK(rest.done == 6);
  CHECK(run_all(plan, 2, {{0, 40}, {0, 41}, {0, 42}, {1, 40}, {1, 41}, {1, 42}}).rows.empty());
}

TEST_CASE("a run that fails ends the others and is told with its variant and seed") {
  const auto plan = made_up_plan({"equal", "unlucky"}, 5);
  const auto failed = run_all(plan, 2);
  REQUIRE_FALSE(failed.ended);
  CHECK(failed.ended.error().code == errc::refused);
  CHECK(failed.ended.error().what.find("unlucky, seed 3: the queue") != std::string::npos);
  CHECK(failed.rows.size() < 10);
}

TEST_CASE("an exception of an engine is a failure, not the end of the program") {
  const auto failed = run_all(made_up_plan({"throws"}, 2), 2);
  REQUIRE_FALSE(failed.ended);
  CHECK(failed.ended.error().what.find("bad_alloc or so") != std::string::npos);
}

TEST_CASE("a row that cannot be kept ends the runs with that failure") {
  const auto plan = made_up_plan({"equal"}, 4);
  runner_options options;
  options.run = stand_in;
  options.jobs = 2;
  options.on_row = [](lab_row&&) -> result<void> { return fail(errc::io_failed, "disk full"); };
  const auto ended = run_plan(plan, {}, options);
  REQUIRE_FALSE(ended);
  CHECK(ended.error().what == "disk full");
}

TEST_CASE("stopped runs end with `shutting_down` and keep what was done") {
  const auto plan = made_up_plan({"equal"}, 50);
  std::atomic<bool> stop = false;
  size_t kept = 0;
  runner_options options;
  options.run = stand_in;
  options.stop = &stop;
  options.on_row = [&](lab_row&&) -> result<void> {
    stop = ++kept == 3;
    return {};
  };
  const auto ended = run_plan(plan, {}, options);
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == errc::shutting_down);
  CHECK(kept == 3);
}

TEST_CASE("a mistake in the last variant is found before anything runs") {
  CHECK(check_plan(made_up_plan({"equal", "oracle"}, 1000), stand_in));
  const auto wrong = check_plan(made_up_plan({"equal", "broken"}, 1000),
    [](const scenario& what, lab_engine engine, lab_options options) {
      CHECK(options.stop());
      options.stop = nullptr;
      return stand_in(what, engine, std::move(options));
    });
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == errc::invalid_input);
  CHECK(wrong.error().what.find("broken: unknown planner") != std::string::npos);
}

TEST_CASE("events are passed on until enough are there") {
  const auto plan = made_up_plan({"equal"}, 1);
  size_t taken = 0;
  const auto engine = [](const scenario&, lab_engine, lab_options options) -> result<lab_result> {
    for (int i = 0; i < 10; ++i) {
      options.journal(event{});
      if (options.stop())
        return fail(errc::shutting_down, "stopped");
    }
    return made_up_result(1, 1);
  };
  const auto cut =
    run_with_events(plan.variants[0], 1, plan.engine, engine, [&](event&&) { return ++taken < 4; });
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == errc::shutting_down);
  CHECK(taken == 4);
  taken = 0;
  CHECK(run_with_events(plan.variants[0], 1, plan.engine, engine, [&](event&&) {
    ++taken;
    return true;
  }));
  CHECK(taken == 10);
}

TEST_CASE("the line of progress tells runs, share, time and time left, and is never too wide") {
  using std::chrono::seconds;
  CHECK(lab_line(15, 60, seconds{70}, 200) == "15 of 60 runs | 25 % | 1:10 | 3:30 left");
  // Parts of runs count for the time, and are no finished runs.
  CHECK(lab_line(0.5, 2, seconds{3600}, 200) == "0 of 2 runs | 25 % | 1:00:00 | 3:00:00 left");
  CHECK(lab_line(0, 60, seconds{5}, 200) == "0 of 60 runs | 0 % | 0:05");
  CHECK(lab_line(60, 60, seconds{100}, 200) == "60 of 60 runs | 100 % | 1:40 | 0:00 left");
  CHECK(lab_line(0, 0, seconds{0}, 200) == "0 of 0 runs | 100 % | 0:00");
  for (size_t width = 0; width < 60; ++width)
    CHECK(lab_line(15, 60, seconds{70}, width).size() <= width);
}
