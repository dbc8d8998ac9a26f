#include "cli/run_actors.hpp"

#include "actors/compiler.hpp"
#include "actors/gpu_executor.hpp"
#include "actors/gpu_lease.hpp"
#include "actors/gpu_sleep.hpp"
#include "actors/judge.hpp"
#include "actors/oracle.hpp"
#include "actors/planner.hpp"
#include "actors/proposers.hpp"
#include "actors/rehearsal.hpp"
#include "actors/run_events.hpp"
#include "actors/runner_steps.hpp"
#include "actors/scorer.hpp"
#include "actors/worker.hpp"
#include "cli/run_cluster.hpp"
#include "cli/trial_child.hpp"
#include "gpu/probe.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

/// Executors renew three times within it.
constexpr std::chrono::seconds lease_ttl{30};

/// The device group of a GPU and its name in events, such as "mock:h200#0" or "cuda:1".
std::pair<device_group, std::string> device_of(const run_setup& setup, uint32_t index) {
  uint32_t first = 0;
  for (const auto& group : setup.devices) {
    if (index < first + group.count) {
      if (group.what == device_group::kind::cuda)
        return {group, group.which};
      auto kind = group.what == device_group::kind::sleep ? "sleep" : "mock:" + group.model;
      return {group, kind + "#" + std::to_string(index)};
    }
    first += group.count;
  }
  return {};
}

} // namespace

portfolio_config planner_mind(const run_setup& setup) {
  portfolio_config mind;
  mind.allocation = setup.allocation;
  mind.seed = setup.context.seed;
  mind.device_model = setup.context.device_model;
  // What a mock takes of a lease says how slow our interpreter is, not what a candidate costs.
  mind.share_by_attempts = !setup.rehearsal && !setup.context.measured;
  mind.wait_for_turn = setup.workers == 1;
  mind.takes_plants = setup.takes_plants;
  mind.search = setup.settings.proposer != "scripted";
  mind.wall_budget = std::chrono::nanoseconds{setup.limits.wall_ns.value_or(0)};
  mind.attempt_budget = setup.limits.attempts.value_or(0);
  mind.gpu_budget_ns = setup.limits.gpu_ns.value_or(0);
  mind.each_problem = setup.models.limits.each_problem;
  mind.each_worker = setup.models.limits.each_agent;
  return mind;
}

namespace {

attempt_limits attempt_limits_of(const run_setup& setup) {
  attempt_limits limits;
  // Every node may be away for a while, and that is nobody's fault.
  if (setup.listen)
    limits.lease_wait = lease_table_config{}.patience_max;
  if (setup.rehearsal)
    limits.estimated_hold =
      std::chrono::nanoseconds{static_cast<int64_t>(setup.devices.front().sleep_ns)};
  if (setup.models.asks) {
    // The gateway always answers within its patience, so this only ends what got lost.
    uint32_t questions = 8;
    for (const auto& tool : setup.models.program->rules.tools)
      questions += 2 * tool.calls_max;
    limits.propose = questions * gateway_policy{}.patience;
  }
  limits.run_end = std::chrono::nanoseconds{setup.limits.wall_ns.value_or(0)};
  return limits;
}

std::unique_ptr<lease_policy> policy_of(const run_setup& setup) {
  auto policy = policy_from_text(setup.settings.lease_policy);
  return policy ? std::move(*policy) : nullptr; // Checked by make_run_setup.
}

gpu_lease_actor make_lease(caf::actor_system& system, const run_peers& peers,
  const run_setup& setup, uint32_t incarnation,
  const std::map<std::string, uint64_t>& token_floors) {
  gpu_lease_config config;
  config.policy = policy_of(setup);
  config.events = peers.events;
  config.on_rerun = [supervisor = peers.supervisor](const blame_victim& victim) {
    seam::post(
      supervisor, rerun_request{victim.failure.problem, victim.failure.attempt, victim.candidate});
  };
  for (uint32_t i = 0; i < setup.gpu_count; ++i) {
    auto name = device_of(setup, i).second;
    auto floor = token_floors.find(name);
    config.gpus.push_back({.name = name,
      .model = setup.context.device_model,
      .token_floor = floor == token_floors.end() ? 0 : floor->second,
      .arch = setup.context.arch});
  }
  // A check that takes a GPU milliseconds takes an interpreter minutes, more of them where many
  // devices share few processors. What never ends is stopped by the limit on instructions.
  if (setup.devices.front().what == device_group::kind::mock)
    config.table.caps[static_cast<size_t>(lease_class::timing)] = std::chrono::minutes{10};
  // Each process of a comparison makes a context, warms the device up and brings its inputs there;
  // no sample begins after 5 s of a workload (`actors/run_jobs.cpp`).
  if (setup.context.measured)
    config.table.caps[static_cast<size_t>(lease_class::timing)] = std::chrono::minutes{5};
  config.table.gpus_may_come = setup.listen.has_value();
  config.token_floors = token_floors;
  config.table.ttl = lease_ttl;
  config.table.epoch = incarnation;
  config.table.waiting_max = std::max<uint32_t>(1024, 2 * setup.workers);
  return system.spawn<gpu_lease>(std::move(config));
}

gpu_actor make_gpu(caf::actor_system& system, const run_peers& peers, const run_setup& setup,
  const run_context_ptr& context, uint32_t index, const std::string& boot) {
  auto [group, name] = device_of(setup, index);
  if (group.what == device_group::kind::sleep) {
    gpu_sleep_config config;
    config.gpu = index;
    config.name = name;
    config.model = setup.context.device_model;
    config.boot = boot;
    config.ttl = lease_ttl;
    config.broker = peers.lease;
    config.events = peers.events;
    config.duration = std::chrono::nanoseconds{static_cast<int64_t>(group.sleep_ns)};
    return system.spawn<gpu_sleep>(std::move(config));
  }
  gpu_executor_config config;
  config.gpu = index;
  config.name = name;
  config.model = setup.context.device_model;
  config.boot = boot;
  config.ttl = lease_ttl;
  config.broker = peers.lease;
  config.child_front = peers.child_front;
  config.events = peers.events;
  const bool real = group.what == device_group::kind::cuda;
  config.steps = runner_steps(context, real ? group.which : "mock:" + group.model);
  config.probe = real ? make_cuda_probe("gristmill-runner") : make_mock_probe("gristmill-runner");
  return system.spawn<gpu_executor>(std::move(config));
}

planner_actor make_planner(caf::actor_system& system, const run_peers& peers,
  const run_setup& setup, const std::shared_ptr<restored_run>& restored,
  const std::shared_ptr<verdict_book>& book) {
  planner_config config;
  config.book = book;
  config.mind = planner_mind(setup);
  config.problems = setup.problems;
  config.oracle = peers.oracle;
  config.scorer = peers.scorer;
  config.supervisor = peers.supervisor;
  config.events = peers.events;
  // Not started twice: when it dies, the run ends.
  auto mind = restored ? result<portfolio>{std::move(restored->mind)}
                       : portfolio::make(config.mind, config.problems);
  if (!mind) { // Checked by make_run_setup: problems are there and named once.
    spdlog::error("{}", mind.error().what);
    return {};
  }
  return system.spawn<planner>(std::move(config), std::move(*mind));
}

/// For tests of the whole program: `GRISTMILL_FAULT=worker:N` makes the worker that is assigned
/// attempt ordinal N of any problem throw, once.
std::function<void(const assignment&)> planned_fault() {
  const char* text = std::getenv("GRISTMILL_FAULT");
  constexpr std::string_view prefix = "worker:";
  if (!text || !std::string_view(text).starts_with(prefix))
    return nullptr;
  auto ordinal = static_cast<uint32_t>(std::strtoul(text + prefix.size(), nullptr, 10));
  auto thrown = std::make_shared<std::atomic<bool>>(false);
  return [ordinal, thrown](const assignment& work) {
    if (work.id.ordinal == ordinal && !thrown->exchange(true))
      throw std::runtime_error("planned by GRISTMILL_FAULT");
  };
}

model_mind mind_of(const run_setup& setup, const std::shared_ptr<restored_run>& restored) {
  model_mind out;
  out.program = setup.models.program;
  out.docs = setup.models.docs;
  out.toolchain = setup.settings.toolchain;
  out.closed = {setup.models.end, &setup.models.end->closed};
  out.search_when_closed = std::any_of(setup.proposers.begin(), setup.proposers.end(),
    [](const proposer_choice& c) { return !c.asks_models(); });
  // Nobody is spared by waiting for a cassette.
  if (setup.models.cassette.replay)
    out.pause_first = std::chrono::nanoseconds{0};
  if (restored)
    for (const auto& [problem, lines] : restored->insights)
      out.book->set_insights(problem, lines);
  return out;
}

/// The gateway, and who is told when it comes to its end.
void add_models(
  run_factories& make, const run_setup& setup, uint32_t incarnation, bool goes_on_without) {
  // The planner is started after the gateway.
  auto drained = std::make_shared<planner_actor>();
  make.planner = [inner = std::move(make.planner), drained](
                   caf::actor_system& system, const run_peers& peers) {
    auto made = inner(system, peers);
    *drained = made;
    return made;
  };
  make.models = [setup, incarnation, drained, goes_on_without](
                  caf::actor_system& system, const run_peers& peers) {
    gateway_start start;
    start.seed = setup.context.seed;
    start.run_directory = setup.context.directory;
    start.resumed = incarnation > 1;
    start.on_stop = [drained, goes_on_without](const failure& why) {
      spdlog::warn("models are asked no more: {}", why.what);
      if (auto planner = std::exchange(*drained, nullptr); planner && !goes_on_without)
        seam::post(planner, drain_request{why.what});
    };
    start.on_miss = [supervisor = peers.supervisor](const std::string& why) {
      seam::post(supervisor, run_ended{why, false});
    };
    return make_gateway(system, peers, setup.models, start);
  };
}

} // namespace

namespace {

run_factories local_actors(const run_setup& setup, const run_context_ptr& context,
  std::unique_ptr<event_sink> sink, child_starter* starter, uint32_t incarnation,
  const std::shared_ptr<restored_run>& restored, const cluster_start* cluster) {
  run_factories make;
  auto shared_sink = std::make_shared<std::unique_ptr<event_sink>>(std::move(sink));
  make.journal = [shared_sink](caf::actor_system& system, const run_peers&) {
    journal_config config;
    config.sink = std::move(*shared_sink);
    return system.spawn<journal, caf::detached>(std::move(config)); // SQLite waits for the disk.
  };
  if (starter)
    make.child_front = [starter](caf::actor_system& system, const run_peers&) -> child_front_actor {
      child_front_config config;
      config.starter = starter;
      return system.spawn<child_front>(config);
    };
  make.lease = [setup, incarnation, restored](caf::actor_system& system, const run_peers& peers) {
    return make_lease(system, peers, setup, incarnation,
      restored ? restored->token_floors : std::map<std::string, uint64_t>{});
  };
  // Which start of each executor this is: the supervisor alone calls.
  auto starts = std::make_shared<std::map<uint32_t, uint32_t>>();
  make.gpu = [setup, context, incarnation, starts](
               caf::actor_system& system, const run_peers& peers, uint32_t index) {
    auto boot = std::to_string(incarnation) + "." + std::to_string(++(*starts)[index]);
    return make_gpu(system, peers, setup, context, index, boot);
  };
  auto book = setup.listen ? std::make_shared<verdict_book>() : nullptr;
  make.planner = [setup, restored, book](caf::actor_system& system, const run_peers& peers) {
    return make_planner(system, peers, setup, restored, book);
  };
  auto fault = planned_fault();
  std::function<bool()> moves;
  if (cluster)
    moves = [places = cluster->places] { return places->take(); };
  make.worker = [setup, fault, moves](caf::actor_system& system, const run_peers& peers,
                  uint32_t index) -> worker_actor {
    worker_config config;
    config.worker = "worker-" + std::to_string(index);
    config.limits = attempt_limits_of(setup);
    config.planner = peers.planner;
    config.proposer = peers.proposers[index];
    config.compiler = peers.compiler;
    config.oracle = peers.oracle;
    config.lease = peers.lease;
    config.scorer = peers.scorer;
    config.run_start = peers.run_start;
    config.on_assigned = fault;
    config.moves = moves;
    return system.spawn<worker>(std::move(config));
  };
  if (setup.rehearsal) {
    make.oracle = [](caf::actor_system& system, const run_peers&) -> oracle_actor {
      return system.spawn<rehearsal_oracle>();
    };
    make.compiler = [](caf::actor_system& system, const run_peers&) -> compiler_actor {
      return system.spawn<rehearsal_compiler>();
    };
    make.scorer = [](caf::actor_system& system, const run_peers& peers) -> scorer_actor {
      return system.spawn<rehearsal_scorer>(peers.events);
    };
    make.proposer = [](caf::actor_system& system, const run_peers&, uint32_t) -> proposer_actor {
      return system.spawn<rehearsal_proposer>();
    };
    return make;
  }
  make.oracle = [context](caf::actor_system& system, const run_peers& peers) -> oracle_actor {
    return system.spawn<oracle>(oracle_config{context, peers.child_front});
  };
  make.compiler = [context, device_code = setup.compiler](
                    caf::actor_system& system, const run_peers& peers) -> compiler_actor {
    compiler_config config;
    config.context = context;
    config.device_code = device_code;
    config.child_front = peers.child_front;
    config.events = peers.events;
    return system.spawn<compiler>(std::move(config));
  };
  make.judge = [context](caf::actor_system& system, const run_peers& peers) -> judge_actor {
    return system.spawn<judge>(judge_config{context, peers.child_front});
  };
  make.scorer = [context, restored, book](
                  caf::actor_system& system, const run_peers& peers) -> scorer_actor {
    scorer_config config;
    config.context = context;
    config.judge = peers.judge;
    config.events = peers.events;
    config.book = book;
    if (restored) {
      config.baselines = restored->baselines;
      config.best = restored->best;
    }
    return system.spawn<scorer>(std::move(config));
  };
  auto parts = std::make_shared<proposer_parts>();
  parts->context = context;
  parts->mix = setup.proposers;
  parts->mind = mind_of(setup, restored);
  parts->agent_nano_usd = setup.models.limits.each_agent.nano_usd.value_or(0);
  make.proposer = [parts](caf::actor_system& system, const run_peers& peers, uint32_t index) {
    return make_proposer(system, peers, index, *parts);
  };
  if (setup.models.asks)
    add_models(make, setup, incarnation, parts->mind.search_when_closed);
  return make;
}

} // namespace

run_factories real_actors(const run_setup& setup, run_context_ptr context,
  std::unique_ptr<event_sink> sink, child_starter* starter, uint32_t incarnation,
  std::shared_ptr<restored_run> restored, const cluster_start* cluster) {
  auto make =
    local_actors(setup, context, std::move(sink), starter, incarnation, restored, cluster);
  if (cluster)
    add_cluster(make, setup, context, incarnation, *cluster);
  return make;
}

namespace {

/// How candidates are checked and timed, as resolved.
nlohmann::json measure_data(const run_context& context) {
  return {{"device", context.device_label}, {"title", context.device_title},
    {"rounds", context.rounds}, {"check_elements", context.check_elements_max},
    {"promote", context.promote}, {"samples", context.samples}, {"flush", context.flush},
    {"facts",
      {{"sm_count", context.facts.sm_count}, {"smem_per_block", context.facts.smem_per_block},
        {"smem_per_sm", context.facts.smem_per_sm}, {"l2_bytes", context.facts.l2_bytes},
        {"arch", context.facts.arch}}}};
}

} // namespace

event run_started_event(const run_setup& setup) {
  nlohmann::json data{{"gpus", setup.settings.gpus}, {"workers", setup.workers},
    {"seed", setup.context.seed}, {"seed_given", setup.settings.seed.has_value()},
    {"budget", setup.settings.budget}, {"proposer", setup.settings.proposer},
    {"oracle", setup.settings.oracle}, {"lease_policy", setup.settings.lease_policy},
    {"planner", setup.settings.planner}, {"history", run_history_version},
    {"problem_hashes", setup.problem_hashes}, {"toolchain", setup.compiler.version},
    {"time_note", setup.time_note}, {"measure", measure_data(setup.context)},
    {"baseline_note", setup.baseline_note}, {"t_sol_method", setup.t_sol_method},
    {"t_b_method", setup.t_b_method}, {"version", GRISTMILL_VERSION}};
  // What could be set up against hostile code, for whoever judges the run by its log.
  const auto sandbox = protections_of_children();
  data["sandbox"] = sandbox ? *sandbox : sandbox.error().what;
  if (sandbox && !sandbox->starts_with("user,mount"))
    spdlog::warn("children run without namespaces of their own: {}", *sandbox);
  if (!setup.models.program_sha256.empty())
    data["program"] = setup.models.program_sha256;
  if (setup.models.asks) {
    data["problem_budget"] = setup.settings.problem_budget;
    data["agent_budget"] = setup.settings.agent_budget;
    for (const auto& d : setup.models.models.deployments)
      data["models"].push_back(
        {{"deployment", d.name}, {"dialect", d.dialect}, {"model", d.model}});
  }
  auto& names = data["problems"] = nlohmann::json::array();
  for (const auto& [name, p] : setup.context.problems)
    names.push_back(name);
  if (setup.takes_plants)
    data["takes_plants"] = true;
  if (setup.listen)
    data["cluster"] = true;
  for (const auto& one : setup.skipped)
    data["skipped"].push_back({{"problem", one.given}, {"reason", one.reason}});
  auto& candidates = data["candidates"] = nlohmann::json::array();
  for (const auto& p : setup.problems)
    for (const auto& c : p.planted) {
      nlohmann::json given{{"problem", p.name}, {"hash", c.hash}};
      add_candidate(given, c);
      candidates.push_back(std::move(given));
    }
  return {.kind = "run_started", .data = text_of(data)};
}

event run_resumed_event(const run_setup& setup, const restored_run& restored) {
  nlohmann::json data{{"budget", setup.settings.budget}, {"workers", setup.workers},
    {"toolchain", setup.compiler.version}, {"version", GRISTMILL_VERSION}};
  return {.t = restored.used,
    .kind = "run_resumed",
    .reason = "the run goes on from its log",
    .data = text_of(data)};
}

child_loop_limits child_limits(const run_setup& setup, unsigned cores) {
  child_loop_limits limits;
  limits.program_folder = setup.context.programs.string();
  cores = std::max(1u, cores);
  // In the order of child_profile: compiler, oracle, runner, judge, command. A runner has its
  // device for itself.
  limits.parallel = {
    cores, std::min(2u, cores), std::max(setup.gpu_count, 1u), cores, std::max(setup.workers, 1u)};
  limits.waiting_max = 4096;
  return limits;
}

} // namespace gristmill
