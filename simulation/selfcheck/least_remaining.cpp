#include "simulation/selfcheck/least_remaining.hpp"

#include "simulation/model/counter_stream.hpp"

#include <queue>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

struct unfinished {
  nanoseconds left{0};
  size_t job = 0;
  bool operator>(const unfinished& other) const {
    return left != other.left ? left > other.left : job > other.job;
  }
};

} // namespace

double least_remaining_mean(const std::vector<job_size>& jobs, size_t skipped) {
  std::priority_queue<unfinished, std::vector<unfinished>, std::greater<>> alive;
  nanoseconds now{0};
  double sum = 0;
  const auto work_until = [&](nanoseconds end) {
    while (!alive.empty() && now < end) {
      auto running = alive.top();
      alive.pop();
      if (now + running.left > end) {
        running.left -= end - now;
        alive.push(running);
        break;
      }
      now += running.left;
      if (running.job >= skipped)
        sum += seconds_of(now - jobs[running.job].arrived);
    }
    now = std::max(now, end);
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    work_until(jobs[i].arrived);
    alive.push({jobs[i].work, i});
  }
  while (!alive.empty())
    work_until(now + alive.top().left);
  return jobs.size() > skipped ? sum / double(jobs.size() - skipped) : 0;
}

} // namespace gristmill
