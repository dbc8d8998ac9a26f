#pragma once

#include "actors/interfaces.hpp"
#include "journal/event_log.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gristmill {

/// Where events end up. `event_log` in production; tests bring their own.
class event_sink {
public:
  virtual ~event_sink() = default;

  /// Stores all events or none; answers with the sequence number of the last one. `invalid_input`
  /// when an event is malformed; any other failure means that nothing can be stored any more.
  virtual result<uint64_t> append(std::span<const event> events, durability how) = 0;
};

/// The log on disk. `wall` reads the wall clock (Unix time in nanoseconds): the one place where the
/// runtime needs it.
std::unique_ptr<event_sink> make_event_sink(event_log log, std::function<int64_t()> wall);

struct journal_config {
  std::unique_ptr<event_sink> sink;
  /// A barrier is committed, with everything that waits, this long after it came: others join it.
  /// The sum of this and the commit stays under 5 ms.
  std::chrono::nanoseconds barrier_within = std::chrono::milliseconds{2};
  /// The same for relaxed events.
  std::chrono::nanoseconds relaxed_within = std::chrono::milliseconds{20};
  /// With so many events waiting, a commit does not wait for its timer.
  size_t waiting_max = 4096;
};

/// Group commit: appends are collected and stored in one transaction; each is acknowledged after
/// it. Spawned detached in production, because SQLite waits for the disk. A sink that fails ends
/// the actor with `io_failed`, and with it the run.
class journal final : public journal_actor::base {
public:
  journal(caf::actor_config& config, journal_config settings);

  const char* name() const override { return "journal"; }
  behavior_type make_behavior() override;
  void on_exit() override;

private:
  struct entry {
    journal_append what;
    caf::typed_response_promise<journal_ack> reply;
  };

  void commit();
  /// One by one, after a batch had a malformed event in it: only its producer gets the error.
  void commit_each(std::vector<entry> batch);
  void fail_all(std::vector<entry>& batch, const failure& why);

  journal_config settings_;
  std::vector<entry> waiting_;
  size_t waiting_events_ = 0;
  /// A commit is due; the newest timer counts.
  uint64_t generation_ = 0;
  bool barrier_due_ = false;
  bool relaxed_due_ = false;
};

} // namespace gristmill
