#include "actors/node_tasks.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

bool on_device(node_task_kind kind) {
  return kind == node_task_kind::measure || kind == node_task_kind::quiet
    || kind == node_task_kind::probe;
}

bool while_leaving(node_task_kind kind) {
  return kind == node_task_kind::judge || kind == node_task_kind::quiet
    || kind == node_task_kind::end_draw;
}

} // namespace

result<uint64_t> node_tasks::admit(const node_task& what, nanoseconds now) {
  if (tickets_.count(what.id) != 0 || finished_.count(what.id) != 0)
    return uint64_t{0};
  const auto name = to_string(what.kind);
  if (mode_ == mode::closed)
    return fail(
      errc::node_lost, fmt::format("task {} ({}): this node is not ready", what.id, name));
  if (mode_ == mode::leaving && !while_leaving(what.kind))
    return fail(errc::node_lost, fmt::format("task {} ({}): this node is leaving", what.id, name));
  if (what.deadline <= nanoseconds{0} || what.deadline > limits_.deadline_max)
    return fail(errc::invalid_input,
      fmt::format(
        "node_task.deadline: {} ns is not between 1 ns and a day", what.deadline.count()));
  if (on_device(what.kind) && devices_.count(what.device) == 0)
    return fail(errc::not_found,
      fmt::format("node_task.device: there is no device '{}' here{}", what.device,
        suggestion(what.device, {devices_.begin(), devices_.end()})));
  if (what.kind == node_task_kind::measure && at_work(what.device))
    return fail(errc::node_lost, fmt::format("{} is at work", what.device));
  if (open_.size() >= limits_.open_max)
    return fail(errc::queue_full, fmt::format("{} tasks are open already", open_.size()));
  auto ticket = next_ticket_++;
  open_[ticket] = {what.id, what.kind, what.device, now + what.deadline, false, false};
  tickets_[what.id] = ticket;
  return ticket;
}

std::optional<node_tasks::task> node_tasks::finish(uint64_t ticket) {
  auto found = open_.find(ticket);
  if (found == open_.end())
    return std::nullopt;
  auto out = std::move(found->second);
  open_.erase(found);
  if (!out.orphan) {
    tickets_.erase(out.id);
    finished_.insert(out.id);
    if (finished_.size() > limits_.finished_max)
      finished_.erase(finished_.begin()); // The hub counts upwards.
  }
  return out;
}

std::vector<std::pair<uint64_t, node_tasks::task>> node_tasks::take_due(nanoseconds now) {
  std::vector<std::pair<uint64_t, task>> out;
  for (auto& [ticket, one] : open_) {
    if (one.due > now)
      continue;
    out.emplace_back(ticket, one);
    one.ending = true;
    one.due = now + limits_.grace;
  }
  return out;
}

std::optional<node_tasks::nanoseconds> node_tasks::next_due() const {
  std::optional<nanoseconds> out;
  for (const auto& [ticket, one] : open_)
    if (!out || one.due < *out)
      out = one.due;
  return out;
}

uint64_t node_tasks::cancel(uint64_t id, nanoseconds now) {
  auto found = tickets_.find(id);
  if (found == tickets_.end())
    return 0;
  auto& one = open_.at(found->second);
  if (!one.ending) {
    one.ending = true;
    // The hub climbs its own ladder; this is only for a child that nothing ends.
    one.due = std::max(one.due, now) + limits_.grace;
  }
  return found->second;
}

void node_tasks::hub_lost() {
  std::erase_if(open_, [](const auto& one) { return one.second.kind != node_task_kind::measure; });
  for (auto& [ticket, one] : open_)
    one.orphan = true;
  tickets_.clear();
  finished_.clear();
  if (mode_ == mode::open)
    mode_ = mode::closed;
}

void node_tasks::forget_all() {
  open_.clear();
  tickets_.clear();
  finished_.clear();
}

bool node_tasks::is_ending(uint64_t ticket) const {
  auto found = open_.find(ticket);
  return found != open_.end() && found->second.ending;
}

bool node_tasks::at_work(const std::string& device) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& one) {
    return one.second.kind == node_task_kind::measure && one.second.device == device;
  });
}

} // namespace gristmill
