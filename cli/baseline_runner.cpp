#include "cli/baseline_runner.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Importing torch, without a lease.
constexpr seconds ready_limit{180};

} // namespace

baseline_runner::baseline_runner(
  baseline_runner_config config, std::optional<baseline_leases> leases)
  : config_(std::move(config)), leases_(std::move(leases)),
    until_(std::chrono::steady_clock::now() + config_.deadline) {}

void baseline_runner::prepare(const baseline_task& task) {
  next_file_ = task.job_file;
  next_ = baseline_child::start(config_.python, config_.script, task.job_file, config_.log);
}

ordered_json baseline_runner::run(const baseline_task& task, const baseline_task* following) {
  if (next_file_ != task.job_file)
    prepare(task);
  auto child = std::move(next_);
  next_file_.clear();
  if (!child)
    return failed(child.error());
  if (auto ready = (*child)->await_ready(ready_limit); !ready)
    return failed(ready.error());
  if (following)
    prepare(*following);
  if (!leases_)
    return answer_of((*child)->measure("", config_.mode_limit));
  auto lease = leases_->acquire("baseline " + task.problem + " " + task.mode,
    std::min<nanoseconds>(config_.mode_limit + seconds{30}, lease_cap));
  if (!lease)
    return failed(lease.error());
  auto answer = (*child)->measure(lease->visible(), config_.mode_limit);
  child->reset(); // Nothing of it may be left when the lease ends.
  (void)lease->release(
    answer ? lease_outcome::fine : lease_outcome::fault, answer ? "measured" : answer.error().what);
  return answer_of(std::move(answer));
}

ordered_json baseline_runner::answer_of(result<ordered_json> answer) const {
  return answer ? std::move(*answer) : failed(answer.error());
}

ordered_json baseline_runner::failed(const failure& why) const {
  return {{"status", "failed"},
    {"reason",
      why.code == errc::timed_out ? "over the limit of " + config_.mode_limit_text
                                  : why.what + "; see " + config_.log}};
}

} // namespace gristmill
