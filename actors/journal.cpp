#include "actors/journal.hpp"

#include <algorithm>
#include <iterator>

namespace gristmill {

namespace {

class log_sink final : public event_sink {
public:
  log_sink(event_log log, std::function<int64_t()> wall)
    : log_(std::move(log)), wall_(std::move(wall)) {}

  result<uint64_t> append(std::span<const event> events, durability how) override {
    return log_.append(events, how, wall_());
  }

private:
  event_log log_;
  std::function<int64_t()> wall_;
};

} // namespace

std::unique_ptr<event_sink> make_event_sink(event_log log, std::function<int64_t()> wall) {
  return std::make_unique<log_sink>(std::move(log), std::move(wall));
}

journal::journal(caf::actor_config& config, journal_config settings)
  : journal_actor::base(config), settings_(std::move(settings)) {}

journal_actor::behavior_type journal::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](journal_append& what) -> caf::result<journal_ack> {
      auto barrier = what.how == durability::barrier;
      auto reply = make_response_promise<journal_ack>();
      waiting_events_ += what.events.size();
      waiting_.push_back({std::move(what), reply});
      if (waiting_events_ >= settings_.waiting_max) {
        commit();
      } else if (barrier && !barrier_due_) {
        // Earlier than a timer for relaxed events that may be set: that one is stale now.
        barrier_due_ = true;
        seam::tell_later(this, settings_.barrier_within, journal_actor{this}, tick{++generation_});
      } else if (!barrier_due_ && !relaxed_due_) {
        relaxed_due_ = true;
        seam::tell_later(this, settings_.relaxed_within, journal_actor{this}, tick{++generation_});
      }
      return reply;
    },
    [this](const tick& due) {
      if (due.generation == generation_)
        commit();
    },
  };
}

void journal::on_exit() {
  // An ordinary end: what was said before it is kept.
  commit();
  settings_.sink.reset();
}

void journal::commit() {
  barrier_due_ = false;
  relaxed_due_ = false;
  ++generation_;
  auto batch = std::move(waiting_);
  waiting_.clear();
  waiting_events_ = 0;
  if (batch.empty())
    return;
  if (!settings_.sink) {
    fail_all(batch, {errc::io_failed, "the journal has been closed"});
    return;
  }
  std::vector<event> events;
  auto how = durability::relaxed;
  for (auto& e : batch) {
    events.insert(events.end(), e.what.events.begin(), e.what.events.end());
    how = std::max(how, e.what.how);
  }
  auto last = settings_.sink->append(events, how);
  if (!last && last.error().code == errc::invalid_input) {
    commit_each(std::move(batch));
    return;
  }
  if (!last) {
    fail_all(batch, last.error());
    return;
  }
  // The last event has the number `*last`; those of a batch are numbered without gaps.
  uint64_t after = events.size();
  for (auto& e : batch) {
    after -= e.what.events.size();
    e.reply.deliver(journal_ack{*last - after});
  }
}

void journal::commit_each(std::vector<entry> batch) {
  for (auto at = batch.begin(); at != batch.end(); ++at) {
    auto last = settings_.sink->append(at->what.events, at->what.how);
    if (last) {
      at->reply.deliver(journal_ack{*last});
    } else if (last.error().code == errc::invalid_input) {
      at->reply.deliver(to_error(last.error()));
    } else {
      std::vector<entry> rest(std::make_move_iterator(at), std::make_move_iterator(batch.end()));
      fail_all(rest, last.error());
      return;
    }
  }
}

void journal::fail_all(std::vector<entry>& batch, const failure& why) {
  failure told{errc::io_failed, why.what};
  for (auto& e : batch)
    e.reply.deliver(to_error(told));
  settings_.sink.reset();
  quit(to_error(told));
}

} // namespace gristmill
