#include "gpu/children/child_loop.hpp"

#include "gpu/children/child_process.hpp"

#include <algorithm>
#include <cassert>
#include <csignal>
#include <deque>
#include <fmt/format.h>
#include <mutex>
#include <poll.h>
#include <set>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace gristmill {

namespace {

using clock = std::chrono::steady_clock;

/// How often the loop looks whether a killed group is gone.
constexpr std::chrono::milliseconds group_check_interval{2};

struct waiting_child {
  child_request request;
  child_loop::callback answer;
};

struct running_child {
  child_process process;
  child_loop::callback answer;
};

child_result refusal(uint64_t id, child_end end, std::string log) {
  child_result answer;
  answer.id = id;
  answer.end = end;
  answer.log = std::move(log);
  return answer;
}

} // namespace

class child_loop::impl {
public:
  explicit impl(child_loop_limits limits)
    : limits_(std::move(limits)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    thread_ = std::thread([this] { run(); });
  }

  ~impl() {
    stop();
    close(wake_);
  }

  result<void> submit(child_request request, callback answer) {
    if (request.argv.empty() || request.nonce.empty() || request.job_directory.empty()
      || request.deadline.count() <= 0)
      return fail(errc::invalid_input,
        fmt::format(
          "child {}: needs a command, a nonce, a job directory and a deadline", request.id));
    if (limits_.parallel[static_cast<size_t>(request.profile)] == 0)
      return fail(errc::invalid_input,
        fmt::format(
          "child {}: no child of profile {} may run here", request.id, to_string(request.profile)));
    {
      std::lock_guard guard(mutex_);
      if (stopping_)
        return fail(errc::shutting_down, "no child is started any more");
      if (waiting_.size() >= limits_.waiting_max)
        return fail(errc::queue_full, fmt::format("{} children are waiting", waiting_.size()));
      if (!ids_.insert(request.id).second)
        return fail(errc::invalid_input, fmt::format("child {} exists already", request.id));
      waiting_.push_back({std::move(request), std::move(answer)});
    }
    wake();
    return {};
  }

  void cancel(uint64_t id) {
    {
      std::lock_guard guard(mutex_);
      if (!ids_.contains(id))
        return;
      cancelled_.insert(id);
    }
    wake();
  }

  void terminate(uint64_t id) {
    {
      std::lock_guard guard(mutex_);
      if (!ids_.contains(id))
        return;
      const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
        [id](const auto& child) { return child.request.id == id; });
      (waits ? cancelled_ : terminated_).insert(id);
    }
    wake();
  }

  void stop() {
    assert(std::this_thread::get_id() != thread_.get_id());
    {
      std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    wake();
    std::lock_guard guard(join_mutex_);
    if (thread_.joinable())
      thread_.join();
  }

private:
  void wake() {
    const uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
  }

  void answer(const callback& to, child_result with) {
    {
      std::lock_guard guard(mutex_);
      ids_.erase(with.id);
      cancelled_.erase(with.id);
      terminated_.erase(with.id);
    }
    to(std::move(with));
  }

  size_t running_of(child_profile profile) const {
    return static_cast<size_t>(std::count_if(running_.begin(), running_.end(),
      [&](const auto& child) { return child.process.request().profile == profile; }));
  }

  /// Takes out of the queue what was cancelled, and the first child whose profile has room.
  bool take_next(std::vector<waiting_child>& dropped, waiting_child& next) {
    std::lock_guard guard(mutex_);
    for (auto i = waiting_.begin(); i != waiting_.end();) {
      if (stopping_ || cancelled_.contains(i->request.id)) {
        dropped.push_back(std::move(*i));
        i = waiting_.erase(i);
        continue;
      }
      const auto profile = i->request.profile;
      if (running_of(profile) < limits_.parallel[static_cast<size_t>(profile)]) {
        next = std::move(*i);
        waiting_.erase(i);
        return true;
      }
      ++i;
    }
    return false;
  }

  void start_waiting() {
    for (;;) {
      std::vector<waiting_child> dropped;
      waiting_child next;
      const bool found = take_next(dropped, next);
      for (auto& one : dropped)
        answer(one.answer, refusal(one.request.id, child_end::cancelled, {}));
      if (!found)
        return;
      const auto id = next.request.id;
      auto started =
        child_process::start(std::move(next.request), limits_.program_folder, clock::now());
      if (started)
        running_.push_back({std::move(*started), std::move(next.answer)});
      else
        answer(next.answer, refusal(id, child_end::could_not_start, started.error().what));
    }
  }

  void kill_cancelled() {
    std::lock_guard guard(mutex_);
    for (auto& child : running_)
      if (!child.process.reaped() && terminated_.erase(child.process.request().id) != 0)
        child.process.terminate();
    for (auto& child : running_)
      if (!child.process.reaped() && (stopping_ || cancelled_.contains(child.process.request().id)))
        child.process.condemn(child_end::cancelled);
  }

  void wait_for_events() {
    std::vector<pollfd> set{{wake_, POLLIN, 0}};
    auto next = clock::time_point::max();
    for (const auto& child : running_) {
      const auto& process = child.process;
      // Only the group of a reaped child is waited for, and no descriptor tells of that.
      if (process.reaped()) {
        next = std::min(next, clock::now() + group_check_interval);
        continue;
      }
      set.push_back({process.process_descriptor(), POLLIN, 0});
      for (int descriptor : {process.lines_descriptor(), process.log_descriptor()})
        if (descriptor >= 0)
          set.push_back({descriptor, POLLIN, 0});
      next = std::min(next, process.next_check());
    }
    int timeout = -1;
    if (next != clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - clock::now());
      timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
    }
    poll(set.data(), set.size(), timeout);
    uint64_t drained = 0;
    (void)!read(wake_, &drained, sizeof drained);
  }

  void advance() {
    const auto now = clock::now();
    std::vector<running_child> ended;
    for (size_t i = 0; i < running_.size();) {
      auto& process = running_[i].process;
      process.read_available(now);
      if (!process.reaped())
        process.check_time(now);
      if (process.reap(now)
        && (process.group_gone() || process.group_overdue(now, limits_.group_gone_within))) {
        ended.push_back(std::move(running_[i]));
        running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
        continue;
      }
      ++i;
    }
    // After the list is whole again: a callback may submit the next child.
    for (auto& child : ended)
      answer(child.answer, child.process.finish(child.process.group_gone()));
  }

  bool finished() {
    std::lock_guard guard(mutex_);
    return stopping_ && waiting_.empty() && running_.empty();
  }

  void run() {
    // Signals of the program belong to its main thread.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (;;) {
      start_waiting();
      kill_cancelled();
      if (finished())
        return;
      wait_for_events();
      advance();
    }
  }

  const child_loop_limits limits_;
  const int wake_;
  std::mutex mutex_;
  std::deque<waiting_child> waiting_;
  /// Ids that are accepted and not answered yet.
  std::set<uint64_t> ids_;
  std::set<uint64_t> cancelled_;
  std::set<uint64_t> terminated_;
  bool stopping_ = false;
  /// Belongs to the loop's thread.
  std::vector<running_child> running_;
  std::mutex join_mutex_;
  std::thread thread_;
};

child_loop::child_loop(child_loop_limits limits)
  : impl_(std::make_unique<impl>(std::move(limits))) {}

child_loop::~child_loop() = default;

result<void> child_loop::submit(child_request request, callback answer) {
  return impl_->submit(std::move(request), std::move(answer));
}

void child_loop::cancel(uint64_t id) {
  impl_->cancel(id);
}

void child_loop::terminate(uint64_t id) {
  impl_->terminate(id);
}

void child_loop::stop() {
  impl_->stop();
}

} // namespace gristmill
