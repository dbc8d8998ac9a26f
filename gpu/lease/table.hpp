#pragma once

#include "gpu/lease/alarms.hpp"
#include "gpu/lease/blame.hpp"
#include "gpu/lease/boxed.hpp"
#include "gpu/lease/estimate.hpp"
#include "gpu/lease/flat_index.hpp"
#include "gpu/lease/gpu_set.hpp"
#include "gpu/lease/indexed_heap.hpp"
#include "gpu/lease/lazy_queue.hpp"
#include "gpu/lease/need.hpp"
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
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gristmill {

/// Names an asker within the table; the actor gives each address one. 0 is nobody: the holder of an
/// adopted lease until somebody claims it.
using holder_id = uint64_t;

struct lease_table_config {
  /// Longest term of each class, in the order of `lease_class`.
  std::array<std::chrono::nanoseconds, 5> caps = {std::chrono::seconds{60},
    std::chrono::seconds{120}, std::chrono::seconds{300}, std::chrono::seconds{600},
    std::chrono::seconds{600}};
  /// More waiters are refused with `queue_full`.
  uint32_t waiting_max = 1024;
  /// GPUs are added while the table is in use: a need that none satisfies yet waits for one instead
  /// of being refused with `not_found`.
  bool gpus_may_come = false;
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

  /// A running lease that its executor has not renewed for this long is revoked; executors renew
  /// every third of it. 0: executors do not renew, and only the term counts.
  std::chrono::nanoseconds ttl{0};
  /// A renewal is refused, and the lease revoked, when no GPU work has been going on for this long
  /// while somebody waits for such a GPU.
  std::chrono::nanoseconds idle_limit = std::chrono::seconds{5};

  /// An answer to a probe order that comes later counts as "could not probe".
  std::chrono::nanoseconds probe_limit = std::chrono::seconds{10};
  /// From a probe that did not pass to the next order; doubled each time up to the maximum.
  std::chrono::nanoseconds probe_backoff = std::chrono::seconds{5};
  std::chrono::nanoseconds probe_backoff_max = std::chrono::minutes{5};
  /// So many failed probes in a row (the one after the lease counts) put a GPU into quarantine.
  uint32_t failed_probes_max = 3;
  blame_config blame;

  /// Which start of the broker this is: raised by whoever starts it, at each start.
  uint64_t epoch = 0;
  /// How long to wait for an executor that may still run a lease of an earlier start. 0: the
  /// longest cap plus `expiry_grace`.
  std::chrono::nanoseconds adoption_limit{0};

  /// How often to look for alarms while somebody waits.
  std::chrono::nanoseconds alarm_every = std::chrono::seconds{30};
  /// A waiter whose flow has had no lease for this long, or for `starvation_factor` times the
  /// median of the latest waits (and at least a minute), starves.
  std::chrono::nanoseconds starvation_after = std::chrono::hours{1};
  uint32_t starvation_factor = 20;

  /// False: no event is made, so no `log` action comes out and `reserve` has an empty entry. For
  /// simulations of millions of leases that need no journal; decisions are the same.
  bool log_events = true;
  /// False: a ticket says nothing of its place and wait (both 0). Decisions are the same.
  bool estimate_places = true;
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
  /// Such as "sm_90a"; empty or 0 where not known.
  std::string arch{};
  uint64_t memory_bytes = 0;
  std::string node{};
  /// An earlier start of the broker may have granted a lease that still runs. Then the executor's
  /// first word is `holding` (the lease is adopted) or `up` (all tokens up to `token_floor` are
  /// revoked, and the GPU is free when that is verified). From one that says nothing the same is
  /// demanded when `adoption_limit` is over.
  bool may_hold_lease_of_before = false;
};

enum class lease_action_kind : uint8_t {
  /// Push `granted` to `holder`.
  grant = 0,
  /// Push `ended` to `holder`: withdrawn, revoked, tainted, or waited in vain.
  notify_holder,
  /// Push `revoke` to the executor of `revoke.gpu`. It ends what runs under this token or an older
  /// one and reports `verified` with the token, also when nothing runs (any more).
  revoke,
  /// Store `reserve` durably, then call `on_block_reserved`.
  reserve,
  /// Write `entry` to the journal; its `t` is set.
  log,
  /// Push `probe` to the executor of `probe.gpu`. It reports `probed`.
  probe,
  /// The failure of `rerun` was the GPU's: what it ran may run again. For the planner; the event is
  /// an action of its own.
  rerun,
};

/// Tokens up to `last` of a GPU, for the journal (`entry` of the same action is the event).
struct token_reservation {
  uint32_t gpu = 0;
  uint64_t last = 0;
};

/// What the actor shall do; only the member that `kind` names is set. What is large is in a box, so
/// that the many that carry a grant or a revoke are cheap.
struct lease_action {
  lease_action_kind kind = lease_action_kind::log;
  holder_id holder = 0;
  lease_granted granted;
  lease_ended ended;
  lease_revoke revoke;
  token_reservation reserve;
  /// For `log`, and for `reserve` the event that makes it durable (kind "token_block", token =
  /// last, barrier). Empty without `log_events`.
  boxed<event> entry;
  probe_order probe;
  boxed<blame_victim> rerun;
};

using lease_actions = std::vector<lease_action>;

/// Who holds which GPU, who waits, and what time does to both. Pure: no clock, no actors.
///
/// An estimate of 0 in a request means "not known": what the flow needed lately is assumed, or a
/// quarter of the class's cap.
///
/// A GPU goes free → granted (the executor has not started) → active → releasing (the lease is
/// over, the executor is to end it) → verifying (ended, not yet confirmed that nothing runs) →
/// free. Every way a lease ends (release, expiry, a missing renewal, death of the holder,
/// withdrawal) goes that way. A token is granted once, grows with every grant of its GPU and lies
/// in a block that was reserved durably before. docs/leases.md has the picture and the rules.
///
/// Boot ids: a GPU that was lost is taken back only under a boot id that it has not had before, and
/// after a passed probe. An executor that gives no boot id (and never gave one) is one that its
/// supervisor has started anew on the same node: it is taken back at once when its last lease was
/// verified, else after it has been. One that gave a boot id before must give one.
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
  /// A request that waits or is held already gets its ticket again. Errors: `queue_full`, also when
  /// more than 64 different needs wait; `not_found` for a need that no GPU of the table satisfies
  /// (names the ones there are), unless GPUs may come; `refused` for a candidate that failed on two
  /// GPUs, or on one when there is no other; `shutting_down` after `drain`; `invalid_input` for
  /// weight 0, an unknown class or need, a candidate of more than 128 bytes, a negative estimate, a
  /// term outside 0..cap or a patience outside 0..patience_max.
  result<lease_ticket> on_request(holder_id holder, const lease_request& request,
    std::chrono::nanoseconds now, lease_actions& out);

  /// The place of a request that waits, as things stand; ahead 0 and wait 0 for one that is held.
  /// Errors: `not_found`.
  result<lease_ticket> position(
    holder_id holder, uint64_t request, std::chrono::nanoseconds now) const;

  /// Takes a request out of the queue, or ends the lease that it has become.
  lease_ack on_cancel(
    holder_id holder, uint64_t request, std::chrono::nanoseconds now, lease_actions& out);

  /// The executor lives and is idle. `boot`: see above. No effect on a GPU that is in service under
  /// the same boot id.
  lease_ack on_device_up(
    uint32_t gpu, std::string_view boot, std::chrono::nanoseconds now, lease_actions& out);
  void on_device_up(uint32_t gpu, std::chrono::nanoseconds now, lease_actions& out) {
    on_device_up(gpu, {}, now, out);
  }
  /// The executor or its node is gone. Its lease is closed ("node_lost: …"), the GPU lost; one in
  /// quarantine stays there.
  void on_device_down(
    uint32_t gpu, const std::string& reason, std::chrono::nanoseconds now, lease_actions& out);
  /// The executor has started work under the token. `applied` is false when it must not: then a
  /// revoke of that token is among the actions.
  lease_ack on_activated(
    uint32_t gpu, uint64_t token, std::chrono::nanoseconds now, lease_actions& out);
  /// The work of the token is over or being ended by the executor.
  lease_ack on_ended(
    uint32_t gpu, uint64_t token, std::chrono::nanoseconds now, lease_actions& out);
  /// Nothing of the token or an older one runs any more. The note begins with "tainted" when the
  /// probe failed: then what was measured under the token does not count.
  lease_ack on_verified(uint32_t gpu, uint64_t token, const probe_report& probe,
    std::chrono::nanoseconds now, lease_actions& out);
  lease_ack on_verified(
    uint32_t gpu, uint64_t token, std::chrono::nanoseconds now, lease_actions& out) {
    return on_verified(gpu, token, probe_report{}, now, out);
  }
  /// The answer to a probe order.
  lease_ack on_probed(
    uint32_t gpu, const probe_report& probe, std::chrono::nanoseconds now, lease_actions& out);
  /// An executor still runs a lease that an earlier start of the broker granted: it is adopted,
  /// with nobody as its holder, and runs to the end of its term. `applied` is false when it must
  /// not run on: then a revoke of that token is among the actions.
  lease_ack on_holding(
    const device_report& report, std::chrono::nanoseconds now, lease_actions& out);
  /// A client of the earlier start says that the adopted lease is its own.
  lease_ack on_claim(holder_id holder, uint64_t request, uint32_t gpu, uint64_t token,
    std::chrono::nanoseconds now, lease_actions& out);
  /// Calls the one of these that the report names. False: the report was stale or the executor has
  /// to stop.
  lease_ack on_report(
    const device_report& report, std::chrono::nanoseconds now, lease_actions& out);

  /// From the executor or the holder. Idempotent: a stale one is answered `applied = false`. What
  /// was measured under the token counts only when its release is applied. `outcome` is for blame
  /// and must come from the executor; while the GPU is being verified it is still taken down.
  lease_ack on_release(uint32_t gpu, uint64_t token, const std::string& reason,
    lease_outcome outcome, std::chrono::nanoseconds now, lease_actions& out);
  lease_ack on_release(uint32_t gpu, uint64_t token, const std::string& reason,
    std::chrono::nanoseconds now, lease_actions& out) {
    return on_release(gpu, token, reason, lease_outcome::fine, now, out);
  }
  /// The lease holds for another `ttl`, at most to the end of its term. Refused past the term and,
  /// with the lease revoked, when it has been idle while others wait for such a GPU.
  lease_ack on_renew(uint32_t gpu, uint64_t token, std::chrono::nanoseconds idle,
    std::chrono::nanoseconds now, lease_actions& out);
  /// Only asks whether the lease still holds.
  lease_ack on_renew(uint32_t gpu, uint64_t token, std::chrono::nanoseconds now) const;

  /// Its requests are cancelled, its leases revoked.
  void on_holder_down(holder_id holder, std::chrono::nanoseconds now, lease_actions& out);

  /// The journal has stored the reservation.
  void on_block_reserved(
    uint32_t gpu, uint64_t last, std::chrono::nanoseconds now, lease_actions& out);

  /// Does what is due at `now`: withdrawals, expiries, missing renewals and answers, lost patience,
  /// GPUs never verified, the next probes, alarms.
  void on_tick(std::chrono::nanoseconds now, lease_actions& out);

  /// When `on_tick` has something to do next: the one timer that the actor needs.
  std::optional<std::chrono::nanoseconds> next_deadline() const;

  /// No grants from now on; waiters are told, leases run to their end. For the end of a run.
  void drain(const std::string& reason, std::chrono::nanoseconds now, lease_actions& out);

  /// Drains one GPU or all of them for maintenance (waiters go on waiting), or takes that back.
  /// `undrain` also makes a quarantined GPU suspect, so that a passed probe brings it back. False,
  /// naming the GPUs there are, for an unknown name.
  lease_ack on_broker_command(
    const broker_command& command, std::chrono::nanoseconds now, lease_actions& out);

  /// Nobody gets this GPU until a person undrains it or its node has started anew, and a probe
  /// passes: the step of the ladder when something is left after SIGKILL.
  void quarantine(
    uint32_t gpu, const std::string& reason, std::chrono::nanoseconds now, lease_actions& out);

  /// Tells the matrix of blame what an earlier start has seen. No line is written.
  void remember_failure(const std::string& candidate, const blame_failure& failure);

  gpu_phase phase(uint32_t gpu) const { return gpus_.at(gpu).phase; }
  /// Whether the lease of this token is the GPU's newest and not yet verified (or lost).
  bool in_use(uint32_t gpu, uint64_t token) const;
  std::optional<uint32_t> gpu_by_name(std::string_view name) const;
  size_t gpu_count() const { return gpus_.size(); }
  size_t waiting() const { return by_ticket_.size(); }

  /// All GPUs, alarms and usage; times count up to the newest `now` that the table was told.
  broker_snapshot snapshot() const { return snapshot({}, newest_now_); }
  /// With the first waiters in the order of service, as far as one can tell.
  broker_snapshot snapshot(const broker_query& query, std::chrono::nanoseconds now) const;
  const lease_policy& policy() const { return *policy_; }

  /// For tests: the first rule of the class that does not hold; nothing when all do.
  std::optional<std::string> broken_invariant() const;

private:
  using time = std::chrono::nanoseconds;

  struct slot {
    gpu_entry entry;
    gpu_attributes attributes;
    gpu_phase phase = gpu_phase::absent;
    /// When the phase began.
    time since{0};
    /// Of the current lease, else of the last; `entry.token_floor` before the first.
    uint64_t token = 0;
    /// The newest that this start has granted; `entry.token_floor` before the first.
    uint64_t newest = 0;
    uint64_t reserved_last = 0;
    bool reserving = false;
    /// False from a grant until its token was verified.
    bool verified = true;
    /// The lease is charged to its flow when it ends; false again once it has been.
    bool charge_due = false;
    /// `token` is that of a lease of this start or an adopted one, and not yet verified.
    bool leased = false;
    /// The executor has begun.
    bool started = false;
    /// Its outcome is known, so that it is blamed at most once.
    bool judged = false;
    /// It was seen doing nothing while others waited.
    bool idle_alarm = false;
    holder_id holder = 0;
    uint64_t request = 0;
    waiter who;
    /// Where the ledger finds the flow faster.
    uint32_t ledger_hint = flat_index::none;
    std::string attempt;
    std::string candidate;
    time granted_at{0};
    time term{0};
    time renewed_at{0};
    /// Of the phase: answer limit, expiry, verify limit, probe. Also in `gpu_deadlines_`.
    std::optional<time> deadline;

    std::string boot;
    /// Boot ids that it has had, newest last: a late report under one of them is stale.
    std::vector<std::string> boots_before;
    bool drained = false;
    std::string drain_reason;
    /// Why it needs a passed probe before anybody gets it; empty: it does not.
    std::string suspicion;
    /// The suspicion is of the matrix of blame, so the probe after the lease does not settle it.
    bool blamed = false;
    std::optional<time> blamed_at;
    /// Goes to quarantine, for this reason, as soon as its lease is verified.
    std::string condemned;
    /// An order is out.
    bool probing = false;
    uint32_t failed_probes = 0;
    uint32_t probes_without = 0;
    /// Its executor has gone while it was in quarantine.
    bool away = false;
    /// Why quarantined or lost.
    std::string why;
  };

  /// A slot, used again when the request has left the queue; its texts keep their memory.
  struct waiting_entry {
    holder_id holder = 0;
    uint64_t request = 0;
    waiter who;
    std::string attempt;
    std::string candidate;
    /// As asked for: `who.need` may exclude a GPU besides.
    std::string need;
    /// Raised when the request leaves.
    uint32_t version = 0;
    /// Neighbours in the order of tickets.
    uint32_t older = flat_index::none;
    uint32_t newer = flat_index::none;
    /// Neighbours among those whose candidates have hashes that end alike.
    uint32_t before_alike = flat_index::none;
    uint32_t after_alike = flat_index::none;
  };

  /// The last look ahead, and what has changed since. Only a cache.
  struct look {
    std::vector<forecast_place> places;
    std::map<uint64_t, size_t> by_ticket;
    /// Last place of each flow and how many it had.
    std::map<lease_flow, std::pair<forecast_place, uint32_t>> by_flow;
    time at{0};
    uint64_t changes = 0;
    bool valid = false;
  };

  /// A text of a need, and the number that it had when it came last.
  struct known_need {
    std::string text;
    need_id id = any_need;
    uint64_t stamp = 0;
  };

  struct flow_hash {
    size_t operator()(const lease_flow& flow) const {
      std::hash<std::string> hash;
      return mixed(hash(flow.problem)) + hash(flow.agent);
    }
  };

  /// In `by_request_`: the rest is a GPU that is held, not a slot of somebody who waits.
  static constexpr uint32_t held_bit = uint32_t{1} << 31;
  static constexpr uint32_t nobody = flat_index::none;

  // table.cpp
  time cap(lease_class what) const { return config_.caps[static_cast<size_t>(what)]; }
  time adoption_limit() const;
  /// Without `data`: with the boot id only.
  event gpu_event(const char* kind, uint32_t gpu, time now) const;
  event gpu_event(const char* kind, uint32_t gpu, time now, std::string data) const;
  event lease_event(const char* kind, uint32_t gpu, time now) const;
  event lease_event(const char* kind, uint32_t gpu, time now, std::string data) const;
  /// Makes the event with `make` and logs it; without `log_events` it is not even made.
  template <class Function>
  void log(Function make, lease_actions& out) const {
    if (!config_.log_events)
      return;
    auto& a = out.emplace_back();
    a.kind = lease_action_kind::log;
    a.entry = make();
  }
  void saw(time now) { newest_now_ = std::max(newest_now_, now); }
  void enter(uint32_t gpu, gpu_phase phase, std::optional<time> deadline, time now);
  void set_deadline(uint32_t gpu, std::optional<time> deadline);
  void update_free(uint32_t gpu);
  /// The GPUs that satisfy a need; remembered, because needs come and go.
  const gpu_set& gpus_for(const gpu_need& need, uint32_t excluded);
  /// Needs that the GPU satisfies, among those that have a number.
  need_set fits_of(uint32_t gpu) const;
  void ask_for_tokens(uint32_t gpu, time now, lease_actions& out);
  void on_gpu_deadline(uint32_t gpu, time now, lease_actions& out);

  // table_requests.cpp
  result<void> check_request(holder_id holder, const lease_request& request) const;
  /// The number of a need, with one more user, for a request with this candidate (or none).
  result<need_id> place_need(const std::string& text, const std::string& candidate);
  static uint64_t hash_of(holder_id holder, uint64_t request) {
    return mixed(mixed(holder) + request);
  }
  /// A slot that waits, a GPU with `held_bit`, or `nobody`.
  uint32_t find_request(holder_id holder, uint64_t request) const;
  uint32_t find_waiter(uint64_t ticket) const { return by_ticket_.find(mixed(ticket)); }
  uint32_t new_waiter();
  uint32_t& alike(const std::string& candidate);
  /// Enters the slot into every index but the policy's, and takes it out again.
  void add_waiter(uint32_t waiter);
  void forget_waiter(uint32_t waiter);
  void place_anew(const std::string& candidate, time now, lease_actions& out);
  /// Whom the policy names for a GPU of this group, as a slot; `nobody` for none.
  uint32_t pick(uint32_t gpu, need_set group, time now, lease_actions& out);
  void serve(time now, lease_actions& out);
  void grant(uint32_t gpu, uint32_t waiter, time now, lease_actions& out);
  void end_wait(
    uint32_t waiter, const std::string& reason, bool tell_holder, time now, lease_actions& out);

  // table_leases.cpp
  void revoke(uint32_t gpu, uint64_t token, const std::string& reason, lease_actions& out) const;
  void end_lease(uint32_t gpu, const char* kind, const std::string& reason, bool tell_holder,
    time now, lease_actions& out);
  void charge(uint32_t gpu, std::string_view reason, time now);
  void tell_holder_of(uint32_t gpu, const std::string& reason, lease_actions& out) const;
  lease_ack refuse_token(uint32_t gpu, uint64_t token, time now, lease_actions& out);
  std::optional<time> active_deadline(const slot& s) const;
  bool others_wait_for(uint32_t gpu) const;

  // table_health.cpp
  void settle(uint32_t gpu, std::optional<event> free_line, time now, lease_actions& out);
  void fence(uint32_t gpu, const std::string& reason, time now, lease_actions& out);
  void suspect(uint32_t gpu, time now, lease_actions& out);
  void order_probe(uint32_t gpu, time now, lease_actions& out);
  void after_probe(uint32_t gpu, const probe_report& probe, time now, lease_actions& out);
  void judge(uint32_t gpu, lease_outcome outcome, time now, lease_actions& out);
  std::string failures_text(const std::string& candidate) const;

  // table_snapshot.cpp
  const look& forecast(time now, bool exact) const;
  std::pair<uint32_t, time> place_of(const waiting_entry& w, time now) const;
  time hold_of(const waiter& who) const;
  std::vector<broker_alarm> alarms_now(time now) const;
  void look_for_alarms(time now, lease_actions& out);
  time median_wait() const;
  std::optional<std::string> broken_slot(uint32_t gpu) const;

  bool live(const slot& s) const {
    return s.phase == gpu_phase::granted || s.phase == gpu_phase::active;
  }
  bool ending(const slot& s) const {
    return s.phase == gpu_phase::releasing || s.phase == gpu_phase::verifying;
  }

  lease_table_config config_;
  std::unique_ptr<lease_policy> policy_;
  std::vector<slot> gpus_;
  need_index needs_;
  /// Waiters of each need, to know who waits for a kind of GPU.
  std::array<uint32_t, needs_max> waiting_by_need_{};
  /// Counted with `estimate_places` only, which needs it. Looked up, never walked through.
  std::unordered_map<lease_flow, uint32_t, flow_hash> waiting_by_flow_;
  /// GPUs that satisfy each need that has a number; what is left of a need that nobody has any more
  /// stays until the number is given away.
  std::array<gpu_set, needs_max> fitting_;
  /// Numbers that have been given to a need since the start.
  need_set numbers_used_ = 0;
  std::map<std::pair<gpu_need, uint32_t>, gpu_set> gpus_for_;
  std::array<known_need, 64> known_needs_;
  /// Free GPUs that have a token to give.
  gpu_set free_;
  /// Of `serve`: kept for their memory.
  gpu_set unserved_;
  gpu_set group_;

  std::vector<waiting_entry> waiters_;
  std::vector<uint32_t> vacant_waiters_;
  flat_index by_ticket_;
  uint32_t oldest_waiter_ = nobody;
  uint32_t newest_waiter_ = nobody;
  /// By asker and number: requests that wait, and GPUs that are granted or active.
  flat_index by_request_;
  /// First slots of chains by hash of the candidate, for those that turn out to be poison.
  std::array<uint32_t, 256> alike_;
  size_t with_candidate_ = 0;
  size_t held_ = 0;
  indexed_heap<time> gpu_deadlines_;
  lazy_queue<std::pair<time, uint64_t>> wait_deadlines_;
  uint64_t next_ticket_ = 1;
  uint64_t granted_total_ = 0;
  std::string draining_;
  time newest_now_{0};

  blame_matrix blame_;
  flow_ledger ledger_;
  alarm_board alarms_;
  std::optional<time> alarm_due_;
  /// The latest waits of those that were granted, as a ring.
  std::vector<time> recent_waits_;
  size_t next_wait_ = 0;

  mutable look look_;
  uint64_t changes_ = 0;
};

} // namespace gristmill
