#pragma once

#include "gpu/lease/flat_index.hpp"
#include "gpu/lease/flow_rule.hpp"
#include "gpu/lease/lazy_queue.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace gristmill {

/// A policy that orders the requests themselves, by a number that is fixed when they arrive; equal
/// ones by age. Who has used how much does not matter, so there is nothing to keep over a restart.
class ranked_policy : public lease_policy {
public:
  explicit ranked_policy(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }

  void on_request(const waiter& w) override {
    if (by_ticket_.find(mixed(w.ticket)) != flat_index::none)
      return;
    auto slot = static_cast<uint32_t>(places_.size());
    if (vacant_.empty()) {
      places_.emplace_back();
    } else {
      slot = vacant_.back();
      vacant_.pop_back();
    }
    auto& at = places_[slot];
    at.queue = queue_of(w.need);
    by_ticket_.insert(mixed(w.ticket), slot);
    queues_[at.queue].waiting.push({{rank(w), w.ticket}, slot, at.version});
  }

  void on_cancel(uint64_t ticket) override { remove(ticket); }
  void on_grant(uint64_t ticket, uint32_t, std::chrono::nanoseconds) override { remove(ticket); }
  void on_release(const lease_usage&, std::string_view, std::chrono::nanoseconds) override {}

  std::optional<uint64_t> pick(const gpu_offer& offer, std::chrono::nanoseconds) override {
    const flow_key* best = nullptr;
    for (const auto& [need, waiting] : queues_)
      if ((offer.fits >> need & 1) != 0 && !waiting.empty()
        && (best == nullptr || waiting.front().key < *best))
        best = &waiting.front().key;
    return best == nullptr ? std::nullopt : std::optional{best->minor};
  }

  std::string save() const override { return name_ + " 1\n"; }
  result<void> load(std::string_view text) override {
    if (by_ticket_.size() != 0)
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
  /// Of one waiter, used again when it has left.
  struct place {
    uint32_t queue = 0;
    uint32_t version = 0;
  };

  struct need_queue {
    need_id need = any_need;
    lazy_queue<flow_key> waiting;
  };

  // At most `needs_max`, mostly one; an empty one stays for the next who needs the like.
  uint32_t queue_of(need_id need) {
    uint32_t i = 0;
    while (i < queues_.size() && queues_[i].need != need)
      ++i;
    if (i == queues_.size())
      queues_.push_back({need, {}});
    return i;
  }

  void remove(uint64_t ticket) {
    auto slot = by_ticket_.find(mixed(ticket));
    if (slot == flat_index::none)
      return;
    by_ticket_.erase(mixed(ticket), slot);
    auto& at = places_[slot];
    ++at.version;
    vacant_.push_back(slot);
    queues_[at.queue].waiting.removed(
      [&](const auto& e) { return places_[e.slot].version == e.version; });
  }

  std::string name_;
  std::vector<need_queue> queues_;
  std::vector<place> places_;
  std::vector<uint32_t> vacant_;
  flat_index by_ticket_;
};

} // namespace gristmill
