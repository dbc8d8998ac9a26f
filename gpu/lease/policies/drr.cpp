#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/policy_text.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Deficit round robin: in each round a flow may use a quantum, times its weight, and is served
/// until it has. A lease cannot be cut short, so an overrun is a debt that later rounds pay, and
/// the estimate only decides until the actual time is known.
///
/// What a flow has used, in quanta, is the round that it has reached; so the rounds need no loop.
class drr_rule final : public flow_rule {
public:
  explicit drr_rule(std::chrono::nanoseconds quantum) : quantum_(weighted_time(quantum, 1)) {}

  std::string text() const override { return "drr " + state_number(quantum_); }

  void on_join(level_clock& ring, flow_account& flow) const override {
    flow.value = std::max(flow.value, ring.value * quantum_);
    flow.turn = ++ring.count; // To the end of the ring.
  }

  wide on_grant(level_clock& ring, flow_account& flow, const flow_lease& lease,
    const flow_key& before) const override {
    ring.value = std::max(ring.value, before.major);
    auto charge = weighted_time(lease.est_hold, lease.weight);
    flow.value += charge;
    return charge;
  }

  void on_release(level_clock&, flow_account& flow, const flow_lease& lease,
    std::chrono::nanoseconds held, std::chrono::nanoseconds) const override {
    flow.value += weighted_time(held, lease.weight) - lease.charged;
  }

  flow_key key(const flow_account& flow, std::string_view, const flow_head&) const override {
    return {flow.value / quantum_, flow.turn};
  }

  bool forgettable(const level_clock& ring, const flow_account& flow) const override {
    return flow.value <= ring.value * quantum_;
  }

private:
  wide quantum_;
};

} // namespace

policy_kind drr_kind() {
  policy_kind out;
  out.name = "drr";
  out.what = "deficit round robin: each flow uses a quantum in turn; debts carry over";
  out.place = policy_place::flows;
  out.parameters = {
    {"quantum", value_kind::time, "60s", "time of a flow of weight 1 in each round, above 0"}};
  out.make_rule = [](const policy_values& v) -> result<std::shared_ptr<const flow_rule>> {
    auto quantum = v.time("quantum");
    if (quantum.count() == 0)
      return fail(errc::invalid_input, "lease policy 'drr': quantum must be above 0");
    return std::make_shared<const drr_rule>(quantum);
  };
  return out;
}

} // namespace gristmill
