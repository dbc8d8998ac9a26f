#pragma once

#include "gpu/lease/flow_rule.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

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

  /// `label` is what `name` answers.
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

  /// The waiters of a flow with one need, and where the flow stands in the order for it.
  struct need_queue {
    std::map<uint64_t, std::chrono::nanoseconds> tickets;
    flow_key key;
  };

  struct flow_entry {
    flow_account account;
    child_policy child;
    std::map<need_id, need_queue> waiting;
    uint64_t running = 0;
  };

  struct ticket_entry {
    std::string flow;
    need_id need = any_need;
    flow_lease lease;
    bool running = false;
  };

  using flow_map = std::map<std::string, flow_entry, std::less<>>;

  std::string flow_of(const waiter& w) const;
  std::string header() const;
  flow_map::iterator flow_named(const std::string& name);
  void leave_queue(flow_map::iterator flow, uint64_t ticket, need_id need);
  /// Puts the flow where it belongs after its account or its oldest waiter changed.
  void reorder(flow_map::iterator flow);
  void forget_idle_flows();

  std::string label_;
  flow_part by_;
  std::shared_ptr<const flow_rule> rule_;
  std::shared_ptr<const child_factory> make_child_;
  level_clock clock_;
  flow_map flows_;
  /// Flows that have a waiter with the need, first one first.
  std::map<need_id, std::set<std::pair<flow_key, std::string>>> ready_;
  /// Looked up only, never walked through.
  std::unordered_map<uint64_t, ticket_entry> tickets_;
  size_t sweep_at_ = 4096;
};

} // namespace gristmill
