#include "actors/cluster_hub.hpp"

#include "actors/cluster_words.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <utility>

namespace gristmill {

// ---- workers

caf::result<caf::strong_actor_ptr> cluster_hub::place(
  const place_worker& what, const worker_peers& peers) {
  auto reply = make_response_promise<caf::strong_actor_ptr>();
  if (ending() || placing_.contains(what.index)) {
    reply.deliver(caf::strong_actor_ptr{});
    return reply;
  }
  // Whoever asks for its worker has none.
  for (const auto& [name, node] : nodes_.all())
    nodes_.by_name(name)->workers.erase(what.index);
  placing_[what.index] = {0, peers, reply, now()};
  try_place(what.index);
  return reply;
}

void cluster_hub::place_waiting() {
  if (ending())
    return;
  std::vector<uint32_t> again;
  for (auto& [index, one] : placing_) {
    if (one.session == 0) {
      again.push_back(index);
    } else if (!find(one.session) || now() >= one.due) {
      // Should it come all the same, it is sent home. A node that does not start one is not asked
      // again in this stay.
      if (auto* node = nodes_.find(one.session)) {
        node->workers.erase(index);
        node->workers_max = static_cast<uint32_t>(node->workers.size());
      }
      one.session = 0;
      again.push_back(index);
    }
  }
  for (auto index : again)
    try_place(index);
  if (config_.places)
    config_.places->set(nodes_.free_worker_places());
}

void cluster_hub::try_place(uint32_t index) {
  auto& one = placing_.at(index);
  auto session = nodes_.worker_place();
  if (session != 0) {
    one.session = session;
    one.due = now() + config_.times.start_worker;
    nodes_.find(session)->workers.insert(index);
    auto peers = one.peers;
    // It has waited here meanwhile.
    peers.run_age = now();
    seam::tell(this, find(session)->agent, worker_order{index, false}, std::move(peers));
    return;
  }
  auto at = now() - started_;
  bool wait = config_.workers_wait && config_.needs.workers_may_leave
    && (newest_ready_ ? now() - *newest_ready_ < config_.times.more_nodes
                      : at < config_.times.first_node);
  if (wait)
    return;
  auto reply = std::move(placing_.extract(index).mapped().reply);
  workers_here_.insert(index);
  reply.deliver(caf::strong_actor_ptr{});
}

void cluster_hub::on_worker_started(
  const worker_started& what, const caf::strong_actor_ptr& worker) {
  auto session = sender_session();
  auto* s = find(session);
  if (!s)
    return;
  auto one = placing_.find(what.index);
  auto* node = nodes_.find(session);
  if (one == placing_.end() || one->second.session != session) {
    // Too late, twice, or never ordered.
    if (!node->workers.contains(what.index) || one != placing_.end())
      seam::tell(this, s->agent, worker_order{what.index, true}, worker_peers{});
    return;
  }
  if (!what.started || !worker) {
    spdlog::warn("{} could not start worker-{}: {}", label_of(session), what.index, what.reason);
    node->workers.erase(what.index);
    // Nor is one that cannot.
    node->workers_max = static_cast<uint32_t>(node->workers.size());
    one->second.session = 0;
    try_place(what.index);
    return;
  }
  auto reply = std::move(one->second.reply);
  placing_.erase(one);
  workers_here_.erase(what.index);
  note("worker_placed", node->name, "",
    nlohmann::json{{"worker", fmt::format("worker-{}", what.index)}}.dump());
  reply.deliver(worker);
}

void cluster_hub::send_workers_home(session_id session) {
  auto* s = find(session);
  auto* node = nodes_.find(session);
  for (auto index : std::exchange(node->workers, {}))
    seam::tell(this, s->agent, worker_order{index, true}, worker_peers{});
}

// ---- the coordinator's own

void cluster_hub::start_member(const std::string& who) {
  caf::strong_actor_ptr made;
  const auto take = [&made](const auto& handle) {
    made = caf::actor_cast<caf::strong_actor_ptr>(handle);
  };
  auto& make = config_.make;
  if (who == "compiler" && make.compiler)
    take(compiler_ = make.compiler(home_system()));
  else if (who == "oracle" && make.oracle)
    take(oracle_ = make.oracle(home_system()));
  else if (who == "judge" && make.judge)
    take(judge_ = make.judge(home_system()));
  else if (who == "keeper" && make.keeper)
    take(keeper_ = make.keeper(home_system()));
  if (!made)
    return;
  members_[who].handle = made;
  monitors_.watch(this, made, [this, who](const caf::error& why) { member_down(who, why); });
  std::vector<std::string> again;
  for (auto& [key, open] : fans_)
    if (who == "oracle" && std::exchange(open.here_again, false))
      again.push_back(key);
  for (const auto& key : again)
    prepare_here(key);
}

void cluster_hub::member_down(const std::string& who, const caf::error& why) {
  auto& member = members_[who];
  member.handle = nullptr;
  if (who == "compiler")
    compiler_ = nullptr;
  else if (who == "oracle")
    oracle_ = nullptr;
  else if (who == "judge")
    judge_ = nullptr;
  if (ending()) {
    end_if_alone();
    return;
  }
  auto text = seam::show(system(), why);
  spdlog::error("{} died: {}", who, text);
  config_.events.note(this,
    {.kind = "actor_died",
      .reason = text,
      .data = nlohmann::json{{"actor", who}, {"deaths", member.deaths + 1}}.dump()});
  // Nodes know the keeper; a new one would be nobody to them.
  if (++member.deaths > config_.restarts_max || who == "keeper") {
    quit(to_error(
      {errc::child_failed, fmt::format("{} died {} times, last: {}", who, member.deaths, text)}));
    return;
  }
  member.restart_at = now() + config_.times.back_off;
}

void cluster_hub::begin_end() {
  if (ending())
    return;
  ending_since_ = now();
  failure over{errc::node_lost, "node '': the run is over"};
  for (auto& [session, s] : stays_)
    seam::tell(this, s.agent, node_farewell{std::string(run_is_over)});
  for (auto& [index, one] : placing_)
    one.reply.deliver(caf::strong_actor_ptr{});
  placing_.clear();
  for (auto& job : compiles_)
    job.reply.deliver(to_error({errc::shutting_down, "the run is ending"}));
  compiles_.clear();
  for (auto& [name, d] : devices_)
    if (d.executor)
      send_exit(caf::actor_cast<caf::actor>(d.executor), to_error(over));
  for (auto& [who, member] : members_)
    if (member.handle)
      send_exit(caf::actor_cast<caf::actor>(member.handle), caf::exit_reason::user_shutdown);
  look_again();
  end_if_alone();
}

void cluster_hub::end_if_alone() {
  if (!ending())
    return;
  auto executor_left = std::any_of(
    devices_.begin(), devices_.end(), [](const auto& d) { return d.second.executor != nullptr; });
  auto member_left = std::any_of(
    members_.begin(), members_.end(), [](const auto& m) { return m.second.handle != nullptr; });
  if (!executor_left && !member_left)
    quit(end_reason_);
}

} // namespace gristmill
