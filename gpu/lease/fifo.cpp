#include "gpu/lease/policy.hpp"

#include <map>
#include <set>

namespace gristmill {

namespace {

/// Tickets grow, so the smallest waiting ticket is the oldest request.
class fifo_policy final : public lease_policy {
public:
  std::string_view name() const override { return "fifo"; }

  void on_request(const waiter& w) override {
    queues_[w.need].insert(w.ticket);
    needs_[w.ticket] = w.need;
  }

  void on_cancel(uint64_t ticket) override { remove(ticket); }
  void on_grant(uint64_t ticket, std::chrono::nanoseconds) override { remove(ticket); }
  void on_release(const lease_usage&, std::string_view) override {}

  std::optional<uint64_t> pick(need_id model, std::chrono::nanoseconds) const override {
    auto best = front(model);
    auto other = model == any_need ? std::nullopt : front(any_need);
    if (!best || (other && *other < *best))
      return other;
    return best;
  }

  // Who has used how much does not matter here, so there is nothing to keep.
  std::string save() const override { return "fifo 1\n"; }
  result<void> load(std::string_view text) override {
    if (text != "fifo 1\n")
      return fail(errc::invalid_input, "this is not the saved state of lease policy 'fifo'");
    return {};
  }

private:
  std::optional<uint64_t> front(need_id need) const {
    auto it = queues_.find(need);
    if (it == queues_.end() || it->second.empty())
      return std::nullopt;
    return *it->second.begin();
  }

  void remove(uint64_t ticket) {
    auto it = needs_.find(ticket);
    if (it == needs_.end())
      return;
    queues_[it->second].erase(ticket);
    needs_.erase(it);
  }

  std::map<need_id, std::set<uint64_t>> queues_;
  std::map<uint64_t, need_id> needs_;
};

} // namespace

std::unique_ptr<lease_policy> make_fifo_policy() {
  return std::make_unique<fifo_policy>();
}

} // namespace gristmill
