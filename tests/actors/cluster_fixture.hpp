#pragma once

#include "actors/cluster_hub.hpp"
#include "tests/support/actor_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill::test {

/// What a node was told, and what it answers by itself.
struct node_memory {
  std::vector<node_welcome> welcomes;
  std::vector<node_task> tasks;
  std::vector<node_task_cancel> cancelled;
  std::vector<worker_order> orders;
  std::vector<std::string> drains;
  std::vector<std::string> farewells;
  /// Makes the answer of a task; nothing: it is not answered.
  std::function<std::optional<node_answer>(const node_task&)> script;
  /// Starts what is ordered; null: it is not answered.
  std::function<caf::strong_actor_ptr(uint32_t)> start_worker;

  size_t count(node_task_kind kind) const {
    return static_cast<size_t>(std::count_if(
      tasks.begin(), tasks.end(), [&](const node_task& t) { return t.kind == kind; }));
  }
  const node_task& last(node_task_kind kind) const {
    auto found = std::find_if(
      tasks.rbegin(), tasks.rend(), [&](const node_task& t) { return t.kind == kind; });
    REQUIRE(found != tasks.rend());
    return *found;
  }
};

class fake_agent final : public node_agent_actor::base {
public:
  fake_agent(caf::actor_config& config, std::shared_ptr<node_memory> memory, cluster_hub_actor hub)
    : node_agent_actor::base(config), memory_(std::move(memory)), hub_(std::move(hub)) {}

protected:
  behavior_type make_behavior() override {
    return {
      [this](const node_welcome& what, const caf::strong_actor_ptr&) {
        memory_->welcomes.push_back(what);
      },
      [this](const node_task& what) {
        memory_->tasks.push_back(what);
        auto answer = memory_->script ? memory_->script(what) : std::nullopt;
        if (!answer)
          return;
        answer->id = what.id;
        seam::tell(this, hub_, std::move(*answer));
      },
      [this](const node_task_cancel& what) { memory_->cancelled.push_back(what); },
      [this](const worker_order& what, const worker_peers&) {
        memory_->orders.push_back(what);
        if (what.end || !memory_->start_worker)
          return;
        seam::tell(
          this, hub_, worker_started{what.index, true, ""}, memory_->start_worker(what.index));
      },
      [this](const node_drain& what) { memory_->drains.push_back(what.reason); },
      [this](const node_farewell& what) { memory_->farewells.push_back(what.reason); },
      [](const tick&) {},
    };
  }
  void on_exit() override { hub_ = nullptr; }

private:
  std::shared_ptr<node_memory> memory_;
  cluster_hub_actor hub_;
};

struct keeper_memory {
  std::vector<blob_fetch> fetches;
  std::optional<failure> fails;
};

class fake_keeper final : public blob_keeper_actor::base {
public:
  fake_keeper(caf::actor_config& config, std::shared_ptr<keeper_memory> memory)
    : blob_keeper_actor::base(config), memory_(std::move(memory)) {}

protected:
  behavior_type make_behavior() override {
    return {
      [this](const blob_fetch& what, const caf::strong_actor_ptr&) -> caf::result<blobs_fetched> {
        memory_->fetches.push_back(what);
        if (memory_->fails)
          return to_error(*memory_->fails);
        return blobs_fetched{};
      },
      [](const blob_pull&) {}, [](const blob_piece&) {}, [](const tick&) {}};
  }

private:
  std::shared_ptr<keeper_memory> memory_;
};

/// The coordinator's own compiler, oracle and judge: what they were asked.
struct local_memory {
  std::vector<compile_request> compiles;
  std::vector<prepare_request> prepares;
  std::vector<std::string> draws_over;
  std::vector<judge_request> judges;
  caf::strong_actor_ptr compiler;
};

struct local_compiler final : compiler_actor::base {
  local_compiler(caf::actor_config& config, std::shared_ptr<local_memory> m)
    : compiler_actor::base(config), memory(std::move(m)) {}
  behavior_type make_behavior() override {
    return {[this](const compile_request& what) {
      memory->compiles.push_back(what);
      compiled_candidate out;
      out.candidate = what.candidate.hash;
      out.status = verdict_status::passed;
      return out;
    }};
  }
  void on_exit() override { memory = nullptr; } // Which holds this actor.
  std::shared_ptr<local_memory> memory;
};

struct local_oracle final : oracle_actor::base {
  local_oracle(caf::actor_config& config, std::shared_ptr<local_memory> m)
    : oracle_actor::base(config), memory(std::move(m)) {}
  behavior_type make_behavior() override {
    return {[this](const prepare_request& what) {
              memory->prepares.push_back(what);
              prepared_problem out;
              out.problem = what.problem;
              out.status = verdict_status::passed;
              out.reason = "here";
              return out;
            },
      [this](const draw_over& what) { memory->draws_over.push_back(what.draw); }};
  }
  std::shared_ptr<local_memory> memory;
};

struct local_judge final : judge_actor::base {
  local_judge(caf::actor_config& config, std::shared_ptr<local_memory> m)
    : judge_actor::base(config), memory(std::move(m)) {}
  behavior_type make_behavior() override {
    return {[this](const judge_request& what) {
      memory->judges.push_back(what);
      return evaluation{};
    }};
  }
  std::shared_ptr<local_memory> memory;
};

inline node_answer passed_measurement(const node_task& task) {
  node_answer out;
  workload_measurement one;
  one.uuid = "w";
  one.status = verdict_status::passed;
  one.time_ns = 1000;
  out.measured.workloads.push_back(one);
  out.measured.attempt = task.measure.attempt;
  out.measured.output_folder = "/on/the/node/job-1";
  out.ended.end = child_end::done;
  return out;
}

/// Does everything that it is asked at once, and well.
inline std::optional<node_answer> willing(const node_task& task) {
  node_answer out;
  switch (task.kind) {
  case node_task_kind::measure:
    return passed_measurement(task);
  case node_task_kind::prepare:
    out.prepared.problem = task.prepare.problem;
    out.prepared.status = verdict_status::passed;
    out.prepared.reason = "there";
    break;
  case node_task_kind::compile: {
    out.compiled.candidate = task.compile.candidate.hash;
    out.compiled.status = verdict_status::passed;
    compiled_unit unit;
    unit.key = "u";
    unit.code = {std::string(64, 'c'), 10};
    out.compiled.units.push_back(unit);
    break;
  }
  default:
    out.ended.end = child_end::done;
    break;
  }
  return out;
}

/// As `willing`, but tasks of this kind are never answered.
inline auto silent_about(node_task_kind kind) {
  return [kind](const node_task& task) { return task.kind == kind ? std::nullopt : willing(task); };
}

/// As `willing`, but tasks of this kind fail.
inline auto failing_at(node_task_kind kind, errc code, const std::string& what) {
  return [kind, code, what](const node_task& task) {
    auto out = willing(task);
    if (task.kind == kind) {
      out->failed = true;
      out->code = code;
      out->what = what;
    }
    return out;
  };
}

struct fake_node {
  std::shared_ptr<node_memory> memory;
  node_agent_actor agent;
  caf::strong_actor_ptr keeper;
  node_memory* operator->() const { return memory.get(); }
};

struct cluster : actor_fixture {
  fake_journal log = make_fake_journal(*this);
  std::shared_ptr<local_memory> local = std::make_shared<local_memory>();
  std::shared_ptr<keeper_memory> keeper = std::make_shared<keeper_memory>();
  std::shared_ptr<remote_book> book = std::make_shared<remote_book>();
  std::shared_ptr<std::atomic<uint64_t>> ids = std::make_shared<std::atomic<uint64_t>>(1);
  cluster_hub_config config;
  growing_lease_actor broker;
  cluster_center_actor hub;

  cluster() {
    gpu_lease_config lease;
    lease.table.gpus_may_come = true;
    lease.policy = *policy_by_name("fifo");
    lease.events = event_port{log.handle, start};
    lease.token_floors["n1/mock:h200#0"] = 5000;
    broker = spawn<gpu_lease>(std::move(lease));
    config.run = "run-1";
    config.incarnation = 3;
    config.terms = "{}";
    config.device_model = "h200";
    config.needs = {"mock:h200", "sm_90a", "clang", true};
    config.lease = broker;
    config.events = event_port{log.handle, start};
    config.book = book;
    config.greet = [](const cluster_hello&) { return cluster_greeting{true, "", 1, "x"}; };
    config.key_of = [](const measure_request& what) { return what.candidate.hash; };
    auto& make = config.make;
    make.compiler = [m = local](caf::actor_system& in) -> compiler_actor {
      auto made = in.spawn<local_compiler>(m);
      m->compiler = caf::actor_cast<caf::strong_actor_ptr>(made);
      return made;
    };
    make.oracle = [m = local](
                    caf::actor_system& in) -> oracle_actor { return in.spawn<local_oracle>(m); };
    make.judge = [m = local](
                   caf::actor_system& in) -> judge_actor { return in.spawn<local_judge>(m); };
    make.keeper = [m = keeper](caf::actor_system& in) -> blob_keeper_actor {
      return in.spawn<fake_keeper>(m);
    };
    make.executor = [this](caf::actor_system& in, const remote_device& device) -> gpu_actor {
      gpu_executor_config executor;
      executor.gpu = device.gpu;
      executor.name = device.name;
      executor.model = "h200";
      executor.boot = device.boot;
      executor.broker = broker;
      executor.child_front = device.front;
      executor.events = event_port{log.handle, start};
      executor.steps = remote_steps(book, ids);
      executor.when_ended = errc::node_lost;
      return in.spawn<gpu_executor>(std::move(executor));
    };
  }
  ~cluster() {
    broker = nullptr;
    hub = nullptr;
    config = {};
    end_all();
  }

  void begin() {
    hub = spawn<cluster_hub>(config);
    settle();
  }

  fake_node node() {
    fake_node out;
    out.memory = std::make_shared<node_memory>();
    out.memory->script = willing;
    out.agent = spawn<fake_agent>(out.memory, cluster_hub_actor{hub});
    out.keeper =
      caf::actor_cast<caf::strong_actor_ptr>(spawn<fake_keeper>(std::make_shared<keeper_memory>()));
    return out;
  }

  static node_offer offer_of(const std::string& name, const std::string& boot = "b1") {
    node_offer out;
    out.node = name;
    out.boot = boot;
    node_device device;
    device.name = "mock:h200#0";
    device.label = "mock:h200";
    device.model = "h200";
    device.arch = "sm_90a";
    out.devices = {device};
    out.compile_slots = 1;
    out.workers = 2;
    out.toolchain = "clang";
    return out;
  }

  template <class... Ts>
  void say(const fake_node& who, Ts... xs) {
    self_of(who.agent)->send(hub, std::move(xs)...);
    settle();
  }

  void offer(const fake_node& who, const node_offer& what) {
    say(who, what, caf::actor_cast<caf::strong_actor_ptr>(who.agent), who.keeper);
  }

  fake_node join(const std::string& name, const std::string& boot = "b1") {
    auto out = node();
    offer(out, offer_of(name, boot));
    REQUIRE(out->welcomes.size() == 1);
    REQUIRE_MESSAGE(out->welcomes[0].taken, out->welcomes[0].reason);
    say(out, node_ready{});
    return out;
  }

  node_snapshot status(const std::string& name) {
    auto all = *answer(ask<cluster_snapshot>(hub, cluster_query{}));
    for (auto& one : all.nodes)
      if (one.node == name)
        return one;
    FAIL("no such node");
    return {};
  }

  gpu_snapshot gpu(size_t index = 0) {
    return answer(ask<broker_snapshot>(broker, broker_query{}))->gpus.at(index);
  }

  static compile_request compile_of(const std::string& hash) {
    compile_request out;
    out.attempt = {"softmax", "cuda", 1};
    out.candidate.hash = hash;
    return out;
  }

  /// A lease for whoever asks, and the measurement under it.
  lease_granted granted(const fake_holder& who, uint64_t number) {
    lease_request what;
    what.request = number;
    what.need = "h200";
    what.attempt = "softmax/cuda/1";
    ask_as<lease_ticket>(who.handle, broker, what);
    REQUIRE(!who->grants.empty());
    return who->grants.back().what;
  }
  reply<measurement> measure(const fake_holder& who, const lease_granted& under) {
    measure_request what;
    what.under = under.granted;
    what.attempt = {"softmax", "cuda", 1};
    what.candidate.hash = "h1";
    return ask_as<measurement>(
      who.handle, caf::actor_cast<gpu_actor>(who->grants.back().executor), what);
  }
};

} // namespace gristmill::test
