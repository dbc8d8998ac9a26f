#pragma once

#include "messages/cluster.hpp"
#include "messages/result.hpp"
#include "planning/cluster/node_table.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// A task that a node has and has not answered.
struct open_task {
  uint64_t id = 0;
  session_id node = 0;
  node_task_kind kind = node_task_kind::compile;
  std::string device;
  /// No answer by then means that the node is not what it says.
  std::chrono::nanoseconds due{0};
};

/// Which tasks are open, and until when. Every task is closed exactly once: by the answer of the
/// node that has it, by the loss of that node, or by being overdue. Pure.
class task_table {
public:
  /// `grace`: from a task's deadline, at which the node itself ends it, to when it is overdue.
  explicit task_table(
    uint32_t per_node_max = 1024, std::chrono::nanoseconds grace = std::chrono::seconds{30});

  /// Errors: `queue_full` when the node has too many.
  result<open_task> open(session_id node, node_task_kind kind, std::string device,
    std::chrono::nanoseconds deadline, std::chrono::nanoseconds now);
  /// Nothing for an id that is unknown, closed or another node's.
  std::optional<open_task> close(uint64_t id, session_id node);
  /// In order of their ids.
  std::vector<open_task> lose(session_id node);
  /// Stays with something overdue.
  std::set<session_id> overdue(std::chrono::nanoseconds now) const;
  std::optional<std::chrono::nanoseconds> next_due() const;
  bool has(uint64_t id, session_id node) const;
  uint32_t open_of(session_id node) const;
  size_t size() const { return tasks_.size(); }

private:
  uint32_t per_node_max_;
  std::chrono::nanoseconds grace_;
  uint64_t last_ = 0;
  std::map<uint64_t, open_task> tasks_;
  std::set<std::pair<std::chrono::nanoseconds, uint64_t>> by_due_;
  std::map<session_id, std::set<uint64_t>> by_node_;
};

} // namespace gristmill
