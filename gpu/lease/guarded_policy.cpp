#include "gpu/lease/guarded_policy.hpp"

#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

/// Not yet taken by `take_failures`.
constexpr size_t failures_max = 64;

class guarded_policy final : public lease_policy {
public:
  explicit guarded_policy(std::unique_ptr<lease_policy> own)
    : own_(std::move(own)), fifo_(make_fifo_policy()) {}

  std::string_view name() const override { return own_->name(); }

  void on_request(const waiter& w) override {
    if (running_.contains(w.ticket) || !waiting_.emplace(w.ticket, w.need).second)
      return;
    fifo_->on_request(w);
    own_->on_request(w);
  }

  void on_cancel(uint64_t ticket) override {
    if (waiting_.erase(ticket) == 0)
      return;
    fifo_->on_cancel(ticket);
    own_->on_cancel(ticket);
  }

  void on_grant(uint64_t ticket, uint32_t gpu, nanoseconds now) override {
    if (waiting_.erase(ticket) == 0)
      return;
    running_.insert(ticket);
    fifo_->on_grant(ticket, gpu, now);
    own_->on_grant(ticket, gpu, now);
  }

  void on_release(const lease_usage& usage, std::string_view reason, nanoseconds now) override {
    if (running_.erase(usage.ticket) != 0)
      own_->on_release(usage, reason, now);
  }

  std::optional<uint64_t> pick(const gpu_offer& offer, nanoseconds now) override {
    auto oldest = fifo_->pick(offer, now);
    if (!oldest)
      return std::nullopt;
    auto chosen = own_->pick(offer, now);
    auto it = chosen ? waiting_.find(*chosen) : waiting_.end();
    if (it != waiting_.end() && (offer.fits >> it->second & 1) != 0)
      return chosen;
    if (failures_.size() < failures_max)
      failures_.push_back(!chosen
          ? fmt::format("lease policy '{}' names nobody, although ticket {} waits", name(), *oldest)
          : fmt::format("lease policy '{}' names ticket {}, which {}", name(), *chosen,
            it == waiting_.end() ? "does not wait" : "this GPU does not fit"));
    return oldest;
  }

  std::unique_ptr<lease_policy> clone() const override {
    auto own = own_->clone();
    if (!own)
      return nullptr;
    auto out = std::make_unique<guarded_policy>(std::move(own));
    out->fifo_ = fifo_->clone();
    out->waiting_ = waiting_;
    out->running_ = running_;
    return out;
  }

  std::string save() const override { return own_->save(); }

  result<void> load(std::string_view text) override {
    if (!waiting_.empty() || !running_.empty())
      return fail(errc::refused,
        fmt::format("the state of lease policy '{}' is loaded before any request", name()));
    return own_->load(text);
  }

  std::vector<std::string> take_failures() override {
    auto out = std::exchange(failures_, {});
    for (auto& what : own_->take_failures())
      out.push_back(std::move(what));
    return out;
  }

private:
  std::unique_ptr<lease_policy> own_;
  std::unique_ptr<lease_policy> fifo_;
  std::map<uint64_t, need_id> waiting_;
  std::set<uint64_t> running_;
  std::vector<std::string> failures_;
};

} // namespace

std::unique_ptr<lease_policy> make_guarded_policy(std::unique_ptr<lease_policy> own) {
  return std::make_unique<guarded_policy>(std::move(own));
}

} // namespace gristmill
