#include "cli/run_cluster.hpp"

#include "actors/blob_keeper.hpp"
#include "actors/cluster_hub.hpp"
#include "actors/measure_key.hpp"
#include "actors/node_context.hpp"
#include "gpu/probe.hpp"
#include "journal/hash.hpp"

#include <algorithm>

namespace gristmill {

namespace {

constexpr std::chrono::seconds lease_ttl{30};

/// Proposers that need a key, a command of the user's or a client stay with the coordinator.
bool workers_may_leave(const run_setup& setup) {
  return !setup.takes_plants
    && std::none_of(setup.proposers.begin(), setup.proposers.end(), [](const proposer_choice& one) {
         return one.asks_models() || one.kind == proposer_kind::command;
       });
}

cluster_needs needs_of(const run_setup& setup) {
  cluster_needs needs;
  needs.label = setup.rehearsal ? "sleep" : setup.context.device_label;
  needs.arch = setup.context.arch;
  needs.toolchain = setup.context.toolchain;
  needs.workers_may_leave = workers_may_leave(setup);
  return needs;
}

std::shared_ptr<gpu_probe> probe_of(const run_setup& setup) {
  if (setup.rehearsal)
    return nullptr;
  return remote_probe(setup.context.measured ? make_cuda_probe("gristmill-runner")
                                             : make_mock_probe("gristmill-runner"));
}

} // namespace

std::string cluster_name_of(const run_setup& setup) {
  const std::string_view secret{
    reinterpret_cast<const char*>(setup.context.secret.data()), setup.context.secret.size()};
  const auto started = setup.context.directory.filename().string();
  return started.substr(0, 64) + "-"
    + sha256_hex(std::string("gristmill name of a run") + std::string(secret) + started)
        .substr(0, 12);
}

result<std::string> cluster_terms_of(const run_setup& setup, const std::string& run) {
  run_terms_rest rest;
  rest.run = run;
  rest.rehearsal = setup.rehearsal;
  rest.proposer = setup.settings.proposer;
  if (setup.rehearsal)
    rest.estimated_hold =
      std::chrono::nanoseconds{static_cast<int64_t>(setup.devices.front().sleep_ns)};
  rest.run_end = std::chrono::nanoseconds{setup.limits.wall_ns.value_or(0)};
  auto terms = make_run_terms(setup.context, rest);
  if (!terms)
    return pass(terms);
  return to_json(*terms);
}

void add_cluster(run_factories& make, const run_setup& setup, const run_context_ptr& context,
  uint32_t incarnation, const cluster_start& cluster) {
  auto compiler = std::exchange(make.compiler, nullptr);
  auto oracle = std::exchange(make.oracle, nullptr);
  auto judge = std::exchange(make.judge, nullptr);
  make.cluster = [setup, context, incarnation, cluster, compiler, oracle, judge](
                   caf::actor_system& system, const run_peers& peers) -> cluster_hub_actor {
    auto book = std::make_shared<remote_book>();
    auto traffic = std::make_shared<blob_traffic>();
    auto probe = probe_of(setup);
    cluster_hub_config config;
    config.run = cluster.run;
    config.incarnation = incarnation;
    config.terms = cluster.terms;
    config.device_model = setup.context.device_model;
    config.needs = needs_of(setup);
    config.rehearsal = setup.rehearsal;
    config.devices_here = setup.gpu_count;
    config.workers_wait = setup.gpu_count == 0;
    config.lease = caf::actor_cast<growing_lease_actor>(peers.lease);
    config.events = peers.events;
    config.book = book;
    config.places = cluster.places;
    config.make.compiler = [compiler, peers](caf::actor_system& in) { return compiler(in, peers); };
    config.make.oracle = [oracle, peers](caf::actor_system& in) { return oracle(in, peers); };
    if (judge)
      config.make.judge = [judge, peers](caf::actor_system& in) { return judge(in, peers); };
    config.make.keeper = [context, traffic](caf::actor_system& in) {
      blob_keeper_config keeper;
      keeper.store = context->blobs;
      keeper.traffic = traffic;
      return start_blob_keeper(in, std::move(keeper));
    };
    config.make.executor = [model = setup.context.device_model, peers, context, book, probe](
                             caf::actor_system& in, const remote_device& device) -> gpu_actor {
      gpu_executor_config executor;
      executor.gpu = device.gpu;
      executor.name = device.name;
      executor.model = model;
      executor.boot = device.boot;
      executor.ttl = lease_ttl;
      executor.broker = peers.lease;
      executor.child_front = device.front;
      executor.events = peers.events;
      executor.steps = remote_steps(book, context->child_ids);
      executor.probe = probe;
      executor.when_ended = errc::node_lost;
      return in.spawn<gpu_executor>(std::move(executor));
    };
    config.greet = [](const cluster_hello& hello) { return greet(hello); };
    config.admit = [&system](const caf::strong_actor_ptr& agent, const std::string& node) {
      return check_node_name(system, agent, node);
    };
    config.key_of = [](const measure_request& what) { return measure_key(what); };
    config.traffic = [traffic](const caf::actor_addr& keeper) {
      const auto bytes = traffic->with(keeper);
      return std::pair{bytes.out, bytes.in}; // As the node sees them.
    };
    auto hub = system.spawn<cluster_hub>(std::move(config));
    if (cluster.on_door)
      cluster.on_door(hub);
    return hub;
  };
}

} // namespace gristmill
