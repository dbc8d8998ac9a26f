#pragma once

#include "gpu/lease/flat_index.hpp"
#include "gpu/lease/policy.hpp"
#include "messages/lease.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

namespace gristmill {

/// What flows have had and how long they hold a GPU: an average in which each lease counts a
/// quarter (integers, the same on every machine). Remembers at most `flows_max` flows; beyond it
/// the one that was served longest ago goes.
class flow_ledger {
public:
  explicit flow_ledger(uint32_t flows_max = 4096) : flows_max_(flows_max) {}

  /// Answers where the flow is found faster than by its name, while it is remembered: `hint`
  /// below. A wrong one does no harm.
  uint32_t on_grant(const lease_flow& flow, uint32_t weight, std::chrono::nanoseconds now);
  /// A lease that ran has ended; `held` is grant to verified, so the hand-over is part of it.
  void on_held(const lease_flow& flow, lease_class what, std::chrono::nanoseconds held,
    uint32_t hint = flat_index::none);
  /// A lease has been charged to the flow, whether it ran or not.
  void on_charge(
    const lease_flow& flow, std::chrono::nanoseconds held, uint32_t hint = flat_index::none);

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
    /// Neighbours in the order in which flows were served last.
    uint32_t older = flat_index::none;
    uint32_t newer = flat_index::none;
  };

  uint32_t find(const lease_flow& flow) const;
  /// The record of the flow, made where there is none; from now on it is the newest.
  uint32_t touch(const lease_flow& flow, uint32_t hint);
  void leave_row(uint32_t slot);

  uint32_t flows_max_;
  std::vector<record> records_;
  flat_index by_flow_;
  uint32_t oldest_ = flat_index::none;
  uint32_t newest_ = flat_index::none;
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
