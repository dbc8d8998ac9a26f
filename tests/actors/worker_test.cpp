#include "actors/worker.hpp"
#include "tests/support/actor_fixture.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct planner_memory {
  uint32_t asked = 0;
  std::vector<caf::typed_response_promise<work_reply>> waiting;
  std::vector<claim_request> claims;
  std::vector<attempt_summary> summaries;
  /// While true, a summary is not acknowledged.
  bool deaf = false;
  std::vector<caf::typed_response_promise<caf::unit_t>> open;
};

class fake_planner final : public planner_actor::base {
public:
  fake_planner(caf::actor_config& config, std::shared_ptr<planner_memory> memory)
    : planner_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {[this](const work_request&) -> caf::result<work_reply> {
              ++memory_->asked;
              auto reply = make_response_promise<work_reply>();
              memory_->waiting.push_back(reply);
              return reply;
            },
      [this](const claim_request& what) {
        memory_->claims.push_back(what);
        return claim_reply{true, {}};
      },
      [this](const attempt_summary& what) -> caf::result<void> {
        memory_->summaries.push_back(what);
        if (!memory_->deaf)
          return caf::unit;
        auto reply = make_response_promise<caf::unit_t>();
        memory_->open.push_back(reply);
        return reply;
      },
      [](const drain_request&) {}, [](const planner_query&) { return planner_snapshot{}; },
      [](const start_working&) {}, [](const peer_restarted&, const caf::strong_actor_ptr&) {},
      [](const rerun_request&) {}, [](const plant_request&) { return plant_reply{}; },
      [](const plant_withdrawal&) {}, [](const plant_close&) {}, [](const tick&) {}};
  }

  void on_exit() override {
    memory_->waiting.clear();
    memory_->open.clear();
  }

private:
  std::shared_ptr<planner_memory> memory_;
};

/// A service with one question: answers by script, or never when that gives nothing.
template <class Handle, class Request, class Reply>
class scripted final : public Handle::base {
public:
  struct memory {
    std::vector<Request> requests;
    std::function<std::optional<result<Reply>>(const Request&)> script;
    std::vector<caf::typed_response_promise<Reply>> open;
  };

  scripted(caf::actor_config& config, std::shared_ptr<memory> what)
    : Handle::base(config), memory_(std::move(what)) {}

  typename Handle::behavior_type make_behavior() override {
    return {[this](const Request& what) -> caf::result<Reply> {
      memory_->requests.push_back(what);
      auto now = memory_->script(what);
      if (!now) {
        auto reply = this->template make_response_promise<Reply>();
        memory_->open.push_back(reply);
        return reply;
      }
      if (!*now)
        return to_error(now->error());
      return **now;
    }};
  }

  void on_exit() override {
    for (auto& reply : memory_->open)
      reply.deliver(to_error({errc::shutting_down, "ended"}));
    memory_->open.clear();
  }

private:
  std::shared_ptr<memory> memory_;
};

using fake_proposer = scripted<proposer_actor, propose_request, proposal>;
using fake_compiler = scripted<compiler_actor, compile_request, compiled_candidate>;

struct scorer_memory {
  std::vector<judge_request> judged;
  std::vector<refused_request> refused;
  std::optional<failure> fails;
  bool silent = false;
  std::vector<caf::typed_response_promise<verdict>> open;
};

class fake_scorer final : public scorer_actor::base {
public:
  fake_scorer(caf::actor_config& config, std::shared_ptr<scorer_memory> memory)
    : scorer_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {[this](const judge_request& what) -> caf::result<verdict> {
              memory_->judged.push_back(what);
              return say(verdict_status::passed);
            },
      [this](const refused_request& what) -> caf::result<verdict> {
        memory_->refused.push_back(what);
        return say(what.compiled.status);
      },
      [](const prepared_problem&) {}};
  }

  void on_exit() override { memory_->open.clear(); }

private:
  caf::result<verdict> say(verdict_status status) {
    if (memory_->fails)
      return to_error(*memory_->fails);
    if (memory_->silent) {
      auto reply = make_response_promise<verdict>();
      memory_->open.push_back(reply);
      return reply;
    }
    verdict v;
    v.status = status;
    v.objective_ns = status == verdict_status::passed ? 77 : 0;
    return v;
  }

  std::shared_ptr<scorer_memory> memory_;
};

struct one_worker : actor_fixture {
  std::shared_ptr<planner_memory> planner = std::make_shared<planner_memory>();
  std::shared_ptr<fake_proposer::memory> proposer = std::make_shared<fake_proposer::memory>();
  std::shared_ptr<fake_compiler::memory> compiler = std::make_shared<fake_compiler::memory>();
  std::shared_ptr<scorer_memory> scorer = std::make_shared<scorer_memory>();
  fake_broker broker = make_fake_broker(*this);
  fake_gpu gpu = make_fake_gpu(*this);
  planner_actor planner_handle = spawn<fake_planner>(planner);
  proposer_actor proposer_handle = spawn<fake_proposer>(proposer);
  compiler_actor compiler_handle = spawn<fake_compiler>(compiler);
  std::function<void(const assignment&)> on_assigned;
  std::function<bool()> moves;
  worker_actor whom;

  one_worker() {
    proposer->script = [](const propose_request& what) -> std::optional<result<proposal>> {
      proposal out;
      out.kind = proposal_kind::candidate;
      out.candidate.key = "k" + std::to_string(what.work.id.ordinal);
      out.candidate.hash = out.candidate.key;
      return out;
    };
    compiler->script = [](
                         const compile_request& what) -> std::optional<result<compiled_candidate>> {
      compiled_candidate out;
      out.candidate = what.candidate.hash;
      out.status = verdict_status::passed;
      return out;
    };
  }

  void begin() {
    worker_config config;
    config.worker = "w-0";
    config.planner = planner_handle;
    config.proposer = proposer_handle;
    config.compiler = compiler_handle;
    config.lease = broker.handle;
    config.scorer = spawn<fake_scorer>(scorer);
    config.run_start = start;
    config.on_assigned = on_assigned;
    config.moves = moves;
    whom = spawn<worker>(std::move(config));
    tell(whom, start_working{});
  }

  void assign(uint32_t ordinal = 0) {
    REQUIRE(planner->waiting.size() == 1);
    work_reply reply{work_kind::assigned, {}, {}};
    reply.work.id = {"p", "cuda", ordinal};
    reply.work.device_model = "h200";
    auto to = planner->waiting.front();
    planner->waiting.clear();
    to.deliver(reply);
    settle();
  }

  void grant(size_t n = 0, uint64_t token = 9) {
    broker.grant(*this, n, lease{0, token, lease_class::timing, 10s}, gpu);
  }

  /// The one summary of the one attempt.
  attempt_summary only() {
    REQUIRE(planner->summaries.size() == 1);
    return planner->summaries[0];
  }

  void check_broken(const std::string& part) {
    auto s = only();
    CHECK(s.outcome == attempt_outcome::infrastructure);
    CHECK_MESSAGE(s.reason.find(part) != std::string::npos, s.reason);
    CHECK_MESSAGE(planner->asked == 2, "and asks for the next");
  }
};

template <class T>
std::optional<result<T>> no_answer() {
  return std::nullopt;
}

template <class T>
std::optional<result<T>> refuses(errc code, const char* what) {
  return result<T>{tl::unexpected<failure>{failure{code, what}}};
}

} // namespace

TEST_CASE_FIXTURE(
  one_worker, "an attempt goes through all its steps, and the next one is asked for") {
  begin();
  CHECK(planner->asked == 1);
  assign();
  REQUIRE(planner->claims.size() == 1);
  CHECK(planner->claims[0].key == "k0");
  REQUIRE(compiler->requests.size() == 1);
  CHECK(compiler->requests[0].device_model == "h200");
  REQUIRE(broker->requests.size() == 1);
  CHECK(broker->requests[0].what.need == "h200");
  grant();
  REQUIRE(gpu->requests.size() == 1);
  CHECK(gpu->requests[0].under.token == 9);
  REQUIRE(scorer->judged.size() == 1);
  CHECK(scorer->judged[0].measured.token == 9);
  CHECK(only().outcome == attempt_outcome::judged);
  CHECK(only().objective_ns == 77);
  CHECK(planner->asked == 2);
  assign(1);
  CHECK(compiler->requests.size() == 2);
}

TEST_CASE_FIXTURE(one_worker, "a worker that is to move ends between two attempts, never in one") {
  auto room = std::make_shared<bool>(false);
  moves = [room] { return *room; };
  begin();
  assign();
  *room = true;
  CHECK(alive(whom));
  grant();
  CHECK(only().outcome == attempt_outcome::judged);
  CHECK_FALSE(alive(whom));
  CHECK_MESSAGE(planner->asked == 1, "nothing was given to it that is lost now");
}

TEST_CASE_FIXTURE(one_worker, "what does not compile is judged without a GPU") {
  compiler->script = [](const compile_request&) -> std::optional<result<compiled_candidate>> {
    return compiled_candidate{};
  };
  begin();
  assign();
  CHECK(broker->requests.empty());
  CHECK(scorer->refused.size() == 1);
  CHECK(only().outcome == attempt_outcome::judged);
  CHECK(only().status == verdict_status::compile_error);
}

TEST_CASE_FIXTURE(one_worker, "a proposer without an idea ends the attempt as exhausted") {
  proposer->script = [](const propose_request&) -> std::optional<result<proposal>> {
    proposal out;
    out.kind = proposal_kind::exhausted;
    return out;
  };
  begin();
  assign();
  CHECK(only().outcome == attempt_outcome::exhausted);
}

TEST_CASE_FIXTURE(
  one_worker, "each part that fails ends the attempt as infrastructure and says how") {
  SUBCASE("proposer") {
    proposer->script = [](auto&) { return refuses<proposal>(errc::io_failed, "no disk"); };
    begin();
    assign();
    check_broken("no disk");
  }
  SUBCASE("compiler") {
    compiler->script = [](auto&) {
      return refuses<compiled_candidate>(errc::child_failed, "it died");
    };
    begin();
    assign();
    check_broken("it died");
  }
  SUBCASE("queue of the broker") {
    broker->refuses = failure{errc::queue_full, "too many wait"};
    begin();
    assign();
    check_broken("too many wait");
  }
  SUBCASE("measurement") {
    gpu->script = [](auto&) {
      return scripted_measurement{{}, 1s, failure{errc::lease_expired, "too old"}};
    };
    begin();
    assign();
    for (size_t n = 0; n < 3; ++n) { // Measured again under a lease of its own, twice.
      CHECK(planner->summaries.empty());
      grant(n, 9 + n);
      advance(1s);
    }
    CHECK(gpu->requests.size() == 3);
    check_broken("too old");
  }
  SUBCASE("scorer") {
    scorer->fails = failure{errc::child_failed, "the judge died"};
    begin();
    assign();
    grant();
    check_broken("the judge died");
  }
}

TEST_CASE_FIXTURE(
  one_worker, "an answer that never comes ends the attempt at its deadline, not before") {
  attempt_limits limits;
  std::chrono::nanoseconds wait{0};
  SUBCASE("proposer") {
    proposer->script = [](auto&) { return no_answer<proposal>(); };
    wait = limits.propose;
    begin();
    assign();
  }
  SUBCASE("compiler") {
    compiler->script = [](auto&) { return no_answer<compiled_candidate>(); };
    wait = limits.compile;
    begin();
    assign();
  }
  SUBCASE("grant") {
    wait = limits.lease_wait + limits.lease_margin;
    begin();
    assign();
  }
  SUBCASE("measurement") {
    gpu->script = [](auto&) { return std::optional<scripted_measurement>{}; };
    wait = 10s + limits.measure_margin;
    begin();
    assign();
    grant();
  }
  SUBCASE("verdict") {
    scorer->silent = true;
    wait = limits.judge;
    begin();
    assign();
    grant();
  }
  advance(wait - 1ns);
  CHECK(planner->summaries.empty());
  advance(1ns);
  check_broken("no answer in time");
}

TEST_CASE_FIXTURE(
  one_worker, "a wait that is given up is cancelled, a GPU that is given up is released") {
  begin();
  assign();
  SUBCASE("waiting") {
    advance(2h);
    REQUIRE(broker->commands.size() == 1);
    CHECK(broker->commands[0].verb == lease_verb::cancel);
    CHECK(broker->commands[0].request == broker->requests[0].what.request);
    grant(); // Crossed the cancellation.
    REQUIRE(broker->commands.size() == 2);
    CHECK(broker->commands[1].verb == lease_verb::release);
    CHECK(broker->commands[1].token == 9);
  }
  SUBCASE("measuring") {
    gpu->script = [](auto&) { return std::optional<scripted_measurement>{}; };
    grant();
    advance(1h);
    REQUIRE(broker->commands.size() == 1);
    CHECK(broker->commands[0].verb == lease_verb::release);
    CHECK(broker->commands[0].token == 9);
  }
  CHECK(only().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(one_worker, "answers that come after their deadline change nothing") {
  compiler->script = [](auto&) { return no_answer<compiled_candidate>(); };
  begin();
  assign();
  advance(1h);
  CHECK(only().outcome == attempt_outcome::infrastructure);
  assign(1);
  compiled_candidate late;
  late.status = verdict_status::passed;
  compiler->open[0].deliver(late);
  settle();
  CHECK(broker->requests.empty());
  compiler->open[1].deliver(late);
  settle();
  CHECK(broker->requests.size() == 1);
  compiler->open.clear();
}

TEST_CASE_FIXTURE(one_worker, "a failure of a step that is over does not cut the report short") {
  planner->deaf = true;
  gpu->script = [](auto&) {
    return scripted_measurement{{}, 5s, failure{errc::lease_expired, "revoked"}};
  };
  begin();
  assign();
  grant();
  for (size_t n = 0; n < 2; ++n) {
    tell(whom, lease_ended{broker->requests[n].what.request, 9 + n, "expired"});
    grant(n + 1, 10 + n);
  }
  tell(whom, lease_ended{broker->requests[2].what.request, 11, "expired"});
  CHECK(only().reason.find("taken back") != std::string::npos);
  advance(5s); // The GPU's own error comes now.
  CHECK(planner->summaries.size() == 1);
  CHECK(planner->asked == 1);
  planner->open[0].deliver(caf::unit);
  planner->open.clear();
  settle();
  CHECK(planner->asked == 2);
}

TEST_CASE_FIXTURE(
  one_worker, "leases that are taken back end the attempt, and nothing is given back twice") {
  gpu->script = [](auto&) { return std::optional<scripted_measurement>{}; };
  begin();
  assign();
  for (size_t n = 0; n < 3; ++n) {
    CHECK(planner->summaries.empty());
    grant(n, 9 + n);
    tell(whom, lease_ended{broker->requests[n].what.request, 9 + n, "expired"});
  }
  check_broken("expired");
  CHECK(broker->commands.empty());
}

TEST_CASE_FIXTURE(
  one_worker, "a compiler that is gone is waited for, and its successor gets the work") {
  begin();
  end(compiler_handle, caf::exit_reason::kill);
  assign();
  advance(1min);
  CHECK(planner->summaries.empty());
  compiler_handle = spawn<fake_compiler>(compiler);
  tell(
    whom, peer_restarted{role::compiler}, caf::actor_cast<caf::strong_actor_ptr>(compiler_handle));
  CHECK(compiler->requests.size() == 1);
  grant();
  CHECK(only().outcome == attempt_outcome::judged);
}

TEST_CASE_FIXTURE(
  one_worker, "a proposer that is gone is waited for, and a compiler does not stand in for it") {
  begin();
  end(proposer_handle, caf::exit_reason::kill);
  assign();
  tell(
    whom, peer_restarted{role::compiler}, caf::actor_cast<caf::strong_actor_ptr>(compiler_handle));
  CHECK(proposer->requests.empty());
  proposer_handle = spawn<fake_proposer>(proposer);
  tell(
    whom, peer_restarted{role::proposer}, caf::actor_cast<caf::strong_actor_ptr>(proposer_handle));
  CHECK(proposer->requests.size() == 1);
  CHECK(compiler->requests.size() == 1);
}

TEST_CASE_FIXTURE(
  one_worker, "a successor that never comes ends the attempt at the step's deadline") {
  begin();
  end(compiler_handle, caf::exit_reason::kill);
  assign();
  advance(attempt_limits{}.compile);
  check_broken("no answer in time");
  compiler_handle = spawn<fake_compiler>(compiler);
  tell(
    whom, peer_restarted{role::compiler}, caf::actor_cast<caf::strong_actor_ptr>(compiler_handle));
  CHECK_MESSAGE(compiler->requests.empty(), "what was held is of an attempt that is over");
}

TEST_CASE_FIXTURE(one_worker, "a compiler that dies with the work in hand costs the attempt") {
  compiler->script = [](auto&) { return no_answer<compiled_candidate>(); };
  begin();
  assign();
  end(compiler_handle, caf::exit_reason::kill);
  check_broken("ended");
}

TEST_CASE_FIXTURE(one_worker, "a GPU that is gone ends the attempt and the lease is released") {
  begin();
  assign();
  end(gpu.handle, caf::exit_reason::kill);
  for (size_t n = 0; n < 3; ++n) {
    grant(n, 9 + n);
    REQUIRE(broker->commands.size() == n + 1);
    CHECK(broker->commands[n].verb == lease_verb::release);
    CHECK(broker->commands[n].token == 9 + n);
  }
  CHECK(only().outcome == attempt_outcome::infrastructure);
}

TEST_CASE_FIXTURE(one_worker, "an exception at the start of an attempt kills the worker") {
  on_assigned = [](const assignment&) { throw std::runtime_error("drawn by a test"); };
  begin();
  assign();
  CHECK_FALSE(alive(whom));
  CHECK(planner->summaries.empty());
}

TEST_CASE_FIXTURE(
  one_worker, "a worker that is stopped asks no more and lives until its owner ends it") {
  begin();
  auto to = planner->waiting.front();
  planner->waiting.clear();
  to.deliver(work_reply{work_kind::stop, {}, "drained"});
  settle();
  advance(1h);
  CHECK(planner->asked == 1);
  CHECK(alive(whom));
}

TEST_CASE_FIXTURE(one_worker, "without a planner a worker keeps still") {
  begin();
  assign();
  end(planner_handle, caf::exit_reason::kill);
  grant();
  advance(1h);
  CHECK(alive(whom));
}
