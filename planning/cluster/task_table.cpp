#include "planning/cluster/task_table.hpp"

#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

task_table::task_table(uint32_t per_node_max, nanoseconds grace)
  : per_node_max_(per_node_max), grace_(grace) {}

result<open_task> task_table::open(
  session_id node, node_task_kind kind, std::string device, nanoseconds deadline, nanoseconds now) {
  auto& of_node = by_node_[node];
  if (of_node.size() >= per_node_max_)
    return fail(errc::queue_full, fmt::format("the node has {} tasks already", of_node.size()));
  open_task task{++last_, node, kind, std::move(device), now + deadline + grace_};
  of_node.insert(task.id);
  by_due_.emplace(task.due, task.id);
  tasks_.emplace(task.id, task);
  return task;
}

std::optional<open_task> task_table::close(uint64_t id, session_id node) {
  auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second.node != node)
    return std::nullopt;
  auto task = std::move(found->second);
  tasks_.erase(found);
  by_due_.erase({task.due, id});
  by_node_[node].erase(id);
  return task;
}

std::vector<open_task> task_table::lose(session_id node) {
  std::vector<open_task> out;
  auto found = by_node_.find(node);
  if (found == by_node_.end())
    return out;
  for (auto id : std::set<uint64_t>(found->second))
    out.push_back(*close(id, node));
  by_node_.erase(node);
  return out;
}

std::set<session_id> task_table::overdue(nanoseconds now) const {
  std::set<session_id> out;
  for (const auto& [due, id] : by_due_) {
    if (due > now)
      break;
    out.insert(tasks_.at(id).node);
  }
  return out;
}

std::optional<nanoseconds> task_table::next_due() const {
  if (by_due_.empty())
    return std::nullopt;
  return by_due_.begin()->first;
}

bool task_table::has(uint64_t id, session_id node) const {
  auto found = tasks_.find(id);
  return found != tasks_.end() && found->second.node == node;
}

uint32_t task_table::open_of(session_id node) const {
  auto found = by_node_.find(node);
  return found == by_node_.end() ? 0 : static_cast<uint32_t>(found->second.size());
}

} // namespace gristmill
