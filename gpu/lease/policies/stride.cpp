#include "gpu/lease/policies/all.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Stride scheduling: the flow that has been charged the fewest (weighted) nanoseconds goes first.
/// The estimate is charged at the grant, else a flow would get every GPU that becomes free before
/// its first release, and settled with the actual time, clean-up included, at the release. A flow
/// that was away comes back at the present virtual time: idleness banks no credit.
class stride_rule final : public flow_rule {
public:
  std::string text() const override { return "stride"; }

  void on_join(level_clock& virtual_time, flow_account& flow) const override {
    flow.value = std::max(flow.value, virtual_time.value);
  }

  wide on_grant(level_clock& virtual_time, flow_account& flow, const flow_lease& lease,
    const flow_key&) const override {
    virtual_time.value = std::max(virtual_time.value, flow.value);
    auto charge = weighted_time(lease.est_hold, lease.weight);
    flow.value += charge;
    return charge;
  }

  void on_release(level_clock&, flow_account& flow, const flow_lease& lease,
    std::chrono::nanoseconds held, std::chrono::nanoseconds) const override {
    flow.value += weighted_time(held, lease.weight) - lease.charged;
  }

  flow_key key(const flow_account& flow, std::string_view, const flow_head&) const override {
    return {flow.value, 0};
  }

  bool forgettable(const level_clock& virtual_time, const flow_account& flow) const override {
    return flow.value <= virtual_time.value;
  }
};

} // namespace

policy_kind stride_kind() {
  policy_kind out;
  out.name = "stride";
  out.what = "equal seconds by weight, clean-up included; idle flows bank nothing (recommended)";
  out.place = policy_place::flows;
  out.make_rule = [](const policy_values&) { return std::make_shared<const stride_rule>(); };
  return out;
}

std::unique_ptr<lease_policy> make_stride_policy() {
  return std::move(*policy_from_text("stride"));
}

} // namespace gristmill
