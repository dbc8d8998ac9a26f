#pragma once

#include "actors/interfaces.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// How an actor writes to the journal. Has at most one relaxed append on its way: what is noted
/// meanwhile is collected and follows in one message, so that the journal's mailbox does not grow
/// with the number of events. Order is kept.
///
/// Once the journal has failed or is gone, events are dropped: its death ends the run, so an actor
/// that only notes has nothing to do about it.
///
/// A value: a copy writes to the same journal but has events of its own, so every actor gets a
/// copy.
class event_port {
public:
  using stored = std::function<void(const result<void>&)>;

  event_port() : state_(std::make_shared<state>()) {}
  /// `start`: the instant that `event::t` counts from.
  event_port(journal_actor journal, caf::actor_clock::time_point start);
  event_port(const event_port& other);
  event_port& operator=(const event_port& other);
  /// The source keeps its journal and has no events left.
  event_port(event_port&& other) noexcept = default;
  event_port& operator=(event_port&& other) noexcept = default;
  ~event_port() = default;

  /// Stored some time later. A `t` of 0 is set to now.
  template <class Self>
  void note(Self* self, event e) {
    if (!take(std::move(e), self->clock().now()))
      return;
    if (!state_->relaxed_on_its_way)
      send(self, state_, durability::relaxed, nullptr);
  }

  /// `then` is called once the event is on the disk, or with the reason why it never will be. It is
  /// not called any more after `close`.
  template <class Self>
  void keep(Self* self, event e, stored then) {
    if (!take(std::move(e), self->clock().now())) {
      then(fail(errc::shutting_down, "the journal takes no more events"));
      return;
    }
    // What was noted before goes along, so the log keeps the order of this actor.
    send(self, state_, durability::barrier, std::move(then));
  }

  /// Time since the start of the run.
  std::chrono::nanoseconds since_start(caf::actor_clock::time_point now) const {
    return now - state_->start;
  }

  /// Events that were handed over and not acknowledged yet.
  size_t unacknowledged() const { return state_->unacknowledged; }

  /// To be called from `on_exit`: hands over what is still here and drops the journal's handle.
  void close();

private:
  struct state {
    journal_actor journal;
    caf::actor_clock::time_point start;
    std::vector<event> waiting;
    size_t unacknowledged = 0;
    bool relaxed_on_its_way = false;
  };
  using state_ptr = std::shared_ptr<state>;

  /// False when nothing can be stored.
  bool take(event e, caf::actor_clock::time_point now);
  static void failed(state& s, size_t count);

  template <class Self>
  static void send(Self* self, const state_ptr& s, durability how, stored then) {
    journal_append what{std::move(s->waiting), how};
    s->waiting.clear();
    auto count = what.events.size();
    if (how == durability::relaxed)
      s->relaxed_on_its_way = true;
    auto ask = seam::ask(self, s->journal, std::move(what));
    ask.then(
      [self, s, how, count, then](const journal_ack&) {
        s->unacknowledged -= count;
        if (how == durability::relaxed)
          s->relaxed_on_its_way = false;
        if (then)
          then({});
        if (s->journal && !s->waiting.empty() && !s->relaxed_on_its_way)
          send(self, s, durability::relaxed, nullptr);
      },
      [self, s, count, then](const caf::error& why) {
        failed(*s, count);
        if (then)
          then(tl::unexpected<failure>(from_error(self->system(), why)));
      });
  }

  state_ptr state_;
};

} // namespace gristmill
