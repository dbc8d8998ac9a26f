#include "actors/node_agent.hpp"

#include "actors/node_proposer.hpp"
#include "actors/proposers.hpp"
#include "actors/rehearsal.hpp"
#include "actors/worker.hpp"
#include "gpu/lease/table.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace gristmill {

void node_agent::on_worker_order(const worker_order& what, const worker_peers& peers) {
  if (what.end) {
    end_worker(what.index);
    return;
  }
  if (!hub_)
    return;
  worker_started told;
  told.index = what.index;
  auto started = start_worker(what.index, peers);
  told.started = started.has_value();
  caf::strong_actor_ptr handle;
  if (started)
    handle = caf::actor_cast<caf::strong_actor_ptr>(*started);
  else
    told.reason = started.error().what;
  seam::tell(this, hub_, std::move(told), handle);
}

result<worker_actor> node_agent::start_worker(uint32_t index, const worker_peers& peers) {
  if (tasks_.current_mode() != node_tasks::mode::open)
    return fail(errc::refused, "this node is not ready, or leaves");
  // A doubled order: the worker is here.
  if (auto known = workers_.find(index); known != workers_.end())
    return known->second.worker;
  if (workers_.size() >= config_.workers)
    return fail(errc::queue_full, fmt::format("{} workers live here already", workers_.size()));
  if (!peers.planner || !peers.compiler || !peers.oracle || !peers.lease || !peers.scorer)
    return fail(errc::invalid_input, "worker_peers: somebody is missing");
  const auto kind = proposer_of_worker(cell_->mix, index).kind;
  if (kind == proposer_kind::llm || kind == proposer_kind::replay || kind == proposer_kind::command)
    return fail(errc::unsupported,
      fmt::format("a proposer of kind {} stays with the coordinator", to_string(kind)));
  auto& one = workers_[index];
  one.proposer = start_proposer(index);
  worker_config config;
  config.worker = "worker-" + std::to_string(index);
  // As of the coordinator's own: every device may be away for a while, and that is nobody's fault.
  config.limits.lease_wait = lease_table_config{}.patience_max;
  config.limits.estimated_hold = cell_->terms.estimated_hold;
  config.limits.run_end = cell_->terms.run_end;
  config.planner = caf::actor_cast<planner_actor>(peers.planner);
  config.proposer = one.proposer;
  config.compiler = caf::actor_cast<compiler_actor>(peers.compiler);
  config.oracle = caf::actor_cast<oracle_actor>(peers.oracle);
  config.lease = caf::actor_cast<gpu_lease_actor>(peers.lease);
  config.scorer = caf::actor_cast<scorer_actor>(peers.scorer);
  config.run_start = clock().now() - peers.run_age;
  one.worker = home_system().spawn<worker>(std::move(config));
  monitors_.watch(this, one.worker, [this, index](const caf::error& why) {
    // The hub hears of it too, and places it again, unless the supervisor has ended it.
    if (why != caf::exit_reason::user_shutdown && from_error(system(), why).code != errc::node_lost)
      spdlog::error("worker-{} died: {}", index, seam::show(system(), why));
    end_worker(index);
  });
  return one.worker;
}

proposer_actor node_agent::start_proposer(uint32_t index) {
  auto& home = home_system();
  proposer_actor made;
  if (cell_->terms.rehearsal) {
    made = home.spawn<rehearsal_proposer>();
  } else {
    proposer_parts parts;
    parts.context = cell_->context;
    parts.mix = cell_->mix;
    parts.library = cell_->library;
    node_proposer_config config;
    config.context = cell_->context;
    config.inner = make_proposer(home, {}, index, parts);
    config.keeper = keeper_;
    config.hub_keeper = hub_keeper_;
    config.hub = hub_;
    made = home.spawn<node_proposer>(std::move(config));
  }
  monitors_.watch(this, made, [this, index](const caf::error& why) {
    spdlog::error("the proposer of worker-{} died: {}", index, seam::show(system(), why));
    on_proposer_down(index);
  });
  return made;
}

void node_agent::on_proposer_down(uint32_t index) {
  auto found = workers_.find(index);
  if (found == workers_.end())
    return;
  auto& one = found->second;
  one.proposer = nullptr;
  if (++one.deaths > config_.restarts_max) {
    end_worker(index);
    return;
  }
  one.proposer = start_proposer(index);
  seam::tell(this, one.worker, peer_restarted{role::proposer},
    caf::actor_cast<caf::strong_actor_ptr>(one.proposer));
}

void node_agent::end_worker(uint32_t index) {
  auto found = workers_.extract(index);
  if (found.empty())
    return;
  auto& one = found.mapped();
  monitors_.unwatch(this, one.worker);
  caf::anon_send_exit(one.worker, caf::exit_reason::user_shutdown);
  if (one.proposer) {
    monitors_.unwatch(this, one.proposer);
    caf::anon_send_exit(one.proposer, caf::exit_reason::user_shutdown);
  }
}

void node_agent::end_workers() {
  while (!workers_.empty())
    end_worker(workers_.begin()->first);
}

} // namespace gristmill
