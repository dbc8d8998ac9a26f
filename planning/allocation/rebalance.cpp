#include "planning/allocation/rebalance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gristmill {

rebalance::rebalance(const allocation_settings& settings, uint32_t problems)
  : settings_(settings), curves_(problems), equal_(problems, settings.by_attempts),
    gated_(problems, settings.by_attempts) {
  for (problem_index p = 0; p < problems; ++p)
    score(p);
}

void rebalance::enter(problem_index p) {
  const auto& c = curves_[p];
  if (!c.eligible)
    return;
  if (c.gated) {
    gated_.insert(p);
    return;
  }
  equal_.insert(p);
  rising_.insert({-c.score, p});
}

void rebalance::leave(problem_index p) {
  equal_.erase(p);
  gated_.erase(p);
  rising_.erase({-curves_[p].score, p});
}

void rebalance::score(problem_index p) {
  auto& c = curves_[p];
  auto has = given(p);
  if (has == 0) {
    c.score = std::numeric_limits<double>::infinity();
    return;
  }
  auto start = window_start(p);
  while (c.start_step < c.steps.size() && c.steps[c.start_step].first <= start)
    c.before = c.steps[c.start_step++].second;
  // Half of the attempts, not rounded: one attempt more always costs something.
  double cost = (has + 1.0) / 2;
  if (!settings_.by_attempts && c.finished > 0)
    cost *= std::max(static_cast<double>(equal_.of(p).gpu_ns) * 1e-9 / c.finished, 1e-9);
  c.score = (c.total - c.before + settings_.prior) / cost;
}

void rebalance::on_eligible(problem_index problem, bool eligible) {
  leave(problem);
  curves_[problem].eligible = eligible;
  enter(problem);
}

void rebalance::on_given(problem_index problem) {
  leave(problem);
  for (auto* queue : {&equal_, &gated_})
    queue->change(problem, [](share_queue::use& u) {
      ++u.in_flight;
      ++u.given;
    });
  ++slots_;
  score(problem);
  enter(problem);
}

void rebalance::on_finished(problem_index problem, const attempt_gain& brought) {
  leave(problem);
  for (auto* queue : {&equal_, &gated_})
    queue->change(problem, [&](share_queue::use& u) {
      u.in_flight -= u.in_flight > 0 ? 1 : 0;
      u.gpu_ns += brought.gpu_ns;
    });
  auto& c = curves_[problem];
  ++c.finished;
  if (brought.log_gain > 0 && std::isfinite(brought.log_gain)) {
    c.total += brought.log_gain;
    c.steps.emplace_back(c.finished, c.total);
  }
  score(problem);
  enter(problem);
}

void rebalance::on_headroom(problem_index problem, double log_headroom) {
  bool gated = std::isfinite(log_headroom) && log_headroom < settings_.gate;
  if (gated == curves_[problem].gated)
    return;
  leave(problem);
  curves_[problem].gated = gated;
  enter(problem);
}

bool rebalance::next_is_floor() const {
  auto n = static_cast<double>(slots_);
  // The slots of the floor lie evenly among the others.
  return std::floor((n + 1) * settings_.floor) > std::floor(n * settings_.floor);
}

allocation_pick rebalance::picked(problem_index p, allocation_rule rule) const {
  const auto& u = equal_.of(p);
  allocation_pick out;
  out.problem = p;
  out.why = {rule, u.in_flight, u.given, equal_.counted_ns(p)};
  if (rule == allocation_rule::rising) {
    out.why.gain = curves_[p].total - curves_[p].before;
    out.why.window = u.given - window_start(p);
  }
  out.why.gated = static_cast<uint32_t>(gated_.size());
  return out;
}

std::optional<allocation_pick> rebalance::pick(std::chrono::nanoseconds) const {
  if (equal_.empty() && gated_.empty())
    return std::nullopt;
  if (equal_.empty())
    return picked(gated_.first(), allocation_rule::all_gated);
  if (next_is_floor())
    return picked(equal_.first(), allocation_rule::floor_share);
  return picked(rising_.begin()->second, allocation_rule::rising);
}

} // namespace gristmill
