#pragma once

#include "gpu/lease/policy.hpp"
#include "gpu/lease/policy_state.hpp"

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace gristmill {

/// What a rule remembers of one flow (a problem, an agent or a class).
struct flow_account {
  /// What the rule counts: charged time, attained time, turn, …
  wide value = 0;
  /// A second number, for rules that need one.
  uint64_t turn = 0;
  /// Of the newest request.
  uint32_t weight = 1;
};

/// What a rule remembers of a whole level.
struct level_clock {
  wide value = 0;
  uint64_t count = 0;
};

/// The oldest waiter of a flow among those with one need.
struct flow_head {
  uint64_t ticket = 0;
  std::chrono::nanoseconds arrived{0};
};

/// The flow with the smallest key goes first; equal ones by name.
struct flow_key {
  wide major = 0;
  uint64_t minor = 0;

  friend auto operator<=>(const flow_key&, const flow_key&) = default;
};

/// A lease of a flow, as far as a rule charges for it.
struct flow_lease {
  std::chrono::nanoseconds est_hold{0};
  uint32_t weight = 1;
  /// From the grant on: when that was, and what `on_grant` answered.
  std::chrono::nanoseconds granted_at{0};
  wide charged = 0;
};

/// Orders the flows of one level. A rule has parameters and no state: what changes stands in the
/// account and the clock, which the level (flow_tree.hpp) keeps, saves and copies.
class flow_rule {
public:
  virtual ~flow_rule() = default;

  /// Name and parameters; a saved state is read back only by a rule with the same text.
  virtual std::string text() const = 0;

  /// The flow has a waiter again, after it had none.
  virtual void on_join(level_clock&, flow_account&) const {}
  /// Answers what the flow is charged in advance, for `flow_lease::charged`.
  virtual wide on_grant(
    level_clock&, flow_account&, const flow_lease&, const flow_key& /* before */) const {
    return 0;
  }
  virtual void on_release(level_clock&, flow_account&, const flow_lease&,
    std::chrono::nanoseconds /* held */, std::chrono::nanoseconds) const {}
  virtual flow_key key(const flow_account&, std::string_view name, const flow_head&) const = 0;
  /// A flow with nothing waiting and nothing running decides no differently when its account is
  /// new.
  virtual bool forgettable(const level_clock&, const flow_account&) const { return true; }
};

/// Time on a GPU divided by the weight, in units of 1/1024 ns.
inline wide weighted_time(std::chrono::nanoseconds held, uint32_t weight) {
  auto units = wide{held.count() < 0 ? 0 : held.count()} << 10;
  // A division of 128 bits costs more than all the rest, and most weights are 1.
  return weight <= 1 ? units : units / wide{weight};
}

} // namespace gristmill
