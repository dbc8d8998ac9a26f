#pragma once

#include "gpu/lease/policy.hpp"
#include "messages/lease.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace gristmill {

/// What flows have had and how long they hold a GPU: an average in which each lease counts a
/// quarter (integers, the same on every machine). Remembers at most `flows_max` flows; beyond it
/// the one that was served longest ago goes.
class flow_ledger {
public:
  explicit flow_ledger(uint32_t flows_max = 4096) : flows_max_(flows_max) {}

  void on_grant(const lease_flow& flow, uint32_t weight, std::chrono::nanoseconds now);
  /// A lease that ran has ended; `held` is grant to verified, so the hand-over is part of it.
  void on_held(const lease_flow& flow, lease_class what, std::chrono::nanoseconds held);
  /// A lease has been charged to the flow, whether it ran or not.
  void on_charge(const lease_flow& flow, std::chrono::nanoseconds held);

  /// What the flow needed lately for this class, else what everybody needed, else `claimed`, which
  /// is what the asker says.
  std::chrono::nanoseconds expected_hold(
    const lease_flow& flow, lease_class what, std::chrono::nanoseconds claimed) const;

  /// Time of the flow's newest grant; the least possible time when there was none.
  std::chrono::nanoseconds last_grant(const lease_flow& flow) const;

  /// Sorted by flow.
  std::vector<flow_usage> usage() const;

private:
  struct record {
    flow_usage usage;
    std::array<std::chrono::nanoseconds, 5> hold{};
    std::chrono::nanoseconds last_grant = std::chrono::nanoseconds::min();
    uint64_t touched = 0;
  };

  record& touch(const lease_flow& flow);

  uint32_t flows_max_;
  uint64_t clock_ = 0;
  std::map<lease_flow, record> flows_;
  std::set<std::pair<uint64_t, lease_flow>> by_age_;
  std::array<std::chrono::nanoseconds, 5> everybody_{};
};

/// A GPU that will serve somebody.
struct forecast_gpu {
  uint32_t gpu = 0;
  need_set fits = 1;
  /// When it will be free, not before the present.
  std::chrono::nanoseconds free_at{0};
  /// What runs on it until then; 0 for nothing.
  uint64_t ticket = 0;
  std::chrono::nanoseconds granted_at{0};
};

struct forecast_waiter {
  uint64_t ticket = 0;
  need_id need = any_need;
  std::chrono::nanoseconds hold{0};
  /// Wait to be told when no GPU of `gpus` fits.
  std::chrono::nanoseconds patience_left{0};
};

struct forecast_place {
  uint64_t ticket = 0;
  uint32_t ahead = 0;
  std::chrono::nanoseconds wait{0};
};

/// Plays the policy on, with a copy of it, up to `grants_max` grants; whoever is not reached by
/// then, or all where the policy cannot be copied or more than `waiters_max` wait, is put behind
/// in the order of arrival, by the rate of service. In the order of service. `waiters` is sorted by
/// ticket.
std::vector<forecast_place> look_ahead(const lease_policy& policy, std::vector<forecast_gpu> gpus,
  const std::vector<forecast_waiter>& waiters, std::chrono::nanoseconds now,
  uint32_t grants_max = 512, uint32_t waiters_max = 1024);

} // namespace gristmill
