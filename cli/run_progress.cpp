#include "cli/run_progress.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

std::string first_line(const std::string& text) {
  auto line = text.substr(0, text.find('\n'));
  return line.size() <= 120 ? line : line.substr(0, 119) + "~";
}

} // namespace

void run_progress::print(const std::string& line) {
  if (line_open_)
    std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
  std::fputs((line + "\n").c_str(), stderr);
}

void run_progress::on_event(const event& e) {
  std::lock_guard lock(mutex_);
  auto stamp = fmt::format("[{:6.1f} s]", std::chrono::duration<double>(e.t).count());
  if (e.kind == "problem_prepared" || e.kind == "problem_finished") {
    auto what = e.kind == "problem_finished" ? "finished" : "ready";
    if (!quiet_)
      print(fmt::format(
        "{} {} {}{}", stamp, e.problem, what, e.reason.empty() ? "" : ": " + first_line(e.reason)));
    return;
  }
  if (e.kind == "actor_died" || e.kind == "attempt_lost") {
    print(fmt::format("{} {} {}: {}", stamp, e.kind, e.attempt, first_line(e.reason)));
    return;
  }
  if (e.kind != "verdict" || quiet_)
    return;
  auto data = nlohmann::json::parse(e.data, nullptr, false);
  if (data.is_discarded())
    return;
  auto status = data.value("status", std::string{});
  if (status != "PASSED") {
    print(fmt::format("{} {} {} {}", stamp, e.attempt, status, first_line(e.reason)));
    return;
  }
  auto ns = data.value("objective_ns", uint64_t{0});
  auto& best = best_[e.problem];
  if (ns == 0 || (best != 0 && ns >= best))
    return;
  best = ns;
  print(fmt::format("{} {} PASSED {:.1f} us {}, {:.2f}x T_b  {}", stamp, e.attempt,
    static_cast<double>(ns) / 1e3, data.value("origin", std::string{}), data.value("speedup", 0.0),
    data.value("key", std::string{})));
}

void run_progress::show_totals(const planner_snapshot& now, std::chrono::seconds elapsed) {
  std::lock_guard lock(mutex_);
  auto text = fmt::format("[{:4} s] {} attempts, {} in flight, {} of {} problems finished, geomean "
                          "{:.2f}x, {:.1f} GPU-s",
    elapsed.count(), now.attempts_finished, now.attempts_in_flight, now.problems_finished,
    now.problems_total, double(now.geomean), static_cast<double>(now.gpu_ns) / 1e9);
  if (!terminal_) {
    std::fputs((text + "\n").c_str(), stderr);
    return;
  }
  std::fputs(("\r\x1b[K" + text).c_str(), stderr);
  std::fflush(stderr);
  line_open_ = true;
}

void run_progress::clear_line() {
  std::lock_guard lock(mutex_);
  if (line_open_)
    std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
}

namespace {

class observed_sink final : public event_sink {
public:
  observed_sink(std::unique_ptr<event_sink> inner, std::shared_ptr<run_progress> progress)
    : inner_(std::move(inner)), progress_(std::move(progress)) {}

  result<uint64_t> append(std::span<const event> events, durability how) override {
    auto stored = inner_->append(events, how);
    if (stored)
      for (const auto& e : events)
        progress_->on_event(e);
    return stored;
  }

private:
  std::unique_ptr<event_sink> inner_;
  std::shared_ptr<run_progress> progress_;
};

} // namespace

std::unique_ptr<event_sink> observed(
  std::unique_ptr<event_sink> inner, std::shared_ptr<run_progress> progress) {
  return std::make_unique<observed_sink>(std::move(inner), std::move(progress));
}

} // namespace gristmill
