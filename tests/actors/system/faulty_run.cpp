#include "tests/actors/system/faulty_run.hpp"

#include "actors/compiler.hpp"
#include "actors/gpu_executor.hpp"
#include "actors/gpu_lease.hpp"
#include "actors/journal.hpp"
#include "actors/judge.hpp"
#include "actors/oracle.hpp"
#include "actors/planner.hpp"
#include "actors/runner_steps.hpp"
#include "actors/scorer.hpp"
#include "actors/supervisor.hpp"
#include "actors/template_proposer.hpp"
#include "actors/worker.hpp"
#include "journal/event_line.hpp"
#include "tests/support/actor_fixture.hpp"

#include <algorithm>
#include <map>
#include <random>

namespace gristmill::test {

namespace {

using namespace std::chrono_literals;

/// Keeps the log in memory; from some event on it fails, when the seed says so.
class memory_sink final : public event_sink {
public:
  memory_sink(std::vector<event>& events, size_t fails_after)
    : events_(events), fails_after_(fails_after) {}

  result<uint64_t> append(std::span<const event> events, durability) override {
    if (fails_after_ != 0 && events_.size() + events.size() > fails_after_)
      return fail(errc::io_failed, "the disk is full");
    for (auto e : events) {
      auto data = canonical_data(e.data);
      if (!data)
        return pass(data);
      e.data = *data;
      e.seq = events_.size() + 1;
      e.incarnation = 1;
      events_.push_back(std::move(e));
    }
    return events_.size();
  }

private:
  std::vector<event>& events_;
  size_t fails_after_;
};

struct faulty_run : actor_fixture {
  std::mt19937_64 random;
  run_context_ptr context;
  fake_child_front children = make_fake_child_front(*this);
  faulty_outcome out;
  std::map<std::string, caf::strong_actor_ptr> last;
  /// Of a hundred: children that die, lie or never answer; candidates that are bad; workers that
  /// die.
  uint64_t children_bad = 0, candidates_bad = 0, workers_bad = 0;
  size_t runners = 0;
  std::map<uint32_t, uint32_t> gpu_starts;
  size_t journal_fails_after = 0;
  std::chrono::nanoseconds journal_delay{0};
  attempt_limits limits;
  uint32_t workers = 1;

  uint64_t draw(uint64_t below) { return random() % below; }
  bool happens(uint64_t of_a_hundred) { return draw(100) < of_a_hundred; }
  uint64_t rate() { return std::vector<uint64_t>{0, 0, 5, 20}[draw(4)]; }

  faulty_run(const small_run& shared, uint64_t seed) : random(seed) {
    auto own = std::make_shared<run_context>(*shared.context);
    own->directory = shared.folder.path / "run";
    own->child_ids = std::make_shared<std::atomic<uint64_t>>(1);
    own->seed = seed;
    std::filesystem::remove_all(own->directory);
    std::filesystem::create_directories(own->directory);
    while (own->problems.size() > 1 + draw(2))
      own->problems.erase(std::prev(own->problems.end()));
    context = own;
    time.shuffle(seed);
    out.gpus = static_cast<uint32_t>(1 + draw(3));
    workers = static_cast<uint32_t>(1 + draw(4));
    out.attempt_budget = 2 + draw(7);
    children_bad = rate();
    candidates_bad = rate();
    workers_bad = rate();
    journal_delay = std::chrono::milliseconds{std::vector<int>{2, 2, 100, 1500}[draw(4)]};
    journal_fails_after = happens(5) ? 3 + draw(60) : 0;
    out.journal_failed = journal_fails_after != 0;
    limits.propose = 10s;
    limits.claim = 5s;
    limits.compile = 20s;
    limits.lease_wait = std::chrono::seconds{std::vector<int>{1, 10, 60}[draw(3)]};
    limits.lease_margin = 5s;
    limits.measure_margin = 40s;
    limits.judge = 20s;
    limits.report = 10s;
    children->obeys_cancel = !happens(20);
    children->obeys_terminate = children->obeys_cancel && !happens(30);
    children->script = [this](const child_request& what) { return child(what); };
  }
  ~faulty_run() { last.clear(); }

  std::optional<scripted_child> child(const child_request& what) {
    runners = static_cast<size_t>(
      std::count_if(children->requests.begin(), children->requests.end(), [&](const auto& r) {
        return r.profile == child_profile::runner
          && (r.id == what.id || children->promises.count(r.id) != 0);
      }));
    out.runners_most = std::max(out.runners_most, runners);
    scripted_child does;
    does.after = std::chrono::milliseconds{draw(5000)};
    if (happens(children_bad)) {
      switch (draw(6)) {
      case 0:
        return std::nullopt; // Never, unless somebody cancels it.
      case 1:
        does.error = failure{errc::queue_full, "too many children"};
        return does;
      case 2:
        does.after = 1min;
        break; // Far too late.
      case 3:
        does.result = child_that_says({}, child_end::no_done);
        does.result.status = 128 + 9;
        return does;
      case 4:
        does.result = child_that_says({}, child_end::deadline);
        return does;
      default:
        does.result = child_that_says({"{\"line\":\"done\"}"});
        return does;
      }
    }
    child_manner manner;
    manner.time_ns = 10'000 + draw(90'000);
    if (happens(candidates_bad)) {
      manner.compile = verdict_status::compile_error;
      manner.run = verdict_status::runtime_error;
      manner.judge = verdict_status::incorrect_numerical;
    }
    does.result = child_that_says(child_lines(what, manner));
    return does;
  }

  template <class Handle>
  Handle remembered(const std::string& who, Handle made) {
    last[who] = caf::actor_cast<caf::strong_actor_ptr>(made);
    return made;
  }

  run_factories factories() {
    run_factories make;
    make.journal = [this](caf::actor_system& system, const run_peers&) {
      journal_config config;
      config.sink = std::make_unique<memory_sink>(out.events, journal_fails_after);
      config.barrier_within = journal_delay;
      config.relaxed_within = 10 * journal_delay;
      return system.spawn<journal>(std::move(config));
    };
    make.child_front = [this](caf::actor_system&, const run_peers&) { return children.handle; };
    make.lease = [this](caf::actor_system& system, const run_peers& peers) {
      gpu_lease_config config;
      config.table.caps.fill(10s);
      config.table.verify_limit = 30s;
      config.table.ttl = 6s;
      config.policy = make_fifo_policy();
      for (uint32_t i = 0; i < out.gpus; ++i)
        config.gpus.push_back({.name = gpu_name(i), .model = "h200"});
      config.events = peers.events;
      return system.spawn<gpu_lease>(std::move(config));
    };
    make.compiler = [this](caf::actor_system& system, const run_peers& peers) {
      compiler_config config;
      config.context = context;
      config.device_code = {"/usr/bin/clang++-19", "clang-19.1.7"};
      config.child_front = peers.child_front;
      config.events = peers.events;
      return remembered("compiler", system.spawn<compiler>(std::move(config)));
    };
    make.oracle = [this](caf::actor_system& system, const run_peers& peers) {
      oracle_config config;
      config.context = context;
      config.child_front = peers.child_front;
      return remembered("oracle", system.spawn<oracle>(std::move(config)));
    };
    make.judge = [this](caf::actor_system& system, const run_peers& peers) {
      return system.spawn<judge>(judge_config{context, peers.child_front});
    };
    make.scorer = [this](caf::actor_system& system, const run_peers& peers) {
      scorer_config config;
      config.context = context;
      config.judge = peers.judge;
      config.events = peers.events;
      return system.spawn<scorer>(std::move(config));
    };
    make.planner = [this](caf::actor_system& system, const run_peers& peers) {
      planner_config config;
      config.mind.seed = context->seed;
      config.mind.wall_budget = 30min;
      config.mind.attempt_budget = out.attempt_budget;
      for (const auto& [name, p] : context->problems)
        config.problems.push_back({name, {}});
      config.oracle = peers.oracle;
      config.scorer = peers.scorer;
      config.supervisor = peers.supervisor;
      config.events = peers.events;
      auto mind = portfolio::make(config.mind, config.problems);
      return system.spawn<planner>(std::move(config), std::move(*mind));
    };
    make.gpu = [this](caf::actor_system& system, const run_peers& peers, uint32_t index) {
      gpu_executor_config config;
      config.gpu = index;
      config.name = gpu_name(index);
      config.model = "h200";
      config.boot = "1." + std::to_string(++gpu_starts[index]);
      config.ttl = 6s;
      config.broker = peers.lease;
      config.child_front = peers.child_front;
      config.events = peers.events;
      config.steps = runner_steps(context, "mock:" + context->device_model);
      return remembered("gpu", system.spawn<gpu_executor>(std::move(config)));
    };
    make.proposer = [this](caf::actor_system& system, const run_peers&, uint32_t) {
      return remembered("proposer", system.spawn<template_proposer>(context));
    };
    make.worker = [this](caf::actor_system& system, const run_peers& peers, uint32_t index) {
      worker_config config;
      config.worker = "worker-" + std::to_string(index);
      config.limits = limits;
      config.planner = peers.planner;
      config.proposer = peers.proposers[index];
      config.compiler = peers.compiler;
      config.lease = peers.lease;
      config.scorer = peers.scorer;
      config.run_start = peers.run_start;
      config.on_assigned = [this](const assignment&) {
        if (happens(workers_bad))
          throw std::runtime_error("drawn from the seed");
      };
      return remembered("worker", system.spawn<worker>(std::move(config)));
    };
    return make;
  }

  static std::string gpu_name(uint32_t index) { return "mock:h200#" + std::to_string(index); }

  void go() {
    supervisor_config config;
    config.make = factories();
    config.gpus = out.gpus;
    config.workers = workers;
    config.run_started = {.kind = "run_started"};
    config.on_end = [this](const run_ended& how) { out.ends.push_back(how); };
    auto whom = spawn<supervisor>(std::move(config));
    caf::anon_send(whom, start_working{});
    auto strikes = draw(4);
    auto interrupts = happens(20) ? 1 + draw(2) : 0;
    for (uint64_t i = 0; i < strikes; ++i) {
      time.run_for(std::chrono::milliseconds{draw(20'000)});
      // Also with children that die slowly: the next executor waits for those of the last one.
      auto who =
        std::vector<std::string>{"compiler", "oracle", "proposer", "worker", "gpu"}[draw(5)];
      if (out.ends.empty() && last[who])
        caf::anon_send_exit(last[who], caf::exit_reason::kill);
    }
    for (uint64_t i = 0; i < interrupts; ++i) {
      time.run_for(std::chrono::milliseconds{draw(20'000)});
      caf::anon_send(whom, drain_request{"interrupted"});
    }
    for (int i = 0; i < 120 && out.ends.empty(); ++i)
      time.run_for(1min);
    last.clear();
  }
};

} // namespace

faulty_outcome run_with_faults(const small_run& shared, uint64_t seed) {
  faulty_run run{shared, seed};
  run.go();
  return std::move(run.out);
}

} // namespace gristmill::test
