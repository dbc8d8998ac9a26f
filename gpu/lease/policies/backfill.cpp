#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/policy_text.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

/// Oldest first, but a long lease at the head of the line (by default of class `profile`) lets
/// shorter ones by while that costs it nothing that it was promised.
///
/// When it becomes the oldest of all waiters it gets a reservation: the earliest time at which a
/// GPU that fits it is free even if every lease runs to its cap. On that GPU only what ends by its
/// cap before the reserved time goes first, on other GPUs anything younger; from the reserved time
/// on, or when there is nobody to let by, the next GPU that fits is its own. There is one
/// reservation at a time, so work behind it cannot starve. It rests on caps that are enforced.
///
/// Who may go first is looked for in two places only, so that it stays O(log n): the oldest of the
/// others, and the one with the smallest cap.
class backfill_policy final : public lease_policy {
public:
  backfill_policy(std::string name, lease_class long_class)
    : name_(std::move(name)), long_class_(long_class) {}

  std::string_view name() const override { return name_; }

  void on_request(const waiter& w) override {
    if (!waiting_.emplace(w.ticket, w).second)
      return;
    auto& q = queues_[w.need];
    q.all.insert(w.ticket);
    if (w.what != long_class_) {
      q.short_by_age.insert(w.ticket);
      q.short_by_cap.insert({w.cap, w.ticket});
    }
    reserve(w.arrived);
  }

  void on_cancel(uint64_t ticket) override {
    remove(ticket);
    reserve(latest_);
  }

  void on_grant(uint64_t ticket, uint32_t gpu, nanoseconds now) override {
    auto it = waiting_.find(ticket);
    if (it == waiting_.end())
      return;
    // What it fits is known from the last offer, and of a GPU never offered, that it fitted this.
    auto& g = gpus_[gpu];
    g.fits |= 1 | need_set{1} << it->second.need;
    g.ticket = ticket;
    g.free_at = now + it->second.cap;
    running_[ticket] = gpu;
    remove(ticket);
    reserve(now);
  }

  void on_release(const lease_usage& usage, std::string_view, nanoseconds now) override {
    auto it = running_.find(usage.ticket);
    if (it == running_.end())
      return;
    if (auto& g = gpus_[it->second]; g.ticket == usage.ticket)
      g.ticket.reset();
    running_.erase(it);
    reserve(now);
  }

  std::optional<uint64_t> pick(const gpu_offer& offer, nanoseconds now) override {
    auto& g = gpus_[offer.gpu];
    g.fits = offer.fits;
    auto oldest = first_of(offer.fits, UINT64_MAX,
      [](const need_queue& q) { return q.all.empty() ? UINT64_MAX : *q.all.begin(); });
    if (oldest == UINT64_MAX)
      return std::nullopt;
    if (!reservation_ || reservation_->ticket != oldest || now >= reservation_->start)
      return oldest;
    auto limit = reservation_->gpu == offer.gpu ? reservation_->start - now : nanoseconds::max();
    auto next = first_of(offer.fits, UINT64_MAX, [](const need_queue& q) {
      return q.short_by_age.empty() ? UINT64_MAX : *q.short_by_age.begin();
    });
    if (next == UINT64_MAX || waiting_.at(next).cap <= limit)
      return next == UINT64_MAX ? oldest : next;
    by_cap none{nanoseconds::max(), UINT64_MAX};
    auto shortest = first_of(offer.fits, none,
      [&](const need_queue& q) { return q.short_by_cap.empty() ? none : *q.short_by_cap.begin(); });
    return shortest.first <= limit ? shortest.second : oldest;
  }

  std::unique_ptr<lease_policy> clone() const override {
    return std::make_unique<backfill_policy>(*this);
  }

  // Reservations are of waiters, and those are not part of the state.
  std::string save() const override { return name_ + " 1\n"; }
  result<void> load(std::string_view text) override {
    if (!waiting_.empty() || !running_.empty())
      return fail(
        errc::refused, "the state of lease policy '" + name_ + "' is loaded before any request");
    if (text != save())
      return fail(
        errc::invalid_input, "this is not the saved state of lease policy '" + name_ + "'");
    return {};
  }

private:
  using by_cap = std::pair<nanoseconds, uint64_t>;

  struct need_queue {
    std::set<uint64_t> all;
    std::set<uint64_t> short_by_age;
    std::set<by_cap> short_by_cap;
  };

  struct gpu_state {
    need_set fits = 1;
    /// Of the lease that runs on it, which ends at `free_at` at the latest.
    std::optional<uint64_t> ticket;
    nanoseconds free_at{0};
  };

  struct promise {
    uint64_t ticket = 0;
    uint32_t gpu = 0;
    nanoseconds start{0};
  };

  /// The smallest `value` of the queues that fit, or `best`.
  template <class Value, class Function>
  Value first_of(need_set fits, Value best, Function value) const {
    for (const auto& [need, q] : queues_)
      if ((fits >> need & 1) != 0)
        best = std::min(best, value(q));
    return best;
  }

  void remove(uint64_t ticket) {
    auto it = waiting_.find(ticket);
    if (it == waiting_.end())
      return;
    const auto& w = it->second;
    auto q = queues_.find(w.need);
    q->second.all.erase(ticket);
    q->second.short_by_age.erase(ticket);
    q->second.short_by_cap.erase({w.cap, ticket});
    if (q->second.all.empty())
      queues_.erase(q);
    waiting_.erase(it);
  }

  /// After every event: promises the oldest waiter a start, once, when it is a long one.
  void reserve(nanoseconds now) {
    latest_ = std::max(latest_, now);
    if (waiting_.empty()) {
      reservation_.reset();
      return;
    }
    const auto& [ticket, w] = *waiting_.begin();
    if (reservation_ && reservation_->ticket == ticket)
      return;
    reservation_.reset();
    if (w.what != long_class_)
      return;
    std::optional<std::pair<nanoseconds, uint32_t>> first;
    for (const auto& [gpu, g] : gpus_)
      if (g.ticket && (g.fits >> w.need & 1) != 0)
        first = std::min(
          first.value_or(std::pair{nanoseconds::max(), UINT32_MAX}), std::pair{g.free_at, gpu});
    // With no GPU that is known to fit, the next one that does is its own.
    reservation_ = promise{ticket, first ? first->second : UINT32_MAX,
      first ? std::max(first->first, latest_) : latest_};
  }

  std::string name_;
  lease_class long_class_;
  std::map<uint64_t, waiter> waiting_;
  std::map<need_id, need_queue> queues_;
  std::map<uint32_t, gpu_state> gpus_;
  std::map<uint64_t, uint32_t> running_;
  std::optional<promise> reservation_;
  nanoseconds latest_{0};
};

} // namespace

policy_kind backfill_kind() {
  policy_kind out;
  out.name = "backfill";
  out.what = "oldest first; short leases pass a long one that keeps its reserved start";
  out.place = policy_place::alone;
  out.parameters = {{"class", value_kind::text, "profile", "whose leases are the long ones"}};
  out.make_policy = [](const policy_values& v) -> result<std::unique_ptr<lease_policy>> {
    std::vector<std::string> known;
    for (int i = 0; i <= static_cast<int>(lease_class::official); ++i) {
      known.push_back(to_string(static_cast<lease_class>(i)));
      if (known.back() == v.text("class"))
        return std::make_unique<backfill_policy>(
          known.back() == "profile" ? "backfill" : "backfill(class=" + known.back() + ")",
          static_cast<lease_class>(i));
    }
    return fail(errc::invalid_input,
      "lease policy 'backfill': there is no class '" + shown(v.text("class")) + "'"
        + known_choices(v.text("class"), known));
  };
  return out;
}

} // namespace gristmill
