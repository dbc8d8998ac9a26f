#include "planning/attempt.hpp"

#include <doctest/doctest.h>
#include <map>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

assignment make_work(uint32_t ordinal = 1, attempt_kind kind = attempt_kind::search) {
  assignment a;
  a.id = {"rmsnorm", "cuda", ordinal};
  a.kind = kind;
  a.device_model = "h200";
  a.seed = 5;
  return a;
}

candidate_ref make_candidate(const std::string& key = "k1") {
  candidate_ref c;
  c.hash = "hash-of-" + key;
  c.key = key;
  return c;
}

/// A worker and everything that it has said.
struct worker_fixture {
  attempt_limits limits;
  attempt mind{"worker-1", attempt_limits{}};
  nanoseconds now{0};
  std::vector<attempt_command> last;
  /// Summaries by ordinal: never more than one each.
  std::map<uint32_t, int> summaries;

  std::vector<attempt_command>& step(const attempt_event& e) {
    last = mind.step(e, now);
    for (const auto& c : last)
      if (const auto* s = std::get_if<attempt_summary>(&c))
        ++summaries[s->id.ordinal];
    return last;
  }

  template <class T>
  const T& said() const {
    for (const auto& c : last)
      if (const auto* x = std::get_if<T>(&c))
        return *x;
    FAIL("the command was not given");
    throw 0;
  }

  template <class T>
  bool says() const {
    for (const auto& c : last)
      if (std::holds_alternative<T>(c))
        return true;
    return false;
  }

  attempt_id id(uint32_t ordinal = 1) const { return make_work(ordinal).id; }

  answered<proposal> proposed(const std::string& key = "k1", uint32_t ordinal = 1) const {
    proposal p;
    p.kind = proposal_kind::candidate;
    p.candidate = make_candidate(key);
    return {id(ordinal), p};
  }
  answered<claim_reply> claimed(bool granted = true, std::vector<std::string> taken = {}) const {
    return {id(), {granted, std::move(taken)}};
  }
  answered<compiled_candidate> compiled(
    verdict_status status = verdict_status::passed, uint32_t ordinal = 1) const {
    compiled_candidate c;
    c.status = status;
    c.units.push_back({"unit", {"code", 4}, {}});
    c.log = "the log";
    return {id(ordinal), c};
  }
  lease_granted granted(uint64_t request = 1, uint64_t token = 11) const {
    return {request, {0, token, lease_class::timing, 120s}};
  }
  measurement measured(uint64_t token = 11, uint32_t ordinal = 1) const {
    measurement m;
    m.attempt = id(ordinal);
    m.token = token;
    m.held = 3s;
    return m;
  }
  answered<verdict> judged(verdict_status status = verdict_status::passed) const {
    verdict v;
    v.status = status;
    v.objective_ns = 500;
    v.speedup = 2.0;
    v.sol_score = 0.75;
    v.floor_share = 0.5;
    v.reason = "because";
    return {id(), v};
  }

  /// Brings a fresh worker into the state.
  void reach(attempt_state state) {
    mind = attempt{"worker-1", limits};
    const std::vector<attempt_event> way = {
      make_work(), proposed(), claimed(), compiled(), granted(), measured(), judged()};
    for (size_t i = 0; i < static_cast<size_t>(state); ++i)
      step(way[i]);
    summaries.clear();
    REQUIRE(mind.state() == state);
  }
};

const std::vector<attempt_state> busy_states = {attempt_state::proposing, attempt_state::claiming,
  attempt_state::compiling, attempt_state::waiting_lease, attempt_state::measuring,
  attempt_state::judging};

} // namespace

TEST_CASE_FIXTURE(worker_fixture, "an attempt goes from the assignment to one summary") {
  CHECK(mind.idle());
  CHECK_FALSE(mind.next_deadline());
  step(make_work());
  CHECK(said<propose_request>().work.id == id());
  step(proposed());
  CHECK(said<claim_request>().key == "k1");
  step(claimed());
  CHECK(said<compile_request>().device_model == "h200");
  CHECK(said<compile_request>().candidate == make_candidate());
  step(compiled());
  const auto ask = said<lease_request>();
  CHECK(ask.flow == lease_flow{"rmsnorm", "worker-1"});
  CHECK(ask.need == "h200");
  CHECK(ask.what == lease_class::timing);
  CHECK(ask.patience == limits.lease_wait);
  CHECK(ask.attempt == "rmsnorm/cuda/1");
  step(granted(ask.request));
  CHECK(said<measure_request>().under.token == 11);
  CHECK(said<measure_request>().units.size() == 1);
  step(measured());
  CHECK(said<judge_request>().measured.token == 11);
  step(judged());
  const auto summary = said<attempt_summary>();
  CHECK(summary.outcome == attempt_outcome::judged);
  CHECK(summary.status == verdict_status::passed);
  CHECK(summary.worker == "worker-1");
  CHECK(summary.candidate == make_candidate());
  CHECK(summary.objective_ns == 500);
  CHECK(double(summary.speedup) == 2);
  CHECK(double(summary.sol_score) == 0.75);
  CHECK(double(summary.floor_share) == 0.5);
  CHECK(summary.gpu_ns == 3'000'000'000);
  CHECK(summary.reason == "because");
  CHECK(mind.state() == attempt_state::reporting);
  step(summary_stored{id()});
  CHECK(mind.idle());
  CHECK(summaries[1] == 1);
  // And the next one.
  step(make_work(2));
  CHECK(said<propose_request>().work.id.ordinal == 2);
}

TEST_CASE_FIXTURE(worker_fixture, "a given candidate goes straight to the compiler") {
  auto work = make_work(1, attempt_kind::planted);
  work.given = make_candidate("given");
  step(work);
  CHECK(said<compile_request>().candidate.key == "given");
}

TEST_CASE_FIXTURE(worker_fixture, "a candidate that does not compile is judged without a lease") {
  for (auto status : {verdict_status::compile_error, verdict_status::reward_hack}) {
    reach(attempt_state::compiling);
    step(compiled(status));
    CHECK(said<refused_request>().compiled.status == status);
    CHECK_FALSE(says<lease_request>());
    step(judged(status));
    CHECK(said<attempt_summary>().outcome == attempt_outcome::judged);
    CHECK(said<attempt_summary>().status == status);
    CHECK(said<attempt_summary>().gpu_ns == 0);
  }
}

TEST_CASE_FIXTURE(worker_fixture, "a proposer with nothing ends the attempt as it says") {
  proposal p;
  p.kind = proposal_kind::exhausted;
  p.reason = "plateau";
  reach(attempt_state::proposing);
  step(answered<proposal>{id(), p});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::exhausted);
  CHECK(said<attempt_summary>().reason == "plateau");
  p.kind = proposal_kind::no_candidate;
  reach(attempt_state::proposing);
  step(answered<proposal>{id(), p});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::no_candidate);
}

TEST_CASE_FIXTURE(worker_fixture, "a taken key is proposed anew, with what is taken") {
  reach(attempt_state::claiming);
  step(claimed(false, {"k0"}));
  CHECK(mind.state() == attempt_state::proposing);
  CHECK(said<propose_request>().work.in_flight == std::vector<std::string>{"k0", "k1"});
  step(proposed("k2"));
  step(claimed());
  CHECK(said<compile_request>().candidate.key == "k2");
}

TEST_CASE_FIXTURE(
  worker_fixture, "the history of a problem is held until a candidate is chosen, and no longer") {
  auto work = make_work();
  work.history = {trial{}, trial{}, trial{}};
  mind = attempt{"worker-1", limits};
  step(work);
  step(proposed());
  step(claimed(false, {"k1"}));
  CHECK(said<propose_request>().work.history.size() == 3);
  step(proposed("k2"));
  step(claimed());
  CHECK(mind.work().history.empty());
  mind = attempt{"worker-1", limits};
  step(work);
  proposal none;
  none.kind = proposal_kind::exhausted;
  step(answered<proposal>{id(), none});
  CHECK(mind.work().history.empty());
}

TEST_CASE_FIXTURE(worker_fixture, "a proposer that only names taken keys ends the attempt") {
  reach(attempt_state::claiming);
  for (uint32_t i = 1; i < limits.claims_max; ++i) {
    step(claimed(false, {"k1"}));
    step(proposed());
  }
  step(claimed(false, {"k1"}));
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(worker_fixture, "an answer that never comes ends the attempt as infrastructure") {
  for (auto state : busy_states) {
    now = 0s;
    reach(state);
    CAPTURE(to_string(state));
    auto due = mind.next_deadline();
    REQUIRE(due);
    now = *due - 1ns;
    step(attempt_due{});
    CHECK(last.empty());
    now = *due;
    step(attempt_due{});
    CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
    CHECK(said<attempt_summary>().reason.find(to_string(state)) != std::string::npos);
    CHECK(mind.state() == attempt_state::reporting);
    step(attempt_due{});
    CHECK(summaries[1] == 1);
    now = *mind.next_deadline();
    step(attempt_due{});
    CHECK(mind.idle());
    CHECK(summaries[1] == 1);
  }
}

TEST_CASE_FIXTURE(worker_fixture, "a failure of an actor ends the attempt as infrastructure") {
  for (auto state : busy_states) {
    if (state == attempt_state::measuring)
      continue; // Measured again, see below.
    reach(state);
    CAPTURE(to_string(state));
    // Of an older attempt, and of a step that is over.
    step(step_failed{id(7), {errc::io_failed, "old"}});
    CHECK(last.empty());
    step(step_failed{id(), {errc::io_failed, "over"}, attempt_state::reporting});
    CHECK(last.empty());
    step(step_failed{id(), {errc::io_failed, "disk full"}, state});
    CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
    CHECK(said<attempt_summary>().reason.find("disk full") != std::string::npos);
    CHECK(summaries[1] == 1);
  }
}

TEST_CASE_FIXTURE(worker_fixture, "an abandoned attempt says so and gives back what it holds") {
  for (auto state : busy_states) {
    reach(state);
    CAPTURE(to_string(state));
    step(attempt_abandon{"aborted"});
    CHECK(said<attempt_summary>().outcome == attempt_outcome::abandoned);
    CHECK(says<lease_command>()
      == (state == attempt_state::waiting_lease || state == attempt_state::measuring));
    if (state == attempt_state::waiting_lease)
      CHECK(said<lease_command>().verb == lease_verb::cancel);
    if (state == attempt_state::measuring) {
      CHECK(said<lease_command>().verb == lease_verb::release);
      CHECK(said<lease_command>().token == 11);
    }
  }
  step(summary_stored{id()});
  step(attempt_abandon{"idle already"});
  CHECK(last.empty());
}

TEST_CASE_FIXTURE(worker_fixture, "a lease that comes too late is given back at once") {
  reach(attempt_state::waiting_lease);
  now = *mind.next_deadline();
  step(attempt_due{});
  CHECK(said<lease_command>().verb == lease_verb::cancel);
  step(granted(1));
  CHECK(said<lease_command>().verb == lease_verb::release);
  CHECK(said<lease_command>().token == 11);
  CHECK_FALSE(says<measure_request>());
}

TEST_CASE_FIXTURE(worker_fixture, "a grant that comes twice is used once") {
  reach(attempt_state::measuring);
  step(granted());
  CHECK(last.empty());
  CHECK(mind.state() == attempt_state::measuring);
}

TEST_CASE_FIXTURE(worker_fixture, "each attempt asks under a request number of its own") {
  reach(attempt_state::waiting_lease);
  auto first = said<lease_request>().request;
  step(attempt_abandon{"x"});
  step(summary_stored{id()});
  step(make_work(2));
  step(proposed("k2", 2));
  step(answered<claim_reply>{id(2), {true, {}}});
  step(compiled(verdict_status::passed, 2));
  CHECK(said<lease_request>().request != first);
  // The grant of the first one is not taken for that of the second.
  step(granted(first));
  CHECK(said<lease_command>().verb == lease_verb::release);
  CHECK(mind.state() == attempt_state::waiting_lease);
}

TEST_CASE_FIXTURE(worker_fixture, "a wait in vain and a revoked lease are infrastructure") {
  reach(attempt_state::waiting_lease);
  step(lease_ended{1, 0, "patience"});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
  now = 0s;
  reach(attempt_state::measuring);
  now = 7s;
  step(lease_ended{1, 10, "another token"});
  CHECK(last.empty());
  step(lease_ended{2, 11, "another request"});
  CHECK(last.empty());
  // Not its own fault, so it is measured again.
  step(lease_ended{1, 11, "expired"});
  CHECK_MESSAGE(!says<lease_command>(), "there is nothing to give back");
  CHECK(said<lease_request>().request == 2);
  CHECK(mind.state() == attempt_state::waiting_lease);
  step(granted(2, 12));
  step(lease_ended{2, 12, "node_lost: x"});
  step(granted(3, 13));
  step(lease_ended{3, 13, "expired"});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
  CHECK(said<attempt_summary>().reason.find("expired") != std::string::npos);
  CHECK(said<attempt_summary>().reason.find("3 times") != std::string::npos);
  CHECK(said<attempt_summary>().gpu_ns == 7'000'000'000);
}

TEST_CASE_FIXTURE(
  worker_fixture, "a victim is measured again under a lease of its own, and scored") {
  for (int how = 0; how < 4; ++how) {
    CAPTURE(how);
    reach(attempt_state::measuring);
    auto broken = measured();
    broken.failure_text = "the runner died";
    switch (how) {
    case 0:
      step(lease_ended{1, 11, "tainted: the GPU failed the probe after this lease"});
      break;
    case 1:
      step(broken);
      break;
    case 2:
      step(
        step_failed{id(), {errc::lease_expired, "no longer holds"}, attempt_state::measuring, 11});
      break;
    default:
      // The scorer has seen a newer token.
      step(measured());
      step(step_failed{id(), {errc::lease_expired, "too late"}, attempt_state::judging});
      break;
    }
    CHECK(says<lease_command>() == (how == 2));
    CHECK(said<lease_request>().request == 2);
    CHECK(said<lease_request>().candidate == "hash-of-k1");
    step(measured());
    CHECK_MESSAGE(last.empty(), "the result of the lost lease is never judged");
    step(granted(2, 12));
    CHECK(said<measure_request>().under.token == 12);
    step(step_failed{id(), {errc::lease_expired, "late news"}, attempt_state::measuring, 11});
    CHECK_MESSAGE(last.empty(), "news of the first lease does not touch the second");
    step(measured(12));
    CHECK(says<judge_request>());
    step(judged());
    CHECK(said<attempt_summary>().outcome == attempt_outcome::judged);
  }
}

TEST_CASE_FIXTURE(worker_fixture, "a poison candidate ends with a verdict, not in a loop") {
  reach(attempt_state::waiting_lease);
  SUBCASE("refused at once") {
    step(step_failed{
      id(), {errc::refused, "candidate hash-of-k1 failed on a, b"}, attempt_state::waiting_lease});
  }
  SUBCASE("refused while it waits") {
    step(lease_ended{1, 0, "refused: candidate hash-of-k1 failed on a, b"});
  }
  CHECK_FALSE(says<lease_request>());
  CHECK(said<refused_request>().compiled.status == verdict_status::runtime_error);
  CHECK(said<refused_request>().compiled.log.find("failed on a, b") != std::string::npos);
  step(judged(verdict_status::runtime_error));
  CHECK(said<attempt_summary>().outcome == attempt_outcome::judged);
  CHECK(said<attempt_summary>().status == verdict_status::runtime_error);
}

TEST_CASE_FIXTURE(worker_fixture, "a result under another token is not judged") {
  reach(attempt_state::measuring);
  step(measured(10));
  CHECK(last.empty());
  step(measured(11, 9));
  CHECK(last.empty());
  auto other_gpu = measured();
  other_gpu.gpu = 3;
  step(other_gpu);
  CHECK(last.empty());
  step(measured());
  CHECK(says<judge_request>());
}

TEST_CASE_FIXTURE(worker_fixture, "what failed on our side has no verdict") {
  reach(attempt_state::measuring);
  auto broken = measured();
  broken.failure_text = "the child could not start";
  for (uint64_t again = 1; again <= limits.repeats_max; ++again) {
    step(broken);
    CHECK(says<lease_request>());
    step(granted(1 + again, 11 + again));
    broken.token = 11 + again;
  }
  step(broken);
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
  CHECK_MESSAGE(said<attempt_summary>().gpu_ns == 9'000'000'000, "all three were paid for");
  reach(attempt_state::judging);
  step(judged(verdict_status::infrastructure));
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
  CHECK(said<attempt_summary>().objective_ns == 0);
  reach(attempt_state::compiling);
  step(compiled(verdict_status::infrastructure));
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(worker_fixture, "the loss of a machine is no repeat, however it is told") {
  limits.repeats_max = 0;
  reach(attempt_state::measuring);
  uint64_t request = 1;
  for (int i = 0; i < 6; ++i) {
    auto token = 11 + static_cast<uint64_t>(i);
    if (i % 2 == 0)
      step(lease_ended{request, token, "node_lost: node 'n1': it cannot be reached"});
    else
      step(step_failed{id(), {errc::node_lost, "node 'n1'"}, attempt_state::measuring, token});
    REQUIRE(mind.state() == attempt_state::waiting_lease);
    request = said<lease_request>().request;
    step(granted(request, token + 1));
    REQUIRE(mind.state() == attempt_state::measuring);
  }
  step(measured(17));
  REQUIRE(mind.state() == attempt_state::judging);
  // The outputs were on a machine that is gone.
  step(step_failed{id(), {errc::node_lost, "its outputs are gone"}, attempt_state::judging, 0});
  CHECK(mind.state() == attempt_state::waiting_lease);
  CHECK(summaries.empty());
}

TEST_CASE_FIXTURE(worker_fixture, "a GPU that is taken out of service is a repeat, as before") {
  limits.repeats_max = 0;
  reach(attempt_state::measuring);
  step(lease_ended{1, 11, "node_lost: the runner under token 11 cannot be ended"});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(
  worker_fixture, "a candidate under which one machine after the other is lost is given up") {
  limits.losses_max = 2;
  reach(attempt_state::measuring);
  for (uint64_t i = 0; i < 2; ++i) {
    step(lease_ended{1 + i, 11 + i, "node_lost: node 'n1': gone"});
    step(granted(2 + i, 12 + i));
  }
  step(lease_ended{3, 13, "node_lost: node 'n1': gone"});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(worker_fixture, "answers that are not awaited change nothing, in any state") {
  const std::vector<attempt_event> answers = {proposed(), claimed(), compiled(), measured(),
    judged(), summary_stored{id()}, lease_ended{1, 0, "x"}, lease_ended{9, 9, "x"}};
  // The answer that each state awaits, by its place in the list.
  const std::map<attempt_state, size_t> awaited = {{attempt_state::proposing, 0},
    {attempt_state::claiming, 1}, {attempt_state::compiling, 2}, {attempt_state::measuring, 3},
    {attempt_state::judging, 4}, {attempt_state::waiting_lease, 6}};
  for (auto state : busy_states)
    for (size_t i = 0; i < answers.size(); ++i) {
      if (awaited.at(state) == i)
        continue;
      reach(state);
      CAPTURE(to_string(state));
      CAPTURE(i);
      step(answers[i]);
      CHECK(last.empty());
      CHECK(mind.state() == state);
    }
}

TEST_CASE_FIXTURE(worker_fixture, "answers of an older attempt change nothing") {
  step(make_work(2));
  step(proposed("old", 1));
  CHECK(last.empty());
  CHECK(mind.state() == attempt_state::proposing);
  step(proposed("new", 2));
  CHECK(said<claim_request>().key == "new");
}

TEST_CASE_FIXTURE(worker_fixture, "an assignment while one is in work is answered, not taken") {
  reach(attempt_state::compiling);
  step(make_work(2));
  CHECK(said<attempt_summary>().id.ordinal == 2);
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
  CHECK(mind.state() == attempt_state::compiling);
  CHECK(mind.work().id.ordinal == 1);
  // The same one twice is a repetition, not a second attempt.
  step(make_work(1));
  CHECK(last.empty());
}

TEST_CASE_FIXTURE(
  worker_fixture, "a probe asks for its workloads, and its summary says what it was") {
  step(make_work());
  auto probe = proposed();
  probe.value.effort = attempt_effort::probe;
  probe.value.workloads = {"u2"};
  step(probe);
  step(claimed());
  step(compiled());
  step(granted());
  CHECK(said<measure_request>().workloads == std::vector<std::string>{"u2"});
  step(measured());
  CHECK(said<judge_request>().effort == attempt_effort::probe);
  CHECK(said<judge_request>().workloads == std::vector<std::string>{"u2"});
  auto v = judged();
  v.value.workloads.push_back({"u2", verdict_status::passed, 700, 0, 0, {}, {}, false, ""});
  step(v);
  CHECK(said<attempt_summary>().effort == attempt_effort::probe);
  REQUIRE(said<attempt_summary>().times.size() == 1);
  CHECK(said<attempt_summary>().times[0].ns == 700);
}

TEST_CASE_FIXTURE(worker_fixture, "what leaves workloads out is a probe, whatever it is called") {
  step(make_work());
  auto sly = proposed();
  sly.value.workloads = {"u2"};
  step(sly);
  step(claimed());
  step(compiled(verdict_status::compile_error));
  CHECK(said<refused_request>().effort == attempt_effort::probe);
}

TEST_CASE_FIXTURE(worker_fixture, "a baseline cannot be probed") {
  step(make_work(0, attempt_kind::baseline));
  auto probe = proposed("k1", 0);
  probe.value.effort = attempt_effort::probe;
  step(probe);
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(
  worker_fixture, "a judged attempt leaves a note: what it was and what limits it") {
  step(make_work());
  step(proposed());
  step(claimed());
  step(compiled());
  step(granted());
  auto m = measured();
  for (const char* bound : {"launch", "dram", "dram"}) {
    workload_measurement w;
    w.bound = bound;
    m.workloads.push_back(w);
  }
  step(m);
  step(judged());
  CHECK(said<attempt_summary>().note == "k1: 500 ns, limited by dram");
}

TEST_CASE_FIXTURE(worker_fixture, "nobody waits for a lease beyond the time of the run") {
  limits.run_end = 10min;
  now = 9min;
  reach(attempt_state::waiting_lease);
  CHECK(said<lease_request>().patience == 1min);
  now = 10min;
  step(lease_ended{1, 0, "waited in vain"});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::abandoned);
  CHECK(said<attempt_summary>().reason == "the time of the run is over");
}

TEST_CASE_FIXTURE(worker_fixture, "a candidate that is compiled after the end asks for no lease") {
  limits.run_end = 10min;
  now = 10min;
  reach(attempt_state::compiling);
  step(compiled());
  CHECK_FALSE(says<lease_request>());
  CHECK(said<attempt_summary>().outcome == attempt_outcome::abandoned);
}

TEST_CASE_FIXTURE(worker_fixture, "what is measured when the time is over is measured to its end") {
  limits.run_end = 10min;
  now = 9min;
  reach(attempt_state::measuring);
  now = 11min;
  step(measured());
  step(judged());
  CHECK(said<attempt_summary>().outcome == attempt_outcome::judged);
}

TEST_CASE_FIXTURE(worker_fixture, "before the end a wait in vain is a failure of ours") {
  limits.run_end = 10h;
  reach(attempt_state::waiting_lease);
  CHECK(said<lease_request>().patience == 1h);
  step(lease_ended{1, 0, "no GPU"});
  CHECK(said<attempt_summary>().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(worker_fixture, "whatever an attempt waits for, the end of the run ends it") {
  limits.run_end = 5min;
  for (auto state : {attempt_state::proposing, attempt_state::claiming, attempt_state::compiling,
         attempt_state::waiting_lease}) {
    CAPTURE(to_string(state));
    now = 4min;
    reach(state);
    CHECK(mind.next_deadline().value() <= limits.run_end);
    now = 5min;
    step(attempt_due{});
    CHECK(said<attempt_summary>().outcome == attempt_outcome::abandoned);
  }
  now = 4min;
  reach(attempt_state::measuring);
  CHECK(mind.next_deadline().value() > limits.run_end);
}
