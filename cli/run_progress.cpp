#include "cli/run_progress.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace gristmill {

namespace {

constexpr const char* clear_code = "\r\x1b[K";
/// Where the terminal does not say how wide it is.
constexpr size_t usual_width = 80;

size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return usual_width;
  return size.ws_col;
}

uint64_t left_of(uint64_t limit, uint64_t used) {
  return limit > used ? limit - used : 0;
}

/// "1:02:03", "2:03"
std::string clock_text(uint64_t seconds) {
  if (seconds >= 3600)
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string lease_text(const live_state& state) {
  return fmt::format("leases {}+{} waiting", state.leases_in_use, state.leases_waiting);
}

/// What is left of the attempts and of the time under lease.
std::string budget_text(const live_state& state) {
  std::string text;
  if (state.limits.attempts)
    text =
      fmt::format("{} attempts left", left_of(*state.limits.attempts, state.now.attempts_finished));
  if (state.limits.gpu_ns)
    text += fmt::format("{}{:.1f} GPU-s left", text.empty() ? "" : ", ",
      static_cast<double>(left_of(*state.limits.gpu_ns, state.now.gpu_ns)) / 1e9);
  return text.empty() ? fmt::format("{:.1f} GPU-s", static_cast<double>(state.now.gpu_ns) / 1e9)
                      : text;
}

/// "120 calls 1.2 M tokens 0.42 USD"; empty where no model was asked.
std::string model_text(const model_use& use) {
  if (use.calls == 0)
    return {};
  return fmt::format("{} calls {:.1f}k tokens {:.2f} USD", use.calls,
    static_cast<double>(use.input_tokens + use.output_tokens) / 1e3,
    static_cast<double>(use.nano_usd + use.held_nano_usd) / 1e9);
}

std::string time_text(const live_state& state) {
  const auto elapsed = static_cast<uint64_t>(std::max<int64_t>(state.elapsed.count(), 0));
  if (!state.limits.wall_ns)
    return clock_text(elapsed);
  return clock_text(left_of(*state.limits.wall_ns / 1'000'000'000, elapsed)) + " left";
}

std::string first_line(const std::string& text) {
  auto line = text.substr(0, text.find('\n'));
  return line.size() <= 120 ? line : line.substr(0, 119) + "~";
}

} // namespace

std::string live_line(const live_state& state, size_t width) {
  struct part {
    std::string text;
    /// The highest goes first when there is no room.
    int dispensable = 0;
  };
  const auto& now = state.now;
  std::vector<part> parts{
    {fmt::format("{} attempts, {} in flight", now.attempts_finished, now.attempts_in_flight), 1},
    {fmt::format("{}/{} problems", now.problems_finished, now.problems_total), 4},
    {lease_text(state), 3}, {fmt::format("geomean {:.2f}x", double(now.geomean)), 0},
    {budget_text(state), 2}, {time_text(state), 0}};
  if (auto models = model_text(state.models); !models.empty())
    parts.insert(parts.end() - 1, {models, 1});
  const auto joined = [&parts] {
    std::string line;
    for (const part& one : parts)
      line += (line.empty() ? "" : " | ") + one.text;
    return line;
  };
  std::string line = joined();
  for (int least = 4; least > 0 && line.size() > width; --least) {
    std::erase_if(parts, [least](const part& one) { return one.dispensable == least; });
    line = joined();
  }
  return line.substr(0, width);
}

bool stderr_is_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

void run_progress::print(const std::string& line) {
  if (line_open_)
    std::fputs(clear_code, stderr);
  line_open_ = false;
  std::fputs((line + "\n").c_str(), stderr);
}

void run_progress::on_event(const event& e) {
  std::lock_guard lock(mutex_);
  follow_lease(e);
  count_model_call(models_, e);
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
  if (data.value("incumbent_stays", false)) {
    print(fmt::format("{} {} {}", stamp, e.attempt, first_line(e.reason)));
    return;
  }
  if (ns == 0 || (best != 0 && ns >= best && !data.value("promotion", false)))
    return;
  best = ns;
  print(fmt::format("{} {} PASSED {:.1f} us {}, {:.2f}x T_b  {}", stamp, e.attempt,
    static_cast<double>(ns) / 1e3, data.value("origin", std::string{}), data.value("speedup", 0.0),
    data.value("key", std::string{})));
}

void run_progress::follow_lease(const event& e) {
  if (e.kind == "lease_request") {
    waiting_.insert(e.attempt);
  } else if (e.kind == "lease_wait_end") {
    waiting_.erase(e.attempt);
  } else if (e.kind == "lease_grant") {
    waiting_.erase(e.attempt);
    held_.insert(e.token);
  } else if (e.kind == "lease_release" || e.kind == "lease_withdraw" || e.kind == "lease_revoke") {
    held_.erase(e.token);
  }
}

void run_progress::show_totals(const planner_snapshot& now, std::chrono::seconds elapsed) {
  std::lock_guard lock(mutex_);
  if (!terminal_) {
    std::fputs(
      fmt::format(
        "[{:4} s] {} attempts, {} in flight, {} of {} problems finished, geomean {:.2f}x, "
        "{:.1f} GPU-s{}{}\n",
        elapsed.count(), now.attempts_finished, now.attempts_in_flight, now.problems_finished,
        now.problems_total, double(now.geomean), static_cast<double>(now.gpu_ns) / 1e9,
        models_.calls > 0 ? ", " : "", model_text(models_))
        .c_str(),
      stderr);
    return;
  }
  // One column stays free: a cursor behind the last one would wrap on some terminals.
  const size_t width = terminal_width();
  const live_state state{now, held_.size(), waiting_.size(), limits_, elapsed, models_};
  std::fputs((clear_code + live_line(state, width > 0 ? width - 1 : 0)).c_str(), stderr);
  std::fflush(stderr);
  line_open_ = true;
}

void run_progress::clear_line() {
  std::lock_guard lock(mutex_);
  if (!line_open_)
    return;
  std::fputs(clear_code, stderr);
  std::fflush(stderr);
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
