#include "actors/blob_keeper.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace gristmill {

blob_keeper::blob_keeper(caf::actor_config& config, blob_keeper_config settings)
  : blob_keeper_actor::base(config), settings_(std::move(settings)),
    inbox_(settings_.store, settings_.cache), transfer_(inbox_, settings_.limits), monitors_(this) {
}

blob_keeper_actor::behavior_type blob_keeper::make_behavior() {
  seam::end_on_exception(this);
  if (settings_.cache)
    set_timer();
  return {
    [this](blob_fetch& what, const caf::strong_actor_ptr& from) -> caf::result<blobs_fetched> {
      if (!from)
        return to_error({errc::node_lost, "there is no keeper to fetch blobs from"});
      auto reply = make_response_promise<blobs_fetched>();
      const auto id = next_fetch_++;
      promises_.emplace(id, reply);
      const auto number = number_of(caf::actor_cast<blob_keeper_actor>(from));
      apply(transfer_.fetch(id, number, std::move(what), now()));
      return reply;
    },
    [this](const blob_pull& what) {
      auto who = caf::actor_cast<blob_keeper_actor>(current_sender());
      if (!who) // Nobody to answer.
        return;
      auto piece = read_piece(*settings_.store, what);
      if (settings_.cache && piece.failure_text.empty() && piece.offset == 0)
        settings_.cache->used({piece.sha256, piece.total});
      if (settings_.traffic)
        settings_.traffic->went_out(who.address(), piece.data.size());
      seam::tell(this, who, std::move(piece));
    },
    [this](blob_piece& what) {
      if (!current_sender())
        return;
      const auto address = current_sender()->address();
      auto known = peers_.find(address);
      if (known == peers_.end()) // Nobody who was asked for anything.
        return;
      if (settings_.traffic)
        settings_.traffic->came_in(address, what.data.size());
      apply(transfer_.piece(known->second.number, std::move(what), now()));
    },
    [this](const tick& due) {
      if (due.generation != generation_)
        return;
      timer_set_ = false;
      const auto time = now();
      if (settings_.cache && refresh_at_ <= time) {
        settings_.cache->refresh();
        refresh_at_ = time + settings_.refresh_every;
      }
      apply(transfer_.due(time));
    },
  };
}

void blob_keeper::on_exit() {
  for (auto& ending : transfer_.end({errc::shutting_down, "the blob keeper ends"}).ended)
    if (auto promise = promises_.extract(ending.fetch); !promise.empty())
      promise.mapped().deliver(to_error(ending.outcome.error()));
  promises_.clear();
  monitors_.clear();
  peers_.clear();
  addresses_.clear();
}

blob_transfer::instant blob_keeper::now() {
  return std::chrono::duration_cast<blob_transfer::instant>(clock().now().time_since_epoch());
}

uint64_t blob_keeper::number_of(const blob_keeper_actor& handle) {
  auto [known, fresh] = peers_.try_emplace(handle.address());
  if (!fresh)
    return known->second.number;
  const auto number = next_peer_++;
  known->second = {number, handle};
  addresses_.emplace(number, handle.address());
  monitors_.watch(
    this, handle, [this, number](const caf::error&) { apply(transfer_.peer_gone(number, now())); });
  return number;
}

void blob_keeper::apply(blob_transfer::steps what) {
  for (auto& pull : what.pulls)
    if (auto address = addresses_.find(pull.peer); address != addresses_.end())
      seam::tell(this, peers_.at(address->second).handle, std::move(pull.what));
  for (auto& ending : what.ended) {
    auto promise = promises_.extract(ending.fetch);
    if (promise.empty())
      continue;
    if (ending.outcome)
      promise.mapped().deliver(std::move(*ending.outcome));
    else
      promise.mapped().deliver(to_error(ending.outcome.error()));
  }
  if (!what.ended.empty())
    let_go_of_peers();
  set_timer();
}

void blob_keeper::let_go_of_peers() {
  // A watched peer costs memory there as long as it is watched.
  for (auto at = addresses_.begin(); at != addresses_.end();) {
    if (transfer_.wants(at->first)) {
      ++at;
      continue;
    }
    auto gone = peers_.extract(at->second);
    monitors_.unwatch(this, gone.mapped().handle);
    at = addresses_.erase(at);
  }
}

void blob_keeper::set_timer() {
  auto next = transfer_.next_due();
  if (settings_.cache && (!next || refresh_at_ < *next))
    next = refresh_at_;
  if (!next || (timer_set_ && timer_at_ <= *next))
    return;
  timer_set_ = true;
  timer_at_ = *next;
  const auto wait = std::max(*next - now(), blob_transfer::instant{0});
  seam::tell_later(this, wait, blob_keeper_actor{this}, tick{++generation_});
}

blob_keeper_actor start_blob_keeper(caf::actor_system& system, blob_keeper_config settings) {
  return system.spawn<blob_keeper, caf::detached>(std::move(settings));
}

} // namespace gristmill
