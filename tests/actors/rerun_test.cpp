// From the fault on a bad GPU to the new verdict: real supervisor, planner, worker and broker.

#include "actors/gpu_lease.hpp"
#include "actors/planner.hpp"
#include "actors/rehearsal.hpp"
#include "actors/supervisor.hpp"
#include "actors/worker.hpp"
#include "report/run_table.hpp"
#include "tests/support/actor_fixture.hpp"

#include <map>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// Answers each measurement after a millisecond. When bad, everything that runs on it faults, and
/// its probes pass all the same.
class quick_gpu final : public gpu_actor::base {
public:
  quick_gpu(caf::actor_config& config, gpu_lease_actor broker, uint32_t gpu, bool bad)
    : gpu_actor::base(config), broker_(std::move(broker)), gpu_(gpu), bad_(bad) {}

  behavior_type make_behavior() override {
    report(device_state::up, 0);
    return {
      [this](const measure_request& what) -> caf::result<measurement> {
        running_.attempt = what.attempt;
        running_.gpu = gpu_;
        running_.token = what.under.token;
        running_.device = bad_ ? "bad" : "good";
        running_.held = 1ms;
        reply_ = make_response_promise<measurement>();
        report(device_state::active, running_.token);
        seam::tell_later(this, running_.held, gpu_actor{this}, tick{});
        return reply_;
      },
      [this](const lease_revoke& what) { report(device_state::verified, what.token); },
      [this](const probe_order&) { report(device_state::probed, 0); },
      [this](const tick&) {
        lease_command release;
        release.verb = lease_verb::release;
        release.gpu = gpu_;
        release.token = running_.token;
        release.outcome = bad_ ? lease_outcome::fault : lease_outcome::fine;
        seam::ask(this, broker_, release).then([](const lease_ack&) {});
        report(device_state::verified, running_.token, [this] { reply_.deliver(running_); });
      },
    };
  }
  void on_exit() override { broker_ = nullptr; }

private:
  void report(
    device_state state, uint64_t token, std::function<void()> then = [] {}) {
    device_report what;
    what.gpu = gpu_;
    what.state = state;
    what.token = token;
    what.model = "h200";
    what.probe.outcome = probe_outcome::passed;
    seam::ask(this, broker_, what).then([then](const lease_ack&) { then(); });
  }

  gpu_lease_actor broker_;
  uint32_t gpu_;
  bool bad_;
  measurement running_;
  caf::typed_response_promise<measurement> reply_;
};

/// What faulted fails; everything else passes.
class plain_scorer final : public scorer_actor::base {
public:
  plain_scorer(caf::actor_config& config, event_port events)
    : scorer_actor::base(config), events_(std::move(events)) {}

  behavior_type make_behavior() override {
    return {
      [this](const judge_request& what) {
        bool passed = what.measured.device == "good";
        verdict v;
        v.status = passed ? verdict_status::passed : verdict_status::runtime_error;
        v.objective_ns = passed ? 1000 : 0;
        event e{.kind = "verdict",
          .problem = what.attempt.problem,
          .attempt = to_string(what.attempt),
          .candidate = what.candidate.hash};
        e.data = nlohmann::json{{"kind", to_string(what.kind)}, {"key", what.candidate.key},
          {"status", to_string(v.status)}, {"objective_ns", v.objective_ns}, {"speedup", 1.0},
          {"sol_score", 0.0}, {"workloads", nlohmann::json::array()}}
                   .dump();
        events_.note(this, std::move(e));
        return v;
      },
      [](const refused_request&) { return verdict{}; },
      [](const prepared_problem&) {},
    };
  }
  void on_exit() override { events_.close(); }

private:
  event_port events_;
};

struct run_on_a_bad_gpu : actor_fixture {
  fake_journal journal = make_fake_journal(*this);
  std::shared_ptr<std::vector<run_ended>> ends = std::make_shared<std::vector<run_ended>>();
  portfolio_config mind;

  void go(uint32_t candidates) {
    portfolio_problem p{"p", {}};
    for (uint32_t i = 0; i < candidates; ++i) {
      candidate_ref c;
      c.key = c.hash = "c" + std::to_string(i);
      p.planted.push_back(c);
    }
    mind.search = false;
    supervisor_config config;
    auto& make = config.make;
    make.journal = [j = journal.handle](caf::actor_system&, const run_peers&) { return j; };
    make.lease = [](caf::actor_system& system, const run_peers& peers) {
      gpu_lease_config settings;
      settings.policy = make_fifo_policy();
      settings.events = peers.events;
      // The first fault calls for a probe, the second for quarantine.
      settings.table.blame.suspect_candidates = 1;
      for (const char* name : {"bad#0", "good#1"})
        settings.gpus.push_back({.name = name, .model = "h200"});
      settings.on_rerun = [supervisor = peers.supervisor](const blame_victim& victim) {
        seam::post(supervisor,
          rerun_request{victim.failure.problem, victim.failure.attempt, victim.candidate});
      };
      return system.spawn<gpu_lease>(std::move(settings));
    };
    make.compiler = [](caf::actor_system& system, const run_peers&) -> compiler_actor {
      return system.spawn<rehearsal_compiler>();
    };
    make.oracle = [](caf::actor_system& system, const run_peers&) -> oracle_actor {
      return system.spawn<rehearsal_oracle>();
    };
    make.scorer = [](caf::actor_system& system, const run_peers& peers) -> scorer_actor {
      return system.spawn<plain_scorer>(peers.events);
    };
    make.planner = [p, m = mind](caf::actor_system& system, const run_peers& peers) {
      planner_config settings;
      settings.mind = m;
      settings.problems = {p};
      settings.oracle = peers.oracle;
      settings.scorer = peers.scorer;
      settings.supervisor = peers.supervisor;
      settings.events = peers.events;
      auto made = portfolio::make(settings.mind, settings.problems);
      return planner_actor{system.spawn<planner>(std::move(settings), std::move(*made))};
    };
    make.gpu = [](caf::actor_system& system, const run_peers& peers, uint32_t index) -> gpu_actor {
      return system.spawn<quick_gpu>(peers.lease, index, index == 0);
    };
    make.proposer = [](caf::actor_system& system, const run_peers&, uint32_t) -> proposer_actor {
      return system.spawn<rehearsal_proposer>();
    };
    make.worker = [](caf::actor_system& system, const run_peers& peers,
                    uint32_t index) -> worker_actor {
      worker_config settings;
      settings.worker = "worker-" + std::to_string(index);
      settings.planner = peers.planner;
      settings.proposer = peers.proposers[index];
      settings.compiler = peers.compiler;
      settings.lease = peers.lease;
      settings.scorer = peers.scorer;
      settings.run_start = peers.run_start;
      return system.spawn<worker>(std::move(settings));
    };
    config.gpus = 2;
    config.run_started = {.kind = "run_started",
      .data = R"({"gpus":"mock","time_note":"none","seed":1,"problems":["p"]})"};
    config.on_end = [e = ends](const run_ended& how) { e->push_back(how); };
    tell(spawn<supervisor>(std::move(config)), start_working{});
    advance(1min);
  }

  run_table table() {
    auto made = make_run_table(journal->events);
    REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
    return *made;
  }
};

} // namespace

TEST_CASE_FIXTURE(run_on_a_bad_gpu,
  "what failed only on a GPU that is in quarantine now is judged again, and the report shows it") {
  go(4);
  REQUIRE(ends->size() == 1);
  CHECK_MESSAGE(ends->at(0).clean, ends->at(0).reason);
  CHECK(journal->last("gpu_quarantined").gpu == "bad#0");
  CHECK(journal->count("candidate_failed") == 2);
  CHECK(journal->count("rerun") == 2);
  // One had its verdict already, the other was being judged.
  CHECK(journal->count("rerun_planned") == 2);
  CHECK(journal->count("rerun_refused") == 0);
  size_t given_again = 0;
  std::map<std::string, std::string> newest;
  for (const auto& e : journal->events) {
    if (e.kind == "assigned" && e.reason.starts_with("re-run: its GPU was quarantined (attempt p/"))
      ++given_again;
    if (e.kind == "verdict")
      newest[e.candidate] = nlohmann::json::parse(e.data).at("status");
  }
  CHECK(given_again == 2);
  auto t = table();
  REQUIRE(t.planted.size() == 4);
  for (const auto& row : t.planted) {
    CHECK(row.status == "PASSED");
    CHECK(newest.at(row.key) == "PASSED");
  }
  CHECK(t.problems.at(0).status == "PASSED");
  CHECK_MESSAGE(t.attempts == 6, "re-runs cost attempts like every other");
}

TEST_CASE_FIXTURE(
  run_on_a_bad_gpu, "a budget that is spent leaves the victims unmeasured, and the log says so") {
  mind.attempt_budget = 2;
  go(4);
  REQUIRE(ends->size() == 1);
  CHECK(ends->at(0).clean);
  CHECK(journal->count("rerun") == 2);
  CHECK(journal->count("assigned") == 2);
  for (const auto& row : table().planted)
    CHECK(row.status == "RUNTIME_ERROR");
}
