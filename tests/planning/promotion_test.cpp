#include "planning/attempt.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

candidate_ref candidate(const std::string& key) {
  candidate_ref c;
  c.hash = "hash-of-" + key;
  c.key = key;
  return c;
}

/// A worker whose candidate has screened well.
struct promotion_fixture {
  attempt_limits limits;
  attempt mind{"worker-1", attempt_limits{}};
  nanoseconds now{0};
  std::vector<attempt_command> last;
  attempt_id id{"softmax", "cuda", 17};
  uint64_t request = 0;
  uint64_t token = 10;

  std::vector<attempt_command>& step(const attempt_event& e) {
    last = mind.step(e, now);
    for (const auto& c : last)
      if (const auto* ask = std::get_if<lease_request>(&c))
        request = ask->request;
    return last;
  }

  template <class T>
  const T* said() const {
    for (const auto& c : last)
      if (const auto* x = std::get_if<T>(&c))
        return x;
    return nullptr;
  }

  answered<compiled_candidate> compiled(
    const std::string& unit, verdict_status status = verdict_status::passed) const {
    compiled_candidate c;
    c.status = status;
    c.units.push_back({unit, {unit, 4}, {}});
    c.log = "the log";
    return {id, c};
  }

  void grant() { step(lease_granted{request, {0, ++token, lease_class::timing, 120s}}); }

  measurement measured() const {
    measurement m;
    m.attempt = id;
    m.token = token;
    m.held = 3s;
    return m;
  }

  answered<verdict> judged(bool wants, maybe<candidate_ref> incumbent = {}) const {
    verdict v;
    v.status = verdict_status::passed;
    v.objective_ns = 500;
    v.wants_promotion = wants;
    v.incumbent = std::move(incumbent);
    return {id, v};
  }

  static answered<prepared_problem> prepared(
    const attempt_id& of, verdict_status status = verdict_status::passed) {
    prepared_problem p;
    p.problem = of.problem;
    p.status = status;
    p.reason = "no disk";
    return {of, p};
  }

  void screen(maybe<candidate_ref> incumbent = candidate("old")) {
    mind = attempt{"worker-1", limits};
    assignment work;
    work.id = id;
    work.device_model = "h200";
    step(work);
    proposal p;
    p.kind = proposal_kind::candidate;
    p.candidate = candidate("new");
    step(answered<proposal>{id, p});
    step(answered<claim_reply>{id, {true, {}}});
    step(compiled("new-unit"));
    grant();
    step(measured());
    step(judged(true, std::move(incumbent)));
    REQUIRE(mind.state() == attempt_state::drawing);
  }

  /// Up to the wait for the second lease.
  void prepare() {
    screen();
    step(prepared(id));
    step(compiled("old-unit"));
    REQUIRE(mind.state() == attempt_state::waiting_lease);
  }
};

} // namespace

TEST_CASE_FIXTURE(promotion_fixture,
  "a candidate that screened well draws inputs, meets the incumbent under a fresh lease, and "
  "ends") {
  screen();
  REQUIRE(said<prepare_request>());
  CHECK(said<prepare_request>()->problem == "softmax");
  CHECK(said<prepare_request>()->draw == "softmax/cuda/17#1");
  CHECK(said<prepare_request>()->candidate == candidate("new"));
  CHECK_FALSE(said<attempt_summary>());
  step(prepared(id));
  REQUIRE(said<compile_request>());
  CHECK(said<compile_request>()->candidate == candidate("old"));
  step(compiled("old-unit"));
  REQUIRE(said<lease_request>());
  CHECK(said<lease_request>()->candidate == "hash-of-new");
  CHECK(said<lease_request>()->estimated_hold == limits.promotion_hold);
  grant();
  const auto* measure = said<measure_request>();
  REQUIRE(measure);
  CHECK(measure->purpose == measure_purpose::promotion);
  CHECK(measure->draw == "softmax/cuda/17#1");
  CHECK(measure->units.at(0).key == "new-unit");
  REQUIRE(measure->against);
  CHECK(measure->against->candidate == candidate("old"));
  CHECK(measure->against->units.at(0).key == "old-unit");
  step(measured());
  REQUIRE(said<judge_request>());
  CHECK(said<judge_request>()->purpose == measure_purpose::promotion);
  CHECK(said<judge_request>()->draw == "softmax/cuda/17#1");
  CHECK(said<judge_request>()->against->candidate == candidate("old"));
  auto kept = judged(false, candidate("old"));
  kept.value.incumbent_stays = true;
  step(kept);
  REQUIRE(said<attempt_summary>());
  CHECK(said<attempt_summary>()->outcome == attempt_outcome::judged);
  CHECK(said<attempt_summary>()->incumbent_stays);
  CHECK(said<attempt_summary>()->gpu_ns == 6'000'000'000);
  CHECK(said<attempt_summary>()->note.find("no gain over the incumbent") != std::string::npos);
  REQUIRE(said<draw_over>());
  CHECK(said<draw_over>()->draw == "softmax/cuda/17#1");
}

TEST_CASE_FIXTURE(
  promotion_fixture, "without an incumbent nothing is compiled, and nobody is met") {
  screen({});
  step(prepared(id));
  CHECK_FALSE(said<compile_request>());
  REQUIRE(said<lease_request>());
  grant();
  REQUIRE(said<measure_request>());
  CHECK(said<measure_request>()->purpose == measure_purpose::promotion);
  CHECK_FALSE(said<measure_request>()->against);
}

TEST_CASE_FIXTURE(promotion_fixture, "a screening is measured without a draw") {
  mind = attempt{"worker-1", limits};
  assignment work;
  work.id = id;
  work.given = candidate("new");
  step(work);
  step(compiled("u"));
  grant();
  CHECK(said<measure_request>()->purpose == measure_purpose::screen);
  CHECK(said<measure_request>()->draw.empty());
  step(measured());
  step(judged(false));
  CHECK(said<attempt_summary>());
  CHECK_FALSE(said<draw_over>());
}

TEST_CASE_FIXTURE(promotion_fixture, "who is overtaken draws anew and meets the new incumbent") {
  prepare();
  grant();
  step(measured());
  step(judged(true, candidate("newer")));
  REQUIRE(said<draw_over>());
  CHECK(said<draw_over>()->draw == "softmax/cuda/17#1");
  REQUIRE(said<prepare_request>());
  CHECK(said<prepare_request>()->draw == "softmax/cuda/17#2");
  step(prepared(id));
  CHECK(said<compile_request>()->candidate == candidate("newer"));
  step(compiled("newer-unit"));
  grant();
  CHECK(said<measure_request>()->against->candidate == candidate("newer"));
}

TEST_CASE_FIXTURE(promotion_fixture, "promotions that never end are ended") {
  limits.promotions_max = 2;
  prepare();
  grant();
  step(measured());
  step(judged(true, candidate("b")));
  step(prepared(id));
  step(compiled("b"));
  grant();
  step(measured());
  step(judged(true, candidate("c")));
  REQUIRE(said<attempt_summary>());
  CHECK(said<attempt_summary>()->outcome == attempt_outcome::infrastructure);
  CHECK(said<attempt_summary>()->reason.find("overtaken") != std::string::npos);
  CHECK(said<draw_over>()->draw == "softmax/cuda/17#2");
}

TEST_CASE_FIXTURE(promotion_fixture, "inputs that cannot be made are a failure of ours") {
  screen();
  step(prepared(id, verdict_status::infrastructure));
  CHECK(said<attempt_summary>()->outcome == attempt_outcome::infrastructure);
  CHECK(said<attempt_summary>()->reason.find("no disk") != std::string::npos);
  CHECK(said<draw_over>());
}

TEST_CASE_FIXTURE(promotion_fixture, "an incumbent that does not compile any more is one, too") {
  screen();
  step(prepared(id));
  step(compiled("old-unit", verdict_status::compile_error));
  CHECK(said<attempt_summary>()->outcome == attempt_outcome::infrastructure);
  CHECK(said<attempt_summary>()->reason.find("hash-of-old") != std::string::npos);
  CHECK(said<draw_over>());
}

TEST_CASE_FIXTURE(promotion_fixture,
  "a peer that died, an answer that never comes and the end of the run end it, the draw too") {
  for (const auto state : {attempt_state::drawing, attempt_state::compiling_rival}) {
    CAPTURE(to_string(state));
    const auto reach = [&] {
      now = 0s;
      screen();
      if (state == attempt_state::compiling_rival)
        step(prepared(id));
      REQUIRE(mind.state() == state);
    };
    const auto ended = [&](attempt_outcome as) {
      REQUIRE(said<attempt_summary>());
      CHECK(said<attempt_summary>()->outcome == as);
      REQUIRE(said<draw_over>());
      CHECK(said<draw_over>()->draw == "softmax/cuda/17#1");
    };
    limits.run_end = 0s;
    reach();
    step(step_failed{id, {errc::child_failed, "it died"}, state, 0});
    ended(attempt_outcome::infrastructure);

    reach();
    REQUIRE(mind.next_deadline());
    now = *mind.next_deadline();
    step(attempt_due{});
    ended(attempt_outcome::infrastructure);

    reach();
    step(attempt_abandon{"aborted"});
    ended(attempt_outcome::abandoned);

    limits.run_end = 40s;
    reach();
    CHECK(*mind.next_deadline() == 40s);
    now = 40s;
    step(attempt_due{});
    ended(attempt_outcome::abandoned);
  }
}

TEST_CASE_FIXTURE(promotion_fixture, "answers to steps that are over change nothing") {
  prepare();
  const auto state = mind.state();
  CHECK(step(prepared(id)).empty());
  CHECK(step(compiled("late")).empty());
  CHECK(step(judged(true, candidate("late"))).empty());
  CHECK(step(prepared({"softmax", "cuda", 16})).empty());
  CHECK(step(step_failed{id, {errc::child_failed, "late"}, attempt_state::drawing, 0}).empty());
  CHECK(mind.state() == state);
  grant();
  auto old = measured();
  old.token = 11; // Of the screening's lease.
  CHECK(step(old).empty());
  CHECK(mind.state() == attempt_state::measuring);
}

TEST_CASE_FIXTURE(
  promotion_fixture, "a lease that is taken back in a promotion is asked for again") {
  prepare();
  grant();
  step(lease_ended{request, token, "revoked"});
  REQUIRE(said<lease_request>());
  CHECK_FALSE(said<draw_over>());
  grant();
  CHECK(said<measure_request>()->draw == "softmax/cuda/17#1");
}
