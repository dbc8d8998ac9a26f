#include "actors/cluster_hub.hpp"

#include "actors/cluster_words.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <utility>

namespace gristmill {

namespace {

/// How many preparations a node that joins makes at the same time.
constexpr size_t catching_up_max = 2;
/// Texts of others end up in the log.
constexpr size_t reason_max = 500;

std::string cut(const std::string& text) {
  auto out = text.substr(0, reason_max);
  for (auto& c : out)
    if (c >= 0 && c < ' ')
      c = ' ';
  return out;
}

} // namespace

cluster_hub::cluster_hub(caf::actor_config& actor, cluster_hub_config config)
  : cluster_center_actor::base(actor), config_(std::move(config)), monitors_(this),
    nodes_(config_.needs, config_.limits) {}

void cluster_hub::on_exit() {
  if (!ending_since_)
    ending_since_ = now();
  auto ended = to_error({errc::shutting_down, "the hub has ended"});
  for (auto& job : compiles_)
    job.reply.deliver(ended);
  for (auto& [key, open] : fans_)
    for (auto& reply : open.replies)
      reply.deliver(ended);
  for (auto& [index, one] : placing_)
    one.reply.deliver(ended);
  compiles_.clear();
  fans_.clear();
  placing_.clear();
  stays_.clear();
  // With nobody here any more they only answer those who ask.
  for (auto& [id, then] : std::exchange(task_done_, {}))
    then(fail(errc::node_lost, "node '': the hub has ended"));
  for (auto& [name, d] : devices_)
    if (d.executor)
      caf::anon_send_exit(d.executor, caf::exit_reason::kill);
  for (auto& [who, member] : members_)
    if (member.handle)
      caf::anon_send_exit(member.handle, caf::exit_reason::kill);
  monitors_.clear();
  by_agent_.clear();
  devices_.clear();
  members_.clear();
  compiler_ = nullptr;
  oracle_ = nullptr;
  judge_ = nullptr;
  keeper_ = nullptr;
  config_.lease = nullptr;
  config_.make = {};
  config_.events.close();
}

cluster_center_actor::behavior_type cluster_hub::make_behavior() {
  seam::end_on_exception(this);
  started_ = now();
  set_exit_handler([this](const caf::exit_msg& what) {
    end_reason_ = what.reason;
    begin_end();
  });
  for (const char* who : {"compiler", "oracle", "judge", "keeper"})
    start_member(who);
  look_again();
  return {
    [this](const cluster_hello& hello) { return config_.greet(hello); },
    [this](const node_offer& what, const caf::strong_actor_ptr& agent,
      const caf::strong_actor_ptr& keeper) { on_offer(what, agent, keeper); },
    [this](const node_ready& what) { on_ready(what); },
    [this](const node_answer& what) { on_answer(what); },
    [this](const worker_started& what, const caf::strong_actor_ptr& worker) {
      on_worker_started(what, worker);
    },
    [this](const blobs_offered& what,
      const caf::strong_actor_ptr& keeper) -> caf::result<blobs_fetched> {
      auto of = std::find_if(stays_.begin(), stays_.end(),
        [&](const auto& s) { return keeper && s.second.keeper == keeper; });
      if (of == stays_.end())
        return to_error({errc::refused, "no node of this run has that keeper"});
      auto reply = make_response_promise<blobs_fetched>();
      fetch(what.blobs, keeper, [reply](const result<blobs_fetched>& got) mutable {
        if (got)
          reply.deliver(*got);
        else
          reply.deliver(to_error(got.error()));
      });
      return reply;
    },
    [this](const node_leaving& what) {
      if (auto session = sender_session(); session != 0)
        drain(session, what.reason.empty() ? "it leaves" : cut(what.reason), false);
    },
    [this](const place_worker& what, const worker_peers& peers) { return place(what, peers); },
    [this](const compile_request& request) { return compile(request); },
    [this](const prepare_request& request) { return prepare(request); },
    [this](const draw_over& what) { end_draw(what); },
    [this](const judge_request& request) { return judge(request); },
    [this](const cluster_query&) { return snapshot(); },
    [this](const cluster_command& what) { return on_command(what); },
    [this](const tick& due) {
      if (due.generation == generation_)
        on_tick();
    },
    [this](const child_request& what) { return start_child(what); },
    [this](const child_cancel& what) { cancel_child(what); },
    [this](const device_quiet_query& what) { return wait_for_quiet(what); },
    [](const child_result&) { /* There is no loop behind this front. */ },
  };
}

cluster_hub::instant cluster_hub::now() {
  return config_.events.since_start(clock().now());
}

void cluster_hub::look_again() {
  seam::tell_later(this, config_.times.look, cluster_center_actor{this}, tick{++generation_});
}

void cluster_hub::on_tick() {
  auto at = now();
  if (ending()) {
    if (at - *ending_since_ >= config_.times.end)
      quit(end_reason_);
    else
      look_again();
    return;
  }
  for (auto session : tasks_.overdue(at))
    lose(session, "it has not answered a task within its deadline", true);
  std::vector<session_id> late;
  std::vector<session_id> draining;
  for (const auto& [session, s] : stays_) {
    const auto* node = nodes_.find(session);
    if (node->state == node_state::draining)
      draining.push_back(session);
    else if (node->state == node_state::joining && at >= s.due)
      late.push_back(session);
  }
  for (auto session : late)
    lose(session, "it did not become ready in time", true);
  for (auto session : draining)
    look_whether_idle(session);
  std::vector<std::string> again;
  for (auto& [name, d] : devices_)
    if (d.joined && !d.executor && d.restart_at.count() != 0 && at >= d.restart_at)
      again.push_back(name);
  for (const auto& name : again)
    start_executor(name);
  std::vector<std::string> members;
  for (const auto& [who, member] : members_)
    if (!member.handle && at >= member.restart_at)
      members.push_back(who);
  for (const auto& who : members)
    start_member(who);
  place_waiting();
  serve_compiles();
  look_again();
}

// ---- who is here

cluster_hub::stay* cluster_hub::find(session_id session) {
  auto found = stays_.find(session);
  return found == stays_.end() ? nullptr : &found->second;
}

std::string cluster_hub::label_of(session_id session) const {
  const auto* node = nodes_.find(session);
  return node ? "node '" + node->name + "'" : "node '' (gone)";
}

void cluster_hub::heard(session_id session) {
  if (auto* s = find(session))
    s->heard = now();
}

session_id cluster_hub::sender_session() {
  auto from = caf::actor_cast<caf::strong_actor_ptr>(current_sender());
  if (!from)
    return 0;
  auto found = by_agent_.find(caf::actor_cast<caf::actor_addr>(from));
  if (found == by_agent_.end()) {
    // Of a stay that is over: unreachable is not dead.
    seam::tell(this, caf::actor_cast<node_agent_actor>(from),
      node_farewell{"its stay is over; it may offer itself anew"});
    return 0;
  }
  heard(found->second);
  return found->second;
}

void cluster_hub::turn_away(const caf::strong_actor_ptr& agent, const std::string& reason) {
  node_welcome no;
  no.reason = reason;
  seam::tell(
    this, caf::actor_cast<node_agent_actor>(agent), std::move(no), caf::strong_actor_ptr{});
}

void cluster_hub::on_offer(
  const node_offer& what, const caf::strong_actor_ptr& agent, const caf::strong_actor_ptr& keeper) {
  if (!agent || !keeper || current_sender() != agent) {
    spdlog::debug("an offer that does not come from its agent is not heard");
    return;
  }
  if (ending()) {
    turn_away(agent, std::string(run_is_over));
    return;
  }
  if (config_.admit)
    if (auto may = config_.admit(agent, what.node); !may) {
      const bool for_good = may.error().code == errc::refused;
      turn_away(agent, (for_good ? std::string(refused_for_good) : "") + may.error().what);
      return;
    }
  if (auto before = nodes_.stay_before(what); before != 0)
    lose(before, "it has connected anew");
  // One agent has one stay, whatever it calls itself.
  if (auto other = by_agent_.find(caf::actor_cast<caf::actor_addr>(agent));
      other != by_agent_.end())
    lose(other->second, "it offers itself under another name");
  const auto* known = nodes_.by_name(what.node);
  auto returned = known && known->losses > 0;
  auto session = nodes_.offer(what, now());
  if (!session) {
    turn_away(agent, session.error().what);
    return;
  }
  auto& s = stays_[*session];
  s.agent = caf::actor_cast<node_agent_actor>(agent);
  s.keeper = keeper;
  s.returned = returned;
  s.heard = now();
  s.due = now() + config_.times.join;
  if (what.run == config_.run)
    for (const auto& one : what.held)
      s.held.emplace(one.key, one);
  by_agent_[caf::actor_cast<caf::actor_addr>(agent)] = *session;
  monitors_.watch(this, agent, [this, id = *session](const caf::error& why) {
    lose(id, "it cannot be reached any more: " + seam::show(system(), why));
  });
  const auto* node = nodes_.find(*session);
  node_welcome yes;
  yes.taken = true;
  yes.run = config_.run;
  yes.terms = config_.terms;
  yes.workers = node->workers_max;
  if (node->can_measure() && !config_.rehearsal)
    for (const auto& [key, request] : prepared_)
      if (request.draw.empty() && !fans_.contains(key)) {
        yes.prepared.push_back(request.problem);
        s.has.insert(key);
      }
  for (size_t i = 0; i < node->devices.size(); ++i)
    if (!node->left_idle[i].empty())
      spdlog::warn(
        "{}: {} is left idle: {}", label_of(*session), node->devices[i].name, node->left_idle[i]);
  seam::tell(this, s.agent, std::move(yes), caf::actor_cast<caf::strong_actor_ptr>(keeper_));
}

void cluster_hub::on_ready(const node_ready& what) {
  auto session = sender_session();
  auto* s = find(session);
  if (!s || s->says_ready)
    return;
  if (!what.able) {
    lose(session, "it cannot work: " + cut(what.reason), true);
    return;
  }
  s->says_ready = true;
  catch_up(session);
}

void cluster_hub::catch_up(session_id session) {
  auto* s = find(session);
  const auto* node = nodes_.find(session);
  if (!s || !s->says_ready || node->state != node_state::joining)
    return;
  bool lacks = false;
  if (node->can_measure() && !config_.rehearsal)
    for (const auto& [key, request] : prepared_) {
      if (s->has.contains(key))
        continue;
      lacks = true;
      if (s->making.contains(key) || s->making.size() >= catching_up_max)
        continue;
      s->making.insert(key);
      node_task task;
      task.kind = node_task_kind::prepare;
      task.prepare = request;
      give(session, std::move(task), config_.times.prepare,
        [this, session, key](const result<node_answer>& answer) {
          auto* joining = find(session);
          if (!joining)
            return;
          joining->making.erase(key);
          bool made = answer && answer->prepared.status == verdict_status::passed;
          // What is over meanwhile need not be there.
          if (!made && prepared_.contains(key)) {
            lose(session,
              "it could not prepare " + key + ": "
                + cut(answer ? answer->prepared.reason : answer.error().what),
              true);
            return;
          }
          joining->has.insert(key);
          catch_up(session);
        });
      s = find(session); // `give` may have ended the stay.
      if (!s)
        return;
    }
  if (!lacks)
    activate(session);
}

void cluster_hub::activate(session_id session) {
  auto* s = find(session);
  if (!s || !nodes_.ready(session, now()))
    return;
  auto* node = nodes_.find(session);
  if (s->returned)
    ++node->returns;
  newest_ready_ = now();
  nlohmann::json more{{"devices", nlohmann::json::array()}, {"compile_slots", node->compile_slots},
    {"workers", node->workers_max}, {"boot", node->boot}};
  for (size_t i = 0; i < node->devices.size(); ++i)
    if (node->left_idle[i].empty())
      more["devices"].push_back(node->devices[i].name);
  note(s->returned ? "node_returned" : "node_joined", node->name, "", more.dump());
  add_devices(session);
  place_waiting();
  serve_compiles();
}

void cluster_hub::lose(session_id session, const std::string& reason, bool failed) {
  auto* node = nodes_.find(session);
  auto* s = find(session);
  if (!node || !s)
    return;
  auto label = label_of(session);
  auto name = node->name;
  auto left = node->state == node_state::draining;
  auto silent = now() - s->heard;
  failure why{errc::node_lost, label + ": " + reason};
  seam::tell(this, s->agent, node_farewell{reason});
  monitors_.unwatch(this, s->agent);
  by_agent_.erase(caf::actor_cast<caf::actor_addr>(s->agent));
  stays_.erase(session);
  nodes_.lose(session, reason, failed, now());
  if (left)
    spdlog::info("{} has left: {}", label, reason);
  else
    spdlog::warn("{} is lost: {}", label, reason);
  note(left ? "node_left" : "node_lost", name, reason,
    nlohmann::json{{"silent_ns", silent.count()}, {"failed", failed}}.dump());
  // Its executors first: whoever waits for one hears that the machine is lost.
  remove_devices(session, why);
  std::vector<task_done> open;
  for (auto id : tasks_.lose(session))
    if (auto then = task_done_.extract(id); !then.empty())
      open.push_back(std::move(then.mapped()));
  for (auto& then : open)
    then(tl::unexpected<failure>(why));
  std::vector<std::string> fans;
  for (auto& [key, one] : fans_) {
    one.fan.lost(session);
    fans.push_back(key);
  }
  for (const auto& key : fans)
    on_fan(key);
  place_waiting();
  serve_compiles();
}

void cluster_hub::drain(session_id session, const std::string& reason, bool by_person) {
  auto* s = find(session);
  if (!s)
    return;
  auto joining = nodes_.find(session)->state == node_state::joining;
  nodes_.drain(session, reason, by_person, now());
  if (joining) { // It has nothing yet.
    lose(session, reason);
    return;
  }
  s->due = now() + config_.times.drain;
  seam::tell(this, s->agent, node_drain{reason});
  for (auto& [name, d] : devices_)
    if (d.session == session && d.joined && !d.drained) {
      d.drained = true;
      seam::ask(this, config_.lease, broker_command{broker_verb::drain, name, reason})
        .then([](const lease_ack&) {}, [](const caf::error&) {});
    }
  send_workers_home(session);
}

void cluster_hub::look_whether_idle(session_id session) {
  auto* s = find(session);
  if (!s || s->asking)
    return;
  auto reason = nodes_.find(session)->reason;
  if (now() >= s->due) {
    lose(session, reason + " (what still ran there was cut off)");
    return;
  }
  if (tasks_.open_of(session) != 0 || !s->outputs.empty())
    return;
  s->asking = true;
  seam::ask(this, config_.lease, broker_query{})
    .then(
      [this, session, reason](const broker_snapshot& broker) {
        auto* of = find(session);
        if (!of)
          return;
        of->asking = false;
        auto busy = std::any_of(broker.gpus.begin(), broker.gpus.end(), [&](const gpu_snapshot& g) {
          auto d = devices_.find(g.name);
          return d != devices_.end() && d->second.session == session
            && (g.phase == gpu_phase::granted || g.phase == gpu_phase::active
              || g.phase == gpu_phase::releasing || g.phase == gpu_phase::verifying);
        });
        if (!busy && tasks_.open_of(session) == 0 && of->outputs.empty())
          lose(session, reason);
      },
      [](const caf::error&) { /* Without a broker the run is ending. */ });
}

void cluster_hub::note(
  const char* kind, const std::string& node, const std::string& reason, const std::string& more) {
  auto data = more.empty() ? nlohmann::json::object() : nlohmann::json::parse(more);
  data["node"] = node;
  config_.events.note(this,
    {.kind = kind,
      .reason = cut(reason),
      .data = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
}

} // namespace gristmill
