#include "planning/cluster/task_table.hpp"

#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

task_table::task_table(uint32_t per_node_max, nanoseconds grace)
  : per_node_max_(per_node_max), grace_(grace) {}

result<uint64_t> task_table::open(session_id node, nanoseconds deadline, nanoseconds now) {
  auto& of_node = by_node_[node];
  if (of_node.size() >= per_node_max_)
    return fail(errc::queue_full, fmt::format("the node has {} tasks already", of_node.size()));
  const auto id = ++last_;
  const auto due = now + deadline + grace_;
  of_node.insert(id);
  by_due_.emplace(due, id);
  tasks_.emplace(id, task{node, due});
  return id;
}

bool task_table::close(uint64_t id, session_id node) {
  auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second.node != node)
    return false;
  by_due_.erase({found->second.due, id});
  by_node_[node].erase(id);
  tasks_.erase(found);
  return true;
}

std::vector<uint64_t> task_table::lose(session_id node) {
  auto found = by_node_.find(node);
  if (found == by_node_.end())
    return {};
  std::vector<uint64_t> out(found->second.begin(), found->second.end());
  for (auto id : out)
    close(id, node);
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

bool task_table::has(uint64_t id, session_id node) const {
  auto found = tasks_.find(id);
  return found != tasks_.end() && found->second.node == node;
}

uint32_t task_table::open_of(session_id node) const {
  auto found = by_node_.find(node);
  return found == by_node_.end() ? 0 : static_cast<uint32_t>(found->second.size());
}

} // namespace gristmill
