#include "simulation/selfcheck/queue_watch.hpp"

#include "simulation/model/counter_stream.hpp"
#include "simulation/selfcheck/wrapped_policy.hpp"

#include <algorithm>

namespace gristmill {

using std::chrono::nanoseconds;

class queue_watch::watched final : public wrapped_policy {
public:
  watched(queue_watch& watch, std::unique_ptr<lease_policy> inner)
    : wrapped_policy(std::move(inner)), watch_(watch) {}

  void on_request(const waiter& w) override {
    watch_.advance(w.arrived);
    watch_.waiting_.emplace(w.ticket, w);
    wrapped_policy::on_request(w);
  }

  // The table does not say when; what is cancelled counts as waiting until the next event.
  void on_cancel(uint64_t ticket) override {
    watch_.waiting_.erase(ticket);
    wrapped_policy::on_cancel(ticket);
  }

  void on_grant(uint64_t ticket, uint32_t gpu, nanoseconds now) override {
    watch_.advance(now);
    auto node = watch_.waiting_.extract(ticket);
    const auto& w = node.mapped();
    for (auto* each : {&watch_.by_class_.at(size_t(w.what)), &watch_.by_problem_[w.flow.problem]}) {
      ++each->grants;
      if (now < watch_.from_)
        continue;
      ++each->measured;
      each->waited += now - w.arrived;
    }
    watch_.leased_.insert(std::move(node));
    ++watch_.held_;
    wrapped_policy::on_grant(ticket, gpu, now);
  }

  void on_release(const lease_usage& usage, std::string_view reason, nanoseconds now) override {
    watch_.advance(now);
    const auto it = watch_.leased_.find(usage.ticket);
    const auto& w = it->second;
    for (auto* each : {&watch_.by_class_.at(size_t(w.what)), &watch_.by_problem_[w.flow.problem]}) {
      each->held += usage.held;
      each->longest_held = std::max(each->longest_held, usage.held);
    }
    watch_.ends_s_.at(size_t(w.what)) += seconds_of(now);
    watch_.leased_.erase(it);
    --watch_.held_;
    wrapped_policy::on_release(usage, reason, now);
    if (watch_.on_release)
      watch_.on_release(watch_);
  }

private:
  queue_watch& watch_;
};

std::unique_ptr<lease_policy> queue_watch::before(std::unique_ptr<lease_policy> policy) {
  return std::make_unique<watched>(*this, std::move(policy));
}

void queue_watch::advance(nanoseconds now) {
  if (now <= newest_)
    return;
  const double passed = seconds_of(now - std::max(newest_, std::min(from_, now)));
  newest_ = now;
  const auto waiting = static_cast<uint32_t>(waiting_.size());
  waiting_area_s_ += passed * waiting;
  idle_s_ += passed * std::min(waiting, gpus_ - std::min(held_, gpus_));
}

} // namespace gristmill
