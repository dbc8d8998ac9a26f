#pragma once

#include "messages/lease.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Index of an interned need (what a waiter demands of a GPU). 0 stands for "any GPU". A table
/// knows at most 64 at a time.
using need_id = uint32_t;
inline constexpr need_id any_need = 0;
inline constexpr uint32_t needs_max = 64;

/// The needs that a GPU satisfies, bit i for need i; bit 0 is always set.
using need_set = uint64_t;

/// One request that waits for a GPU, as a policy sees it. All times count from the start of the
/// run.
struct waiter {
  /// Unique in the table and growing: the order of arrival.
  uint64_t ticket = 0;
  lease_class what = lease_class::timing;
  lease_flow flow;
  /// A second of this waiter is charged as 1/weight seconds; at least 1. Where weights of one flow
  /// differ, the newest counts.
  uint32_t weight = 1;
  need_id need = any_need;
  /// Never 0: the table fills in a guess where the asker gave none.
  std::chrono::nanoseconds est_hold{0};
  /// Longest term that the lease can have.
  std::chrono::nanoseconds cap{0};
  /// When the wait ends without a GPU.
  std::chrono::nanoseconds deadline{0};
  std::chrono::nanoseconds arrived{0};
};

/// A free GPU.
struct gpu_offer {
  uint32_t gpu = 0;
  need_set fits = 1;
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
  virtual void on_grant(uint64_t ticket, uint32_t gpu, std::chrono::nanoseconds now) = 0;
  /// The lease of the ticket is over; called once for each `on_grant`.
  virtual void on_release(
    const lease_usage& usage, std::string_view reason, std::chrono::nanoseconds now) = 0;

  /// Who gets this free GPU: a waiter whose need is in `offer.fits`. O(log n) in the number of
  /// waiters, times the number of needs. `on_grant` follows at once, or nothing: picking alone
  /// changes no decision (a policy that draws lots remembers its draw until then).
  virtual std::optional<uint64_t> pick(const gpu_offer& offer, std::chrono::nanoseconds now) = 0;

  /// A copy with its waiters, for looking ahead; null where there can be none (an outside process).
  virtual std::unique_ptr<lease_policy> clone() const = 0;

  /// What must outlive a restart (who has used how much), as text; waiters are not part of it.
  virtual std::string save() const = 0;
  /// Errors: `invalid_input` for a text that `save` of the same policy did not write; `refused`
  /// after the first request.
  virtual result<void> load(std::string_view text) = 0;

  /// What went wrong inside since the last call, for event `policy_failed`: a policy that asks an
  /// outside process decides by itself (fifo) while that does not answer. Most never fail.
  virtual std::vector<std::string> take_failures() { return {}; }
};

/// Oldest first. Equal counts, not equal seconds: whoever holds long takes the GPU.
std::unique_ptr<lease_policy> make_fifo_policy();

/// `stride` of docs/lease-policies.md: problems, then the agents of a problem, then fifo.
std::unique_ptr<lease_policy> make_stride_policy();

/// The policy that a text describes, from the outermost level in, such as
/// `stride(by=problem)/stride(by=agent)/fifo` or `sept(ageing=0.5)`; docs/lease-policies.md has the
/// grammar and every parameter. At most 4 KiB.
///
/// Errors: `invalid_input` for an unknown policy, parameter or value (names the nearest valid one
/// and all of them), for a level that cannot stand where it stands, and for a text that is too long
/// or has too many levels.
result<std::unique_ptr<lease_policy>> policy_from_text(std::string_view text);

/// The same; the older name.
result<std::unique_ptr<lease_policy>> policy_by_name(std::string_view name);

/// The policies that a bare name describes, sorted.
std::vector<std::string> policy_names();

struct policy_parameter_info {
  std::string name;
  /// "decimal", "time", "whole number", "problem, agent or class", …
  std::string kind;
  /// As one would write it; empty where the parameter must be given.
  std::string fallback;
  std::string what;
};

struct policy_info {
  std::string name;
  /// One line.
  std::string what;
  std::vector<policy_parameter_info> parameters;
};

/// Every policy there is, registered ones included, sorted by name: for documents and `--help`.
std::vector<policy_info> policy_catalogue();

/// Adds a policy of one's own, which `policy_from_text` then knows, also as the innermost level of
/// a tree. It is watched: where it names nobody who fits, the oldest request is served. Call it
/// before the first run starts: from gpu/lease/policies/all.cpp, or from the program's own `main`.
/// `refused` when the name is taken, `invalid_input` when it is not of the form
/// [a-z][a-z0-9_]{0,31}.
result<void> register_lease_policy(
  std::string name, std::function<std::unique_ptr<lease_policy>()> make, std::string description);

} // namespace gristmill
