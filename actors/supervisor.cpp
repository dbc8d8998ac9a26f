#include "actors/supervisor.hpp"

#include "actors/peer_loss.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

bool may_restart(role which) {
  switch (which) { // no default: the compiler reports a missing case
  case role::worker:
  case role::gpu:
  case role::compiler:
  case role::oracle:
  case role::proposer:
    return true;
  case role::planner:
  case role::gpu_lease:
  case role::scorer:
  case role::child_front:
  case role::journal:
  case role::judge:
  case role::cluster_hub:
  case role::llm_gateway: // Its books are the money that was spent.
    return false;
  }
  return false;
}

std::string label(role which, uint32_t index) {
  bool many = which == role::worker || which == role::gpu || which == role::proposer;
  return many ? to_string(which) + "-" + std::to_string(index) : to_string(which);
}

template <class Handle>
caf::strong_actor_ptr control_of(const Handle& handle) {
  return caf::actor_cast<caf::strong_actor_ptr>(handle);
}

} // namespace

supervisor::supervisor(caf::actor_config& actor, supervisor_config config)
  : supervisor_actor::base(actor), config_(std::move(config)), monitors_(this) {
  // Who asks ends before who answers; what starts children ends before their front; the log is
  // last.
  stages_ = {{role::worker}, {role::planner, role::proposer},
    {role::gpu, role::compiler, role::oracle, role::scorer, role::llm_gateway}, {role::judge},
    {role::cluster_hub}, {role::gpu_lease}, {role::child_front}, {role::journal}};
}

void supervisor::on_exit() {
  monitors_.clear();
  // Whoever outlasted its stage, or everybody when the supervisor itself was killed. The order of
  // the stages, so that the log gets what the others still have to say.
  for (const auto& stage : stages_)
    for (const auto& [who, handle] : alive_)
      if (std::find(stage.begin(), stage.end(), who.which) != stage.end())
        caf::anon_send_exit(handle, caf::exit_reason::kill);
  alive_.clear();
  peers_.events.close();
  peers_ = {};
  config_.make = {};
  if (auto call = std::exchange(config_.on_end, nullptr))
    call({"the supervisor itself was ended", false});
}

supervisor_actor::behavior_type supervisor::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const start_working&) { begin(); },
    [this](const run_ended& how) { end_run(how); },
    [this](const drain_request& request) {
      if (draining_) {
        end_run({"aborted: " + request.reason, false});
        return;
      }
      draining_ = true;
      drain_due_ = clock().now() + config_.drain_grace;
      wake_at(drain_due_);
      if (peers_.planner)
        seam::tell(this, peers_.planner, request);
    },
    [this](const planner_query& query) -> caf::result<planner_snapshot> {
      if (!peers_.planner)
        return to_error({errc::shutting_down, "the run is ending"});
      auto reply = make_response_promise<planner_snapshot>();
      seam::ask(this, peers_.planner, query)
        .then([reply](const planner_snapshot& s) mutable { reply.deliver(s); },
          [reply](const caf::error& e) mutable { reply.deliver(e); });
      return reply;
    },
    [this](const rerun_request& request) {
      if (peers_.planner && !ending_)
        seam::tell(this, peers_.planner, request);
    },
    [this](const tick&) {
      auto now = clock().now();
      restart_due();
      if (ending_ && now >= stage_due_)
        end_stage(); // Whoever has not gone yet is left behind.
      else if (draining_ && !ending_ && now >= drain_due_)
        end_run({"aborted: attempts in flight outlasted the grace period", false});
    },
  };
}

void supervisor::wake_at(caf::actor_clock::time_point due) {
  auto delay = std::max(due - clock().now(), caf::actor_clock::duration_type{0});
  seam::tell_later(
    this, std::chrono::duration_cast<caf::timespan>(delay), supervisor_actor{this}, tick{});
}

void supervisor::begin() {
  peers_.supervisor = supervisor_actor{this};
  peers_.run_start = clock().now() - config_.time_used;
  peers_.proposers.resize(config_.workers);
  start({role::journal, 0});
  peers_.events = event_port{peers_.journal, peers_.run_start};
  if (!config_.run_started.kind.empty())
    peers_.events.keep(this, config_.run_started, [](const result<void>&) {
      // A journal that fails dies, and its death ends the run.
    });
  if (config_.make.child_front)
    start({role::child_front, 0});
  if (config_.make.models)
    start({role::llm_gateway, 0});
  start({role::gpu_lease, 0});
  if (config_.make.cluster)
    start({role::cluster_hub, 0});
  if (config_.make.judge)
    start({role::judge, 0});
  else if (peers_.cluster)
    peers_.judge = peers_.cluster;
  if (config_.make.compiler)
    start({role::compiler, 0});
  else
    peers_.compiler = peers_.cluster;
  if (config_.make.oracle)
    start({role::oracle, 0});
  else
    peers_.oracle = peers_.cluster;
  for (auto which : {role::scorer, role::planner})
    start({which, 0});
  for (uint32_t i = 0; i < config_.gpus; ++i)
    start({role::gpu, i});
  seam::tell(this, peers_.planner, start_working{});
  for (uint32_t i = 0; i < config_.workers; ++i)
    start_worker(i);
}

void supervisor::start_worker(uint32_t index) {
  if (!peers_.cluster) {
    start_worker_here(index);
    return;
  }
  worker_peers with{control_of(peers_.planner), control_of(peers_.compiler),
    control_of(peers_.oracle), control_of(peers_.lease), control_of(peers_.scorer),
    clock().now() - peers_.run_start};
  seam::ask(this, peers_.cluster, place_worker{index}, std::move(with))
    .then([this, index](const caf::strong_actor_ptr& worker) { worker_came(index, worker); },
      [](const caf::error&) { /* Without a hub the run is ending. */ });
}

void supervisor::start_worker_here(uint32_t index) {
  elsewhere_.erase(index);
  if (!alive_.contains({role::proposer, index}))
    start({role::proposer, index});
  start({role::worker, index});
}

void supervisor::worker_came(uint32_t index, const caf::strong_actor_ptr& worker) {
  if (ending_) {
    if (worker)
      send_exit(caf::actor_cast<caf::actor>(worker), caf::exit_reason::user_shutdown);
    return;
  }
  if (!worker) {
    start_worker_here(index);
    return;
  }
  member who{role::worker, index};
  elsewhere_.insert(index);
  alive_[who] = worker;
  watch(who, worker);
  seam::tell(this, caf::actor_cast<worker_actor>(worker), start_working{});
}

void supervisor::start(member who) {
  auto& make = config_.make;
  auto& system = home_system();
  caf::strong_actor_ptr handle;
  switch (who.which) {
  case role::journal:
    handle = control_of(peers_.journal = make.journal(system, peers_));
    break;
  case role::child_front:
    handle = control_of(peers_.child_front = make.child_front(system, peers_));
    break;
  case role::llm_gateway:
    handle = control_of(peers_.models = make.models(system, peers_));
    break;
  case role::gpu_lease:
    handle = control_of(peers_.lease = make.lease(system, peers_));
    break;
  case role::cluster_hub:
    handle = control_of(peers_.cluster = make.cluster(system, peers_));
    break;
  case role::judge:
    handle = control_of(peers_.judge = make.judge(system, peers_));
    break;
  case role::compiler:
    handle = control_of(peers_.compiler = make.compiler(system, peers_));
    break;
  case role::oracle:
    handle = control_of(peers_.oracle = make.oracle(system, peers_));
    break;
  case role::scorer:
    handle = control_of(peers_.scorer = make.scorer(system, peers_));
    break;
  case role::planner:
    handle = control_of(peers_.planner = make.planner(system, peers_));
    break;
  case role::gpu:
    handle = control_of(make.gpu(system, peers_, who.index));
    break;
  case role::proposer:
    handle = control_of(peers_.proposers[who.index] = make.proposer(system, peers_, who.index));
    break;
  case role::worker: {
    auto started = make.worker(system, peers_, who.index);
    handle = control_of(started);
    seam::tell(this, started, start_working{});
    break;
  }
  }
  alive_[who] = handle;
  watch(who, handle);
}

void supervisor::watch(member who, const caf::strong_actor_ptr& handle) {
  monitors_.watch(this, caf::actor_cast<caf::actor>(handle),
    [this, who](const caf::error& reason) { on_down(who, reason); });
}

void supervisor::on_down(member who, const caf::error& reason) {
  if (ending_) {
    member_gone(who);
    return;
  }
  alive_.erase(who);
  auto what = label(who.which, who.index);
  auto why = seam::show(system(), reason);
  // One that lives here says so itself, when it moves to a machine that has room.
  if (who.which == role::worker && peers_.cluster
    && machine_was_lost(reason, elsewhere_.contains(who.index))) {
    spdlog::info("{} is placed anew: {}", what, why);
    restarts_.push_back({who, clock().now() + config_.back_off_first});
    wake_at(restarts_.back().due);
    return;
  }
  spdlog::error("{} died: {}", what, why);
  auto deaths = ++deaths_[who];
  if (who.which != role::journal)
    peers_.events.note(this,
      {.kind = "actor_died",
        .reason = why,
        .data = nlohmann::json{{"actor", what}, {"deaths", deaths}}.dump()});
  if (!may_restart(who.which)) {
    end_run({what + " died: " + why, false});
    return;
  }
  if (deaths > config_.restarts_max) {
    end_run({what + " died " + std::to_string(deaths) + " times, last: " + why, false});
    return;
  }
  auto delay = config_.back_off_first;
  for (uint32_t i = 1; i < deaths && delay < config_.back_off_max; ++i)
    delay *= 2;
  auto due = clock().now() + std::min(delay, config_.back_off_max);
  restarts_.push_back({who, due});
  wake_at(due);
}

void supervisor::restart_due() {
  auto now = clock().now();
  std::vector<member> due;
  std::erase_if(restarts_, [&](const planned_restart& r) {
    if (ending_ || r.due > now)
      return ending_;
    due.push_back(r.who);
    return true;
  });
  for (auto who : due) {
    if (who.which == role::worker && peers_.cluster) {
      start_worker(who.index);
      continue; // It gets its peers when it is made, so nothing is to be announced.
    }
    start(who);
    peers_.events.note(this,
      {.kind = "actor_restarted",
        .data = nlohmann::json{{"actor", label(who.which, who.index)}}.dump()});
    announce(who, alive_[who]);
  }
}

void supervisor::announce(member who, const caf::strong_actor_ptr& handle) {
  for (const auto& [other, peer] : alive_) {
    if (other.which == role::worker) {
      bool own = who.which == role::proposer && who.index == other.index;
      if (own || who.which == role::compiler || who.which == role::oracle)
        seam::tell(this, caf::actor_cast<worker_actor>(peer), peer_restarted{who.which}, handle);
    } else if (other.which == role::planner && who.which == role::oracle) {
      seam::tell(this, peers_.planner, peer_restarted{who.which}, handle);
    }
  }
}

void supervisor::end_run(run_ended how) {
  if (ending_)
    return;
  ending_ = true;
  how_ = std::move(how);
  spdlog::debug("the run ends: {}", how_.reason);
  end_stage();
}

bool supervisor::send_home(const std::vector<role>& roles) {
  bool any = false;
  for (const auto& [who, handle] : alive_) {
    if (std::find(roles.begin(), roles.end(), who.which) == roles.end())
      continue;
    any = true;
    if (who.which != role::journal) {
      send_exit(caf::actor_cast<caf::actor>(handle), caf::exit_reason::user_shutdown);
      continue;
    }
    event last{.kind = "run_ended", .reason = how_.reason};
    last.data = nlohmann::json{{"clean", how_.clean}}.dump();
    peers_.events.keep(this, last, [this](const result<void>& kept) {
      end_is_kept_ = kept.has_value();
      if (peers_.journal)
        send_exit(peers_.journal, caf::exit_reason::user_shutdown);
    });
  }
  return any;
}

void supervisor::end_stage() {
  while (stage_ < stages_.size())
    if (send_home(stages_[stage_++])) {
      stage_due_ = clock().now() + config_.stage_grace;
      wake_at(stage_due_);
      return;
    }
  finish();
}

void supervisor::member_gone(member who) {
  alive_.erase(who);
  if (stage_ == 0)
    return; // Died by itself before its stage.
  const auto& roles = stages_[stage_ - 1];
  bool waiting = std::any_of(alive_.begin(), alive_.end(), [&](const auto& entry) {
    return std::find(roles.begin(), roles.end(), entry.first.which) != roles.end();
  });
  if (!waiting)
    end_stage();
}

void supervisor::finish() {
  // A log without its end may lack what came before it, too.
  if (how_.clean && !end_is_kept_)
    how_ = {how_.reason + "; but the log could not be completed", false};
  if (auto call = std::exchange(config_.on_end, nullptr))
    call(how_);
  quit();
}

} // namespace gristmill
