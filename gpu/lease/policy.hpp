#pragma once

#include "messages/lease.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Index of an interned device model. 0 stands for "any model".
using need_id = uint32_t;
inline constexpr need_id any_need = 0;

/// One request that waits for a GPU, as a policy sees it. All times count from the start of the
/// run.
struct waiter {
  /// Unique in the table and growing.
  uint64_t ticket = 0;
  lease_class what = lease_class::timing;
  lease_flow flow;
  /// A second of this waiter is charged as 1/weight seconds; at least 1.
  uint32_t weight = 1;
  need_id need = any_need;
  std::chrono::nanoseconds est_hold{0};
  std::chrono::nanoseconds deadline{0};
};

/// What a lease has cost in the end.
struct lease_usage {
  uint64_t ticket = 0;
  uint32_t gpu = 0;
  /// Grant to verified, so clean-up after a fault is charged as well.
  std::chrono::nanoseconds held{0};
};

/// Decides who gets a free GPU. Pure and deterministic: no clock, no chance, integers only, ordered
/// containers only. Work conserving: `pick` names a waiter whenever one fits.
class lease_policy {
public:
  virtual ~lease_policy() = default;

  virtual std::string_view name() const = 0;

  virtual void on_request(const waiter& w) = 0;
  /// The waiter leaves the queue without a GPU. An unknown ticket has no effect.
  virtual void on_cancel(uint64_t ticket) = 0;
  /// The waiter leaves the queue with a GPU.
  virtual void on_grant(uint64_t ticket, std::chrono::nanoseconds now) = 0;
  /// The lease of the ticket is over; called once for each `on_grant`.
  virtual void on_release(const lease_usage& usage, std::string_view reason) = 0;

  /// Who gets a free GPU of this model: a waiter for the model or for any model. O(log n) in the
  /// number of waiters. Changes nothing: `on_grant` follows.
  virtual std::optional<uint64_t> pick(need_id model, std::chrono::nanoseconds now) const = 0;

  /// What must outlive a restart (who has used how much), as text; waiters are not part of it.
  virtual std::string save() const = 0;
  /// Errors: `invalid_input` for a text that `save` of the same policy did not write.
  virtual result<void> load(std::string_view text) = 0;
};

/// Oldest first. Equal counts, not equal seconds: whoever holds long takes the GPU.
std::unique_ptr<lease_policy> make_fifo_policy();

/// Stride scheduling over problems, then over the agents of a problem: the flow that has been
/// charged the fewest (weighted) nanoseconds goes first. The estimate is charged at the grant and
/// settled with the actual time, clean-up included, at the release. A flow that was away comes back
/// at the present virtual time: idleness banks no credit.
std::unique_ptr<lease_policy> make_stride_policy();

/// The names that `policy_by_name` knows, sorted.
std::vector<std::string> policy_names();

/// Errors: `invalid_input`, naming the nearest known policy and all of them.
result<std::unique_ptr<lease_policy>> policy_by_name(std::string_view name);

} // namespace gristmill
