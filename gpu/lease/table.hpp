#pragma once

#include "gpu/lease/policy.hpp"
#include "messages/event.hpp"
#include "messages/lease.hpp"
#include "messages/result.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// Names an asker within the table; the actor gives each address one.
using holder_id = uint64_t;

struct lease_table_config {
  /// Longest term of each class, in the order of `lease_class`.
  std::array<std::chrono::nanoseconds, 5> caps = {std::chrono::seconds{60},
    std::chrono::seconds{120}, std::chrono::seconds{300}, std::chrono::seconds{600},
    std::chrono::seconds{600}};
  /// More waiters are refused with `queue_full`.
  uint32_t waiting_max = 1024;
  /// A grant that the executor has not acted on for this long is withdrawn.
  std::chrono::nanoseconds grant_answer_limit = std::chrono::seconds{5};
  /// The executor ends a term itself; the table revokes this much later.
  std::chrono::nanoseconds expiry_grace = std::chrono::seconds{5};
  /// A GPU that nobody has verified for this long is taken out of service.
  std::chrono::nanoseconds verify_limit = std::chrono::seconds{60};
  /// Longest patience that a request may ask for, and that of a request with patience 0.
  std::chrono::nanoseconds patience_max = std::chrono::hours{24};
  /// Tokens reserved at a time; the next block is asked for when a quarter is left.
  uint64_t token_block = 1024;
};

/// A GPU of the table.
struct gpu_entry {
  /// In events, such as "mock:h200#0".
  std::string name;
  /// Device model, such as "h200"; what `lease_request::need` is compared with.
  std::string model;
  /// Highest token that the journal knows to be reserved, from earlier incarnations: no token up to
  /// it is ever granted again.
  uint64_t token_floor = 0;
};

enum class lease_action_kind : uint8_t {
  /// Push `granted` to `holder`.
  grant = 0,
  /// Push `ended` to `holder`: withdrawn, revoked, or waited in vain.
  notify_holder,
  /// Push `revoke` to the executor of `revoke.gpu`. It ends what runs under this token or an older
  /// one and reports `verified` with the token, also when nothing runs (any more).
  revoke,
  /// Store `reserve` durably, then call `on_block_reserved`.
  reserve,
  /// Write `entry` to the journal; its `t` is set.
  log,
};

/// Tokens up to `last` of a GPU, for the journal (`entry` of the same action is the event).
struct token_reservation {
  uint32_t gpu = 0;
  uint64_t last = 0;
};

/// What the actor shall do; only the member that `kind` names is set.
struct lease_action {
  lease_action_kind kind = lease_action_kind::log;
  holder_id holder = 0;
  lease_granted granted;
  lease_ended ended;
  lease_revoke revoke;
  token_reservation reserve;
  /// For `log`, and for `reserve` the event that makes it durable (kind "token_block", token =
  /// last, barrier).
  event entry;
};

using lease_actions = std::vector<lease_action>;

/// Who holds which GPU, who waits, and what time does to both. Pure: no clock, no actors.
///
/// An estimate of 0 in a request means "not known": a quarter of the class's cap is assumed.
///
/// A GPU is absent, free, granted (the executor has not started), active, verifying (the lease is
/// over; the executor has not yet confirmed that nothing runs) or down. Every way a lease ends
/// (release, expiry, death of the holder, withdrawal) goes through verifying. A token is granted
/// once, grows with every grant of its GPU and lies in a block that was reserved durably before.
///
/// Every `on_…` appends to `out` what has to be done, in order, grants of GPUs that became free
/// included. Stale input (an older token, an unknown request) changes nothing and says so.
class lease_table {
public:
  lease_table(lease_table_config config, std::unique_ptr<lease_policy> policy);

  /// Adds a GPU, absent until its first report, and asks for its first block of tokens. Returns its
  /// index; indices count from 0.
  uint32_t add_gpu(gpu_entry entry, std::chrono::nanoseconds now, lease_actions& out);

  /// The asker stands in line from now on (it may have been granted a GPU within this very call).
  /// A request that waits or is held already gets its ticket again. Errors: `queue_full`;
  /// `not_found` for a model that no GPU of the table has (names the ones there are);
  /// `invalid_input` for weight 0, a negative estimate or a patience outside 0..patience_max.
  result<lease_ticket> on_request(holder_id holder, const lease_request& request,
    std::chrono::nanoseconds now, lease_actions& out);

  /// Takes a request out of the queue, or ends the lease that it has become.
  lease_ack on_cancel(
    holder_id holder, uint64_t request, std::chrono::nanoseconds now, lease_actions& out);

  /// The executor lives and is idle. No effect on a GPU that is neither absent nor down.
  void on_device_up(uint32_t gpu, std::chrono::nanoseconds now, lease_actions& out);
  void on_device_down(
    uint32_t gpu, const std::string& reason, std::chrono::nanoseconds now, lease_actions& out);
  /// The executor has started work under the token.
  void on_activated(uint32_t gpu, uint64_t token, std::chrono::nanoseconds now, lease_actions& out);
  /// Nothing of the token or an older one runs any more.
  void on_verified(uint32_t gpu, uint64_t token, std::chrono::nanoseconds now, lease_actions& out);
  /// Calls the one of the four that the report names.
  void on_report(const device_report& report, std::chrono::nanoseconds now, lease_actions& out);

  /// From the executor or the holder. Idempotent: a stale one is answered `applied = false`.
  lease_ack on_release(uint32_t gpu, uint64_t token, const std::string& reason,
    std::chrono::nanoseconds now, lease_actions& out);
  /// Whether the lease still holds. A term is never longer than its class allows, so nothing else
  /// changes.
  lease_ack on_renew(uint32_t gpu, uint64_t token, std::chrono::nanoseconds now) const;

  /// Its requests are cancelled, its leases revoked.
  void on_holder_down(holder_id holder, std::chrono::nanoseconds now, lease_actions& out);

  /// The journal has stored the reservation.
  void on_block_reserved(
    uint32_t gpu, uint64_t last, std::chrono::nanoseconds now, lease_actions& out);

  /// Does what is due at `now`: withdrawals, expiries, lost patience, GPUs never verified.
  void on_tick(std::chrono::nanoseconds now, lease_actions& out);

  /// When `on_tick` has something to do next: the one timer that the actor needs.
  std::optional<std::chrono::nanoseconds> next_deadline() const;

  /// No grants from now on; waiters are told, leases run to their end.
  void drain(const std::string& reason, std::chrono::nanoseconds now, lease_actions& out);

  broker_snapshot snapshot() const;
  const lease_policy& policy() const { return *policy_; }

  /// For tests: the first rule of the class that does not hold; nothing when all do.
  std::optional<std::string> broken_invariant() const;

private:
  struct slot {
    gpu_entry entry;
    need_id model = any_need;
    gpu_phase phase = gpu_phase::absent;
    /// Newest token granted; equal to `entry.token_floor` before the first.
    uint64_t token = 0;
    uint64_t reserved_last = 0;
    bool reserving = false;
    /// False from a grant until its token was verified.
    bool verified = true;
    /// The lease is charged to its flow when it ends; false again once it has been.
    bool charge_due = false;
    holder_id holder = 0;
    uint64_t request = 0;
    waiter who;
    std::string attempt;
    std::chrono::nanoseconds granted_at{0};
    /// Of the phase: answer limit, expiry, verify limit. Also in `gpu_deadlines_`.
    std::optional<std::chrono::nanoseconds> deadline;
  };

  struct waiting_entry {
    holder_id holder = 0;
    uint64_t request = 0;
    waiter who;
    std::string attempt;
    std::chrono::nanoseconds arrived{0};
  };

  using request_key = std::pair<holder_id, uint64_t>;

  need_id intern(const std::string& model);
  std::chrono::nanoseconds cap(lease_class what) const {
    return config_.caps[static_cast<size_t>(what)];
  }
  event gpu_event(const std::string& kind, uint32_t gpu, std::chrono::nanoseconds now) const;
  event lease_event(const std::string& kind, uint32_t gpu, std::chrono::nanoseconds now) const;
  void log(event e, lease_actions& out) const;
  void enter(uint32_t gpu, gpu_phase phase, std::optional<std::chrono::nanoseconds> deadline);
  void update_free(uint32_t gpu);
  void ask_for_tokens(uint32_t gpu, std::chrono::nanoseconds now, lease_actions& out);
  void serve(std::chrono::nanoseconds now, lease_actions& out);
  void grant(uint32_t gpu, uint64_t ticket, std::chrono::nanoseconds now, lease_actions& out);
  void revoke(uint32_t gpu, const std::string& reason, lease_actions& out) const;
  void end_lease(uint32_t gpu, const std::string& kind, const std::string& reason, bool tell_holder,
    std::chrono::nanoseconds now, lease_actions& out);
  void charge(uint32_t gpu, const std::string& reason, std::chrono::nanoseconds now);
  void end_wait(uint64_t ticket, const std::string& reason, bool tell_holder,
    std::chrono::nanoseconds now, lease_actions& out);
  bool live(const slot& s) const {
    return s.phase == gpu_phase::granted || s.phase == gpu_phase::active;
  }

  lease_table_config config_;
  std::unique_ptr<lease_policy> policy_;
  std::vector<slot> gpus_;
  std::map<std::string, need_id> needs_;
  /// Free GPUs that have a token to give, by model.
  std::map<need_id, std::set<uint32_t>> free_;
  std::map<uint64_t, waiting_entry> waiting_;
  /// Waiting tickets by asker, to find duplicates and to cancel.
  std::map<request_key, uint64_t> tickets_;
  /// GPUs that are granted or active, by asker.
  std::map<request_key, uint32_t> held_;
  std::set<std::pair<std::chrono::nanoseconds, uint32_t>> gpu_deadlines_;
  std::set<std::pair<std::chrono::nanoseconds, uint64_t>> wait_deadlines_;
  uint64_t next_ticket_ = 1;
  uint64_t granted_total_ = 0;
  std::string draining_;
};

} // namespace gristmill
