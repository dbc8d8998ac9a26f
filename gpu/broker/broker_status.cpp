#include "gpu/broker/broker_core.hpp"

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

ordered_json gpu_json(const gpu_snapshot& g, const broker_device& device) {
  ordered_json out = {{"gpu", g.name}, {"model", g.model}, {"phase", to_string(g.phase)},
    {"visible", device.visible}, {"token", g.token}, {"reason", g.reason},
    {"age_ns", g.age.count()}};
  if (g.phase == gpu_phase::granted || g.phase == gpu_phase::active
    || g.phase == gpu_phase::releasing || g.phase == gpu_phase::verifying) {
    out["user"] = g.flow.problem;
    out["project"] = g.flow.agent;
    out["class"] = to_string(g.what);
    out["command"] = g.attempt;
    out["held_ns"] = g.held.count();
    out["term_ns"] = g.term.count();
  }
  return out;
}

} // namespace

ordered_json broker_core::status(uint32_t waiters_max, nanoseconds now) const {
  broker_query query;
  query.waiters_max = waiters_max;
  const auto seen = table_.snapshot(query, now);
  ordered_json out = {{"about", settings_.about}, {"epoch", memory_.epoch},
    {"up_ns", (now - started_at_).count()}, {"policy", settings_.policy_text},
    {"draining", draining_}, {"connections", connections_.size()}, {"waiting", seen.waiting},
    {"granted_total", seen.granted_total}, {"gpus", ordered_json::array()},
    {"waiters", ordered_json::array()}, {"users", ordered_json::array()},
    {"weights", memory_.weights}, {"alarms", ordered_json::array()}};
  for (size_t i = 0; i < seen.gpus.size() && i < slots_.size(); ++i) {
    auto gpu = gpu_json(seen.gpus[i], slots_[i].device);
    if (slots_[i].state == work::orphaned)
      gpu["reason"] = "leased before the broker was restarted; its guard is waited for";
    out["gpus"].push_back(std::move(gpu));
  }
  for (const auto& w : seen.waiters)
    out["waiters"].push_back({{"ticket", w.ticket}, {"user", w.flow.problem},
      {"project", w.flow.agent}, {"class", to_string(w.what)}, {"need", w.need},
      {"command", w.attempt}, {"waited_ns", w.waited.count()}, {"ahead", w.ahead},
      {"estimated_wait_ns", w.estimated_wait.count()}});
  for (const auto& u : seen.usage)
    out["users"].push_back({{"user", u.flow.problem}, {"project", u.flow.agent},
      {"weight", u.weight}, {"held_ns", u.held_ns}, {"leases", u.leases}});
  for (const auto& a : seen.alarms)
    out["alarms"].push_back(
      {{"kind", a.kind}, {"gpu", a.gpu}, {"ticket", a.ticket}, {"detail", a.detail}});
  return out;
}

} // namespace gristmill
