#include "planning/portfolio.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

struct shared_run {
  std::optional<portfolio> mind;
  int keys = 0;

  void start(portfolio_config config, std::vector<portfolio_problem> problems) {
    mind.emplace(*portfolio::make(std::move(config), problems));
    for (const auto& p : problems) {
      prepared_problem ready;
      ready.problem = p.name;
      ready.status = verdict_status::passed;
      ready.has_bounds = true;
      REQUIRE(mind->on_ready(ready));
    }
  }

  std::optional<assignment> give(const std::string& worker) {
    auto d = mind->next(worker, 0ns);
    return d.kind == decision_kind::assigned ? std::optional{d.work} : std::nullopt;
  }

  planner_note judged(const assignment& work, uint64_t gpu_ns) {
    attempt_summary s;
    s.id = work.id;
    s.kind = work.kind;
    s.outcome = attempt_outcome::judged;
    s.status = verdict_status::compile_error;
    s.candidate.key = "k" + std::to_string(keys++);
    s.candidate.hash = "h" + s.candidate.key;
    s.gpu_ns = gpu_ns;
    mind->claim({work.id, s.candidate.key});
    return mind->on_finished(s, 0ns);
  }

  problem_view view(const std::string& name) {
    for (const auto& v : mind->problems())
      if (v.name == name)
        return v;
    FAIL("no such problem");
    return {};
  }
};

portfolio_config each_problem(std::optional<uint64_t> gpu_ns, std::optional<uint64_t> attempts) {
  portfolio_config out;
  out.each_problem.gpu_ns = gpu_ns;
  out.each_problem.attempts = attempts;
  out.attempt_gpu_time = 10ns;
  out.share_by_attempts = true;
  return out;
}

} // namespace

TEST_SUITE_BEGIN("shares of problems and workers");

TEST_CASE_FIXTURE(
  shared_run, "a problem whose GPU time is spent is finished, and the others go on") {
  start(each_problem(25, {}), {{"p", {}}, {"q", {}}});
  for (int i = 0; i < 4; ++i) {
    auto work = give("w");
    REQUIRE(work);
    judged(*work, work->id.problem == "p" ? 20 : 1);
  }
  CHECK(view("p").state == problem_state::finished);
  CHECK(view("p").reason.find("problem 'p' is 0.000000025 s under lease") != std::string::npos);
  CHECK(view("q").state == problem_state::open);
  for (int i = 0; i < 3; ++i)
    CHECK(give("w" + std::to_string(i))->id.problem == "q");
}

TEST_CASE_FIXTURE(shared_run, "what is in flight is reserved: no more are given out than may fit") {
  start(each_problem(25, {}), {{"p", {}}});
  auto first = give("a");
  auto second = give("b");
  REQUIRE(second);
  CHECK(mind->next("c", 0ns).kind == decision_kind::idle);
  // It took less than was thought, so there is room again.
  judged(*first, 5);
  auto third = give("c");
  CHECK(third);
  judged(*second, 10);
  judged(*third, 10);
  CHECK(view("p").state == problem_state::finished);
  CHECK(mind->done());
}

TEST_CASE_FIXTURE(shared_run, "attempts of a problem are counted as those of the run are") {
  start(each_problem({}, 2), {{"p", {}}});
  auto lost = give("a");
  REQUIRE(lost);
  mind->on_worker_lost("a", 0ns); // A failure of ours uses up nothing.
  judged(*give("a"), 1);
  CHECK(view("p").state == problem_state::open);
  judged(*give("a"), 1);
  CHECK(view("p").state == problem_state::finished);
}

TEST_CASE_FIXTURE(
  shared_run, "a worker whose budget is spent gets no more, and the run ends with the last") {
  portfolio_config config;
  config.each_worker.attempts = 1;
  start(config, {{"p", {}}});
  auto a = give("a");
  auto b = give("b");
  judged(*a, 1);
  auto no = mind->next("a", 0ns);
  CHECK(no.kind == decision_kind::stop);
  CHECK(no.reason.find("agent 'a'") != std::string::npos);
  CHECK(mind->stop_reason().empty());
  judged(*b, 1);
  CHECK(mind->next("b", 0ns).kind == decision_kind::stop);
  CHECK(mind->done());
  CHECK(mind->stop_reason().find("every worker's own budget is spent") != std::string::npos);
}

TEST_CASE_FIXTURE(shared_run, "without such budgets nothing is refused") {
  start({}, {{"p", {}}});
  for (int i = 0; i < 50; ++i)
    judged(*give("w"), 1'000'000'000);
  CHECK(view("p").state == problem_state::open);
}

TEST_CASE_FIXTURE(shared_run, "an attempt that a log tells of counts although it was cut off") {
  auto config = each_problem(25, {});
  start(config, {{"p", {}}});
  REQUIRE(mind->assign_again({"p", "cuda", 0}, "w", attempt_kind::search, ""));
  REQUIRE(mind->on_interrupted({"p", "cuda", 0}, 24, 0ns));
  CHECK(view("p").state == problem_state::finished);
}

TEST_SUITE_END();
