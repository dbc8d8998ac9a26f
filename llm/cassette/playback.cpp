#include "llm/cassette/playback.hpp"

#include <utility>

namespace gristmill {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

http_report cancelled_report(uint64_t id, const char* why) {
  http_report out;
  out.id = id;
  out.ended = true;
  out.how = http_end::cancelled;
  out.why = why;
  return out;
}

} // namespace

playback::playback(double speed, bool from_caller, http_sink sink)
  : speed_(from_caller ? 0 : speed), from_caller_(from_caller), sink_(std::move(sink)) {
  if (!from_caller_)
    thread_ = std::thread([this] { run(); });
}

playback::~playback() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
  for (const auto& [id, entries] : std::exchange(open_, {}))
    sink_(cancelled_report(id, "the cassette is closing"));
}

std::vector<std::pair<nanoseconds, http_report>> playback::reports_of(
  uint64_t id, const interaction& what) const {
  const auto at = [&](std::chrono::microseconds recorded) {
    return speed_ > 0 ? nanoseconds{static_cast<int64_t>(double(recorded.count()) * 1e3 / speed_)}
                      : nanoseconds{0};
  };
  std::vector<std::pair<nanoseconds, http_report>> out;
  const auto report_at = [&](nanoseconds time) -> http_report& {
    // Recorded times do not go back; a file that says so is played in the order of its events.
    if (out.empty() || out.back().first < time) {
      out.emplace_back(time, http_report{});
      out.back().second.id = id;
      out.back().second.status = what.status;
    }
    return out.back().second;
  };
  for (const auto& each : what.events)
    report_at(at(each.at)).events.push_back(each.event);
  auto& last = report_at(at(what.took));
  last.body = what.body;
  last.ended = true;
  last.how = what.how;
  last.why = what.why;
  out.front().second.headers = what.headers;
  return out;
}

void playback::play(uint64_t id, const interaction& what) {
  auto reports = reports_of(id, what);
  if (from_caller_) {
    for (auto& [time, report] : reports)
      sink_(std::move(report));
    return;
  }
  {
    const std::lock_guard guard(mutex_);
    // At once: no clock decides about the order.
    const auto start = speed_ > 0 ? steady_clock::now() : steady_clock::time_point{};
    auto& entries = open_[id];
    for (auto& [time, report] : reports) {
      const when due{start + time, next_++};
      due_.emplace(due, std::move(report));
      entries.push_back(due);
    }
  }
  changed_.notify_all();
}

void playback::cancel(uint64_t id) {
  {
    const std::lock_guard guard(mutex_);
    const auto at = open_.find(id);
    if (at == open_.end())
      return;
    for (const auto& entry : at->second)
      due_.erase(entry);
    const when now{steady_clock::time_point{}, next_++};
    due_.emplace(now, cancelled_report(id, "cancelled"));
    at->second = {now};
  }
  changed_.notify_all();
}

void playback::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (due_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto time = due_.begin()->first.first;
    if (time > steady_clock::now()) {
      changed_.wait_until(lock, time);
      continue;
    }
    auto report = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    if (report.ended)
      open_.erase(report.id);
    lock.unlock();
    sink_(std::move(report));
    lock.lock();
  }
}

} // namespace gristmill
