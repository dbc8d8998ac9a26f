#pragma once

#include "messages/cluster.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

struct node_task_limits {
  size_t open_max = 1024;
  std::chrono::nanoseconds deadline_max = std::chrono::hours{24};
  /// A measurement whose child has been ended is waited for so long.
  std::chrono::nanoseconds grace = std::chrono::seconds{10};
  /// Numbers of finished tasks that are remembered, so that a doubled one is not done again.
  size_t finished_max = 4096;
};

/// What a node does with the tasks of its hub: which it takes, until when, and that each is
/// answered once. Pure.
///
/// Tasks are numbered by the hub, and by a ticket of this node that no other task ever has: the
/// next hub counts from the start again while a measurement of the last one still runs.
class node_tasks {
public:
  using nanoseconds = std::chrono::nanoseconds;

  struct task {
    /// Of the hub.
    uint64_t id = 0;
    node_task_kind kind = node_task_kind::compile;
    std::string device;
    nanoseconds due{0};
    /// Its deadline has passed, or it was cancelled: its child is being ended.
    bool ending = false;
    /// The hub that gave it is gone: a measurement that runs on and is held.
    bool orphan = false;
  };

  enum class mode : uint8_t {
    /// No hub, or none that this node has told that it is ready.
    closed = 0,
    open,
    /// The node leaves: what is measured may be judged, and nothing new is begun.
    leaving,
  };

  explicit node_tasks(std::set<std::string> devices, node_task_limits limits = {})
    : devices_(std::move(devices)), limits_(limits) {}

  void set_mode(mode now) { mode_ = now; }
  mode current_mode() const { return mode_; }

  /// The ticket of a task that is to be begun; 0 for a doubled one, which is left alone. Errors, to
  /// be answered: `node_lost` before the node is ready, while it leaves and for a device at work,
  /// so that somebody else does it; `not_found` for an unknown device; `invalid_input` for a
  /// deadline that is none; `queue_full`.
  result<uint64_t> admit(const node_task& what, nanoseconds now);

  /// Done, or answered otherwise. What it was; nothing for one that was answered before or whose
  /// hub is gone: then nobody waits, and a measurement is to be held (`orphan`).
  std::optional<task> finish(uint64_t ticket);

  /// Tickets whose deadline has passed: the first time their children are to be ended, the second
  /// time they are answered without waiting any longer (`ending` is set then).
  std::vector<std::pair<uint64_t, task>> take_due(nanoseconds now);
  std::optional<nanoseconds> next_due() const;

  /// The ticket of an open task of the present hub; 0 for an unknown one.
  uint64_t cancel(uint64_t id, nanoseconds now);

  /// The hub is gone. Measurements become orphans, the others are forgotten: their late ends find
  /// nobody. Mode is closed, unless the node is leaving.
  void hub_lost();

  /// The run is over: nothing is held.
  void forget_all();

  size_t open() const { return open_.size(); }
  bool is_open(uint64_t ticket) const { return open_.count(ticket) != 0; }
  /// It was cancelled, or its deadline has passed.
  bool is_ending(uint64_t ticket) const;
  /// Something is measured on the device, or is about to be.
  bool at_work(const std::string& device) const;

private:
  std::set<std::string> devices_;
  node_task_limits limits_;
  mode mode_ = mode::closed;
  uint64_t next_ticket_ = 1;
  std::map<uint64_t, task> open_;
  /// By the hub's number; of the present hub alone.
  std::map<uint64_t, uint64_t> tickets_;
  std::set<uint64_t> finished_;
};

} // namespace gristmill
