#include "gpu/lease/table.hpp"

#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

lease_table::lease_table(lease_table_config config, std::unique_ptr<lease_policy> policy)
  : config_(config), policy_(std::move(policy)), blame_(config.blame) {
  assert(policy_ != nullptr && config_.token_block > 0);
  alike_.fill(nobody);
}

nanoseconds lease_table::adoption_limit() const {
  if (config_.adoption_limit != nanoseconds{0})
    return config_.adoption_limit;
  return *std::max_element(config_.caps.begin(), config_.caps.end()) + config_.expiry_grace;
}

// --- journal lines ---------------------------------------------------------------------------

event lease_table::gpu_event(
  const char* kind, uint32_t gpu, nanoseconds now, std::string data) const {
  const auto& s = gpus_[gpu];
  event e;
  e.kind = kind;
  e.t = now;
  e.gpu = s.entry.name;
  e.token = s.token;
  e.data = std::move(data);
  return e;
}

event lease_table::gpu_event(const char* kind, uint32_t gpu, nanoseconds now) const {
  return gpu_event(kind, gpu, now, lease_line{}.add_if("boot", gpus_[gpu].boot).text());
}

event lease_table::lease_event(
  const char* kind, uint32_t gpu, nanoseconds now, std::string data) const {
  const auto& s = gpus_[gpu];
  event e = gpu_event(kind, gpu, now, std::move(data));
  e.problem = s.who.flow.problem;
  e.attempt = s.attempt;
  e.candidate = s.candidate;
  return e;
}

event lease_table::lease_event(const char* kind, uint32_t gpu, nanoseconds now) const {
  return lease_event(kind, gpu, now, lease_line{}.add_if("boot", gpus_[gpu].boot).text());
}

// --- phases ----------------------------------------------------------------------------------

void lease_table::update_free(uint32_t gpu) {
  const auto& s = gpus_[gpu];
  if (s.phase == gpu_phase::free && s.newest < s.reserved_last)
    free_.insert(gpu);
  else
    free_.erase(gpu);
}

const gpu_set& lease_table::gpus_for(const gpu_need& need, uint32_t excluded) {
  // Far more than there are kinds of needs; hostile texts must not fill the memory.
  constexpr size_t remembered = 1024;
  if (gpus_for_.size() >= remembered)
    gpus_for_.clear();
  auto [it, is_new] = gpus_for_.try_emplace({need, excluded});
  if (is_new)
    for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu)
      if (satisfies(gpus_[gpu].attributes, gpu, need, excluded))
        it->second.insert(gpu);
  return it->second;
}

need_set lease_table::fits_of(uint32_t gpu) const {
  need_set out = 1;
  for (auto left = numbers_used_; left != 0; left &= left - 1) {
    auto need = std::countr_zero(left);
    if (fitting_[static_cast<size_t>(need)].contains(gpu))
      out |= need_set{1} << need;
  }
  return out;
}

namespace {

// Equal times by index.
constexpr auto sooner = [](nanoseconds a, uint32_t gpu_a, nanoseconds b, uint32_t gpu_b) {
  return a == b ? gpu_a < gpu_b : a < b;
};

} // namespace

void lease_table::set_deadline(uint32_t gpu, std::optional<nanoseconds> deadline) {
  gpus_[gpu].deadline = deadline;
  if (deadline)
    gpu_deadlines_.set(gpu, *deadline, sooner);
  else
    gpu_deadlines_.erase(gpu, sooner);
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
  s.token = entry.token_floor;
  s.newest = entry.token_floor;
  s.reserved_last = entry.token_floor;
  s.since = now;
  s.entry = std::move(entry);
  gpus_.push_back(std::move(s));
  gpus_for_.clear();
  needs_.forget_unused();
  auto fits = needs_.fits_of(gpu, gpus_[gpu].attributes);
  for (need_id need = 1; need < needs_max; ++need)
    if ((fits >> need & 1) != 0)
      fitting_[need].insert(gpu);
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
  auto& a = out.emplace_back();
  a.kind = lease_action_kind::reserve;
  a.reserve = {gpu, s.reserved_last + config_.token_block};
  if (config_.log_events) {
    auto e = gpu_event("token_block", gpu, now, "{}");
    e.token = a.reserve.last;
    a.entry = std::move(e);
  }
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
    s.idle_alarm = others_wait_for(gpu);
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
  while (!gpu_deadlines_.empty() && gpu_deadlines_.top().key <= now)
    on_gpu_deadline(gpu_deadlines_.top().id, now, out);
  while (!wait_deadlines_.empty() && wait_deadlines_.front().key.first <= now)
    end_wait(wait_deadlines_.front().slot, "waited in vain: the patience is over", true, now, out);
  if (alarm_due_ && *alarm_due_ <= now) {
    alarm_due_.reset();
    look_for_alarms(now, out);
    if (waiting() != 0)
      alarm_due_ = now + std::max(config_.alarm_every, nanoseconds{1});
  }
}

std::optional<nanoseconds> lease_table::next_deadline() const {
  std::optional<nanoseconds> out = alarm_due_;
  auto earlier = [&](nanoseconds t) { out = std::min(out.value_or(t), t); };
  if (!gpu_deadlines_.empty())
    earlier(gpu_deadlines_.top().key);
  if (!wait_deadlines_.empty())
    earlier(wait_deadlines_.front().key.first);
  return out;
}

void lease_table::drain(const std::string& reason, nanoseconds now, lease_actions& out) {
  saw(now);
  if (!draining_.empty())
    return;
  draining_ = reason.empty() ? "draining" : reason;
  while (oldest_waiter_ != nobody)
    end_wait(oldest_waiter_, "no lease is granted any more: " + draining_, true, now, out);
}

} // namespace gristmill
