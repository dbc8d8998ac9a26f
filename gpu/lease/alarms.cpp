#include "gpu/lease/alarms.hpp"

namespace gristmill {

alarm_board::changes alarm_board::update(std::vector<broker_alarm> present) {
  std::map<key, broker_alarm> next;
  for (auto& alarm : present) {
    key k{alarm.kind, alarm.gpu, alarm.ticket};
    // Those that stand keep their place; new ones get what is left.
    if (standing_.contains(k))
      next.insert_or_assign(std::move(k), std::move(alarm));
  }
  changes out;
  for (auto& alarm : present) {
    key k{alarm.kind, alarm.gpu, alarm.ticket};
    if (alarm.kind.empty() || next.contains(k) || next.size() >= alarms_max)
      continue;
    out.raised.push_back(alarm);
    next.emplace(std::move(k), std::move(alarm));
  }
  for (auto& [k, alarm] : standing_)
    if (!next.contains(k))
      out.over.push_back(std::move(alarm));
  standing_ = std::move(next);
  return out;
}

std::vector<broker_alarm> alarm_board::list() const {
  std::vector<broker_alarm> out;
  for (const auto& [k, alarm] : standing_)
    out.push_back(alarm);
  return out;
}

} // namespace gristmill
