#pragma once

#include "gpu/lease/flow_rule.hpp"

#include <map>
#include <set>
#include <string>

namespace gristmill {

/// A policy that orders the requests themselves, by a number that is fixed when they arrive; equal
/// ones by age. Who has used how much does not matter, so there is nothing to keep over a restart.
class ranked_policy : public lease_policy {
public:
  explicit ranked_policy(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }

  void on_request(const waiter& w) override {
    place at{w.need, {rank(w), w.ticket}};
    if (places_.emplace(w.ticket, at).second)
      queues_[w.need].insert(at.key);
  }

  void on_cancel(uint64_t ticket) override { remove(ticket); }
  void on_grant(uint64_t ticket, uint32_t, std::chrono::nanoseconds) override { remove(ticket); }
  void on_release(const lease_usage&, std::string_view, std::chrono::nanoseconds) override {}

  std::optional<uint64_t> pick(const gpu_offer& offer, std::chrono::nanoseconds) override {
    const flow_key* best = nullptr;
    for (const auto& [need, queue] : queues_)
      if ((offer.fits >> need & 1) != 0 && (best == nullptr || *queue.begin() < *best))
        best = &*queue.begin();
    return best == nullptr ? std::nullopt : std::optional{best->minor};
  }

  std::string save() const override { return name_ + " 1\n"; }
  result<void> load(std::string_view text) override {
    if (!places_.empty())
      return fail(
        errc::refused, "the state of lease policy '" + name_ + "' is loaded before any request");
    if (text != save())
      return fail(
        errc::invalid_input, "this is not the saved state of lease policy '" + name_ + "'");
    return {};
  }

protected:
  /// The smallest goes first.
  virtual wide rank(const waiter& w) const = 0;

private:
  struct place {
    need_id need = any_need;
    flow_key key;
  };

  void remove(uint64_t ticket) {
    auto it = places_.find(ticket);
    if (it == places_.end())
      return;
    auto queue = queues_.find(it->second.need);
    queue->second.erase(it->second.key);
    if (queue->second.empty())
      queues_.erase(queue);
    places_.erase(it);
  }

  std::string name_;
  std::map<need_id, std::set<flow_key>> queues_;
  std::map<uint64_t, place> places_;
};

} // namespace gristmill
