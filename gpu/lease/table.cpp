#include "gpu/lease/table.hpp"

#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

lease_table::lease_table(lease_table_config config, std::unique_ptr<lease_policy> policy)
  : config_(config), policy_(std::move(policy)), blame_(config.blame) {
  assert(policy_ != nullptr && config_.token_block > 0);
}

nanoseconds lease_table::adoption_limit() const {
  if (config_.adoption_limit != nanoseconds{0})
    return config_.adoption_limit;
  return *std::max_element(config_.caps.begin(), config_.caps.end()) + config_.expiry_grace;
}

// --- journal lines ---------------------------------------------------------------------------

event lease_table::gpu_event(const std::string& kind, uint32_t gpu, nanoseconds now) const {
  const auto& s = gpus_[gpu];
  event e;
  e.kind = kind;
  e.t = now;
  e.gpu = s.entry.name;
  e.token = s.token;
  e.data = lease_line{}.add_if("boot", s.boot).text();
  return e;
}

event lease_table::lease_event(const std::string& kind, uint32_t gpu, nanoseconds now) const {
  const auto& s = gpus_[gpu];
  event e = gpu_event(kind, gpu, now);
  e.problem = s.who.flow.problem;
  e.attempt = s.attempt;
  e.candidate = s.candidate;
  return e;
}

void lease_table::log(event e, lease_actions& out) const {
  lease_action a;
  a.kind = lease_action_kind::log;
  a.entry = std::move(e);
  out.push_back(std::move(a));
}

// --- phases ----------------------------------------------------------------------------------

void lease_table::leave_free(uint32_t gpu) {
  auto group = free_.find(gpus_[gpu].fits);
  if (group == free_.end())
    return;
  group->second.erase(gpu);
  if (group->second.empty())
    free_.erase(group);
}

void lease_table::update_free(uint32_t gpu) {
  const auto& s = gpus_[gpu];
  if (s.phase == gpu_phase::free && s.newest < s.reserved_last)
    free_[s.fits].insert(gpu);
  else
    leave_free(gpu);
}

void lease_table::refit(need_id need) {
  auto bit = need_set{1} << need;
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    auto& s = gpus_[gpu];
    bool fits_now = needs_.satisfied(need, gpu, s.attributes);
    if (fits_now == ((s.fits & bit) != 0))
      continue;
    leave_free(gpu);
    s.fits ^= bit;
    update_free(gpu);
  }
}

void lease_table::set_deadline(uint32_t gpu, std::optional<nanoseconds> deadline) {
  auto& s = gpus_[gpu];
  if (s.deadline)
    gpu_deadlines_.erase({*s.deadline, gpu});
  s.deadline = deadline;
  if (deadline)
    gpu_deadlines_.insert({*deadline, gpu});
}

void lease_table::enter(
  uint32_t gpu, gpu_phase phase, std::optional<nanoseconds> deadline, nanoseconds now) {
  auto& s = gpus_[gpu];
  if (s.phase != phase)
    s.since = now;
  s.phase = phase;
  s.probing = false;
  set_deadline(gpu, deadline);
  update_free(gpu);
  ++changes_;
}

// --- GPUs and their tokens -------------------------------------------------------------------

uint32_t lease_table::add_gpu(gpu_entry entry, nanoseconds now, lease_actions& out) {
  saw(now);
  auto gpu = static_cast<uint32_t>(gpus_.size());
  slot s;
  s.attributes = {entry.model, entry.arch, entry.node, entry.memory_bytes};
  s.fits = needs_.fits_of(gpu, s.attributes);
  s.token = entry.token_floor;
  s.newest = entry.token_floor;
  s.reserved_last = entry.token_floor;
  s.since = now;
  s.entry = std::move(entry);
  gpus_.push_back(std::move(s));
  if (gpus_[gpu].entry.may_hold_lease_of_before && gpus_[gpu].entry.token_floor != 0)
    set_deadline(gpu, now + adoption_limit());
  else
    gpus_[gpu].entry.may_hold_lease_of_before = false;
  ask_for_tokens(gpu, now, out);
  return gpu;
}

void lease_table::ask_for_tokens(uint32_t gpu, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  if (s.reserving || s.reserved_last - s.newest > config_.token_block / 4)
    return;
  s.reserving = true;
  lease_action a;
  a.kind = lease_action_kind::reserve;
  a.reserve = {gpu, s.reserved_last + config_.token_block};
  a.entry = gpu_event("token_block", gpu, now);
  a.entry.data = "{}";
  a.entry.token = a.reserve.last;
  out.push_back(std::move(a));
}

void lease_table::on_block_reserved(
  uint32_t gpu, uint64_t last, nanoseconds now, lease_actions& out) {
  saw(now);
  if (gpu >= gpus_.size())
    return;
  auto& s = gpus_[gpu];
  if (!s.reserving || last != s.reserved_last + config_.token_block)
    return;
  s.reserving = false;
  s.reserved_last = last;
  update_free(gpu);
  // A very small block may be used up to the quarter already.
  ask_for_tokens(gpu, now, out);
  serve(now, out);
}

std::optional<uint32_t> lease_table::gpu_by_name(std::string_view name) const {
  for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu)
    if (gpus_[gpu].entry.name == name)
      return gpu;
  return std::nullopt;
}

bool lease_table::in_use(uint32_t gpu, uint64_t token) const {
  return gpu < gpus_.size() && gpus_[gpu].token == token && gpus_[gpu].charge_due
    && (live(gpus_[gpu]) || ending(gpus_[gpu]));
}

lease_ack lease_table::on_report(const device_report& report, nanoseconds now, lease_actions& out) {
  switch (report.state) {
  case device_state::up:
    return on_device_up(report.gpu, report.boot, now, out);
  case device_state::active:
    return on_activated(report.gpu, report.token, now, out);
  case device_state::verified:
    return on_verified(report.gpu, report.token, report.probe, now, out);
  case device_state::down:
    on_device_down(report.gpu, report.reason, now, out);
    return {true, {}};
  case device_state::ended:
    return on_ended(report.gpu, report.token, now, out);
  case device_state::holding:
    return on_holding(report, now, out);
  case device_state::probed:
    return on_probed(report.gpu, report.probe, now, out);
  }
  return {false, fmt::format("{} is not a state of a device", static_cast<unsigned>(report.state))};
}

// --- time ------------------------------------------------------------------------------------

void lease_table::on_gpu_deadline(uint32_t gpu, nanoseconds now, lease_actions& out) {
  auto& s = gpus_[gpu];
  switch (s.phase) {
  case gpu_phase::absent:
    fence(gpu,
      fmt::format("no word from its executor within {} s of the broker's start",
        in_seconds(adoption_limit())),
      now, out);
    break;
  case gpu_phase::granted:
    s.idle_alarm = others_wait_for(s);
    if (s.idle_alarm)
      look_for_alarms(now, out);
    end_lease(gpu, "lease_withdraw",
      fmt::format("withdrawn: not started within {} s", in_seconds(config_.grant_answer_limit)),
      true, now, out);
    break;
  case gpu_phase::active:
    end_lease(gpu, "lease_revoke",
      now >= s.granted_at + s.term + config_.expiry_grace
        ? std::string{"expired"}
        : fmt::format("not renewed for {} s", in_seconds(config_.ttl)),
      true, now, out);
    break;
  case gpu_phase::releasing:
  case gpu_phase::verifying:
    on_device_down(gpu,
      fmt::format("nobody verified within {} s that its last lease is over",
        in_seconds(config_.verify_limit)),
      now, out);
    break;
  case gpu_phase::suspect:
    if (s.probing)
      after_probe(gpu,
        {probe_outcome::could_not,
          fmt::format("no answer within {} s", in_seconds(config_.probe_limit))},
        now, out);
    else
      order_probe(gpu, now, out);
    break;
  default:
    set_deadline(gpu, std::nullopt);
    break;
  }
}

void lease_table::on_tick(nanoseconds now, lease_actions& out) {
  saw(now);
  while (!gpu_deadlines_.empty() && gpu_deadlines_.begin()->first <= now)
    on_gpu_deadline(gpu_deadlines_.begin()->second, now, out);
  while (!wait_deadlines_.empty() && wait_deadlines_.begin()->first <= now)
    end_wait(
      wait_deadlines_.begin()->second, "waited in vain: the patience is over", true, now, out);
  if (alarm_due_ && *alarm_due_ <= now) {
    alarm_due_.reset();
    look_for_alarms(now, out);
    if (!waiting_.empty())
      alarm_due_ = now + std::max(config_.alarm_every, nanoseconds{1});
  }
}

std::optional<nanoseconds> lease_table::next_deadline() const {
  std::optional<nanoseconds> out = alarm_due_;
  auto sooner = [&](nanoseconds t) { out = std::min(out.value_or(t), t); };
  if (!gpu_deadlines_.empty())
    sooner(gpu_deadlines_.begin()->first);
  if (!wait_deadlines_.empty())
    sooner(wait_deadlines_.begin()->first);
  return out;
}

void lease_table::drain(const std::string& reason, nanoseconds now, lease_actions& out) {
  saw(now);
  if (!draining_.empty())
    return;
  draining_ = reason.empty() ? "draining" : reason;
  while (!waiting_.empty())
    end_wait(waiting_.begin()->first, "no lease is granted any more: " + draining_, true, now, out);
}

} // namespace gristmill
