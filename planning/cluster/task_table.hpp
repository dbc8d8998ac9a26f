#pragma once

#include "messages/result.hpp"
#include "planning/cluster/node_table.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace gristmill {

/// Which tasks are open, and until when. Every task is closed exactly once: by the answer of the
/// node that has it, by the loss of that node, or by being overdue. Pure.
class task_table {
public:
  /// `grace`: from a task's deadline, at which the node itself ends it, to when it is overdue.
  explicit task_table(
    uint32_t per_node_max = 1024, std::chrono::nanoseconds grace = std::chrono::seconds{30});

  /// The id of the task, which no other one ever has. Errors: `queue_full` when the node has too
  /// many.
  result<uint64_t> open(
    session_id node, std::chrono::nanoseconds deadline, std::chrono::nanoseconds now);
  /// False for an id that is unknown, closed or another node's.
  bool close(uint64_t id, session_id node);
  /// The ids of what the node had, in their order.
  std::vector<uint64_t> lose(session_id node);
  /// Stays with something overdue.
  std::set<session_id> overdue(std::chrono::nanoseconds now) const;
  bool has(uint64_t id, session_id node) const;
  uint32_t open_of(session_id node) const;
  size_t size() const { return tasks_.size(); }

private:
  /// A task that a node has and has not answered.
  struct task {
    session_id node = 0;
    /// No answer by then means that the node is not what it says.
    std::chrono::nanoseconds due{0};
  };

  uint32_t per_node_max_;
  std::chrono::nanoseconds grace_;
  uint64_t last_ = 0;
  std::map<uint64_t, task> tasks_;
  std::set<std::pair<std::chrono::nanoseconds, uint64_t>> by_due_;
  std::map<session_id, std::set<uint64_t>> by_node_;
};

} // namespace gristmill
