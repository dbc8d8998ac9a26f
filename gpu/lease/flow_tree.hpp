#pragma once

#include "gpu/lease/flat_index.hpp"
#include "gpu/lease/flow_rule.hpp"
#include "gpu/lease/indexed_heap.hpp"
#include "gpu/lease/lazy_queue.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// What makes two waiters one flow.
enum class flow_part : uint8_t { klass = 0, problem, agent };

/// "class", "problem", "agent".
std::string to_string(flow_part part);

/// One level of a tree of policies: a rule orders the flows, and a policy of each flow's own orders
/// what waits in it. All of a level's work is O(log n) in flows and waiters, times the needs that a
/// flow waits for.
class flow_tree final : public lease_policy {
public:
  using child_factory = std::function<std::unique_ptr<lease_policy>()>;

  /// `label` is what `name` answers. Without `make_child` the requests of a flow are served oldest
  /// first: what a fifo of its own would do, at less than half the cost.
  flow_tree(std::string label, flow_part by, std::shared_ptr<const flow_rule> rule,
    std::shared_ptr<const child_factory> make_child);

  std::string_view name() const override { return label_; }
  void on_request(const waiter& w) override;
  void on_cancel(uint64_t ticket) override;
  void on_grant(uint64_t ticket, uint32_t gpu, std::chrono::nanoseconds now) override;
  void on_release(
    const lease_usage& usage, std::string_view reason, std::chrono::nanoseconds now) override;
  std::optional<uint64_t> pick(const gpu_offer& offer, std::chrono::nanoseconds now) override;
  std::unique_ptr<lease_policy> clone() const override;
  std::string save() const override;
  result<void> load(std::string_view text) override;

private:
  /// A policy that is copied with its owner.
  struct child_policy {
    std::unique_ptr<lease_policy> policy;

    child_policy() = default;
    child_policy(const child_policy& other)
      : policy(other.policy ? other.policy->clone() : nullptr) {}
    child_policy(child_policy&&) = default;
    child_policy& operator=(child_policy&&) = default;
  };

  /// The waiters of a flow with one need, oldest first: ticket and time of arrival.
  struct need_queue {
    need_id need = any_need;
    lazy_queue<std::pair<uint64_t, std::chrono::nanoseconds>> tickets;
  };

  /// There may be very many, nearly all of them idle, so this is small and what an idle one does
  /// not need stands in a `busy_flow`.
  struct flow_entry {
    std::string name;
    /// Empty without `make_child_`.
    child_policy child;
    /// Its place in `busy_`; none while nothing waits and nothing runs.
    uint32_t busy = flat_index::none;
    bool used = false;
    flow_account account;
  };

  /// Of a flow that has somebody who waits or runs.
  struct busy_flow {
    uint32_t flow = 0;
    uint32_t waiting = 0;
    uint32_t running = 0;
    /// At most one a need; an empty one stays for the next waiter with the like, and for the next
    /// flow that gets this place.
    std::vector<need_queue> queues;
  };

  struct ticket_entry {
    uint32_t flow = 0;
    need_id need = any_need;
    /// Raised when it leaves the queue of its flow.
    uint32_t version = 0;
    bool running = false;
    flow_lease lease;
  };

  /// Busy flows that have a waiter with the need, first one first.
  struct need_order {
    need_id need = any_need;
    indexed_heap<flow_key> flows;
  };

  /// The smaller key goes first, equal ones by name.
  auto goes_before() const {
    return [this](const flow_key& a, uint32_t busy_a, const flow_key& b, uint32_t busy_b) {
      return a == b ? name_of(busy_a) < name_of(busy_b) : a < b;
    };
  }

  std::string_view flow_of(const waiter& w) const;
  std::string header() const;
  const std::string& name_of(uint32_t busy) const { return flows_[busy_[busy].flow].name; }
  bool idle(const flow_entry& f) const { return f.busy == flat_index::none; }
  /// The place of a flow in `busy_`, which it gets when it has none.
  uint32_t busy_place(uint32_t flow);
  /// Gives the place back when nothing waits and nothing runs any more.
  void rest(uint32_t flow);
  uint32_t find_flow(std::string_view name) const;
  uint32_t flow_named(std::string_view name);
  void forget_flow(uint32_t flow);
  uint32_t find_ticket(uint64_t ticket) const { return by_ticket_.find(mixed(ticket)); }
  void forget_ticket(uint64_t ticket, uint32_t slot);
  static need_queue& queue_of(busy_flow& f, need_id need);
  indexed_heap<flow_key>& order_of(need_id need);
  void leave_queue(ticket_entry& ticket);
  /// Puts the flow where it belongs after its account or its oldest waiter changed.
  void reorder(uint32_t flow);
  void forget_idle_flows();
  /// Numbers of all flows, by name.
  std::vector<uint32_t> sorted_flows() const;

  std::string label_;
  flow_part by_;
  std::shared_ptr<const flow_rule> rule_;
  std::shared_ptr<const child_factory> make_child_;
  level_clock clock_;
  /// Flows and tickets stand in slots that are used again.
  std::vector<flow_entry> flows_;
  std::vector<uint32_t> vacant_flows_;
  /// Used again at once, so that it is short and its queues keep their memory.
  std::vector<busy_flow> busy_;
  std::vector<uint32_t> vacant_busy_;
  flat_index by_name_;
  std::vector<ticket_entry> tickets_;
  std::vector<uint32_t> vacant_tickets_;
  flat_index by_ticket_;
  std::vector<need_order> ready_;
  size_t sweep_at_ = 4096;
};

} // namespace gristmill
