#include "gpu/lease/fixed_log.hpp"
#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/policy_text.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Weighted max-min: the flow with the least recent use for its weight goes first, so the lowest
/// level rises as water does. Use counts half after each half-life, so neither debts nor credits
/// last: unlike with stride, who was away for a while has some credit.
///
/// An account is exact at its grid time (`turn`, in 64ths of the half-life). All decay alike, so
/// log2(use) + time / half-life orders them at any later time, too.
class max_min_rule final : public flow_rule {
public:
  explicit max_min_rule(std::chrono::nanoseconds half_life) : half_life_(half_life) {}

  std::string text() const override { return "maxmin " + state_number(half_life_.count()); }

  wide on_grant(level_clock& latest, flow_account& flow, const flow_lease& lease,
    const flow_key&) const override {
    bring_up(latest, flow, grid(lease.granted_at));
    auto charge = weighted_time(lease.est_hold, lease.weight);
    flow.value += charge;
    return charge;
  }

  void on_release(level_clock& latest, flow_account& flow, const flow_lease& lease,
    std::chrono::nanoseconds held, std::chrono::nanoseconds now) const override {
    bring_up(latest, flow, grid(now));
    auto at_grant = std::min(grid(lease.granted_at), flow.turn);
    flow.value += weighted_time(held, lease.weight) - decayed(lease.charged, flow.turn - at_grant);
    flow.value = std::max<wide>(flow.value, 0);
  }

  flow_key key(const flow_account& flow, std::string_view, const flow_head& oldest) const override {
    // Between flows with no use left, the oldest request decides.
    if (flow.value <= 0)
      return {-(wide{1} << 100), oldest.ticket};
    auto use = log2_q32(static_cast<unsigned __int128>(flow.value));
    return {wide{use} * wide{halving_steps} + (wide{flow.turn} << 32), 0};
  }

  bool forgettable(const level_clock& latest, const flow_account& flow) const override {
    return flow.value <= 0
      || decayed(flow.value, latest.count - std::min(latest.count, flow.turn)) == 0;
  }

private:
  uint64_t grid(std::chrono::nanoseconds now) const {
    return static_cast<uint64_t>(
      wide{std::max<int64_t>(now.count(), 0)} * wide{halving_steps} / wide{half_life_.count()});
  }

  static void bring_up(level_clock& latest, flow_account& flow, uint64_t to) {
    latest.count = std::max(latest.count, to);
    if (to <= flow.turn)
      return;
    flow.value = decayed(std::max<wide>(flow.value, 0), to - flow.turn);
    flow.turn = to;
  }

  std::chrono::nanoseconds half_life_;
};

} // namespace

policy_kind maxmin_kind() {
  policy_kind out;
  out.name = "maxmin";
  out.what = "least recent use for its weight first; what was used is forgotten by half-lives";
  out.place = policy_place::flows;
  out.parameters = {
    {"half_life", value_kind::time, "10m", "after it, use counts half; 1ms to 36500d"}};
  out.make_rule = [](const policy_values& v) -> result<std::shared_ptr<const flow_rule>> {
    auto half_life = v.time("half_life");
    if (half_life < std::chrono::milliseconds{1})
      return fail(errc::invalid_input, "lease policy 'maxmin': half_life must be at least 1ms");
    return std::make_shared<const max_min_rule>(half_life);
  };
  return out;
}

} // namespace gristmill
