#include "simulation/core/lab_books.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

double seconds(__int128 ns) {
  return static_cast<double>(ns) * 1e-9;
}

} // namespace

lab_books::lab_books(time warm_up, time end, uint32_t curve_points)
  : warm_up_(warm_up), end_(end), next_point_(time::max()), points_(curve_points) {}

void lab_books::granted(time now, time since) {
  // `wait_ends` has integrated up to now.
  ++held_;
  ++leases_;
  if (now < warm_up_)
    return;
  ++grants_;
  waits_.add((now - since).count());
  if (on_wait)
    on_wait(now - since);
}

void lab_books::ended(time now, time granted_at, lease_outcome how) {
  if (now < warm_up_)
    return;
  ++ended_;
  hangs_ += how == lease_outcome::hang;
  faults_ += how == lease_outcome::fault;
  holds_.add((now - granted_at).count());
}

void lab_books::responded(time now, time asked_at) {
  if (now >= warm_up_)
    responses_.add((now - asked_at).count());
}

void lab_books::set_problems(const problem_set* problems) {
  problems_ = problems;
  next_point_ = end_ / points_;
}

void lab_books::add_points(time now) {
  while (now >= next_point_ && curve_.size() < points_) {
    integrate(next_point_);
    outcome_point point;
    point.time_s = seconds(next_point_.count());
    point.gpu_hours = seconds(taken_area_) / 3600;
    problems_->describe(point);
    curve_.push_back(point);
    const auto n = static_cast<__int128>(curve_.size() + 1);
    next_point_ = time{static_cast<int64_t>(n * end_.count() / points_)};
  }
  if (curve_.size() == points_)
    next_point_ = time::max();
}

lab_result lab_books::close(time now) {
  pass(now);
  lab_result out;
  out.digest = fmt::format("{:016x}", digest_);
  out.transitions = steps_;
  out.measured_s = seconds((now - warm_up_).count());
  out.requests = requests_;
  out.grants = grants_;
  out.ended = ended_;
  out.hangs = hangs_;
  out.faults = faults_;
  out.lost = lost_;
  out.given_up = given_up_;
  out.leases_total = leases_;
  out.waits = std::move(waits_);
  out.holds = std::move(holds_);
  out.responses = std::move(responses_);
  out.queue_area = seconds(queue_area_);
  out.system_area = seconds(system_area_);
  out.waited_s = seconds(waited_);
  out.held_s = seconds(held_sum_);
  out.thought_s = seconds(thought_);
  for (size_t i = 0; i < gpu_time_.size(); ++i)
    out.gpu_s[i] = seconds(gpu_time_[i]);
  out.curve = std::move(curve_);
  return out;
}

} // namespace gristmill
