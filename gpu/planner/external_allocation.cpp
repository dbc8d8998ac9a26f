#include "gpu/planner/external_allocation.hpp"

#include "gpu/lease/external_messages.hpp"
#include "gpu/lease/policy_process.hpp"
#include "gpu/lease/policy_text.hpp"
#include "planning/allocation/allocation_text.hpp"
#include "planning/allocation/problem_uses.hpp"
#include "planning/allocation/share_queue.hpp"

#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace gristmill {

namespace {

using clock_type = std::chrono::steady_clock;

/// A process that has not greeted by then is started again.
constexpr auto greeting_limit = std::chrono::seconds{10};
/// So many answers missed in a row count as a process that is dead.
constexpr int silence_max = 10;

std::string event_of(std::string_view kind, problem_index p) {
  return fmt::format(R"({{"event":"{}","problem":{})", kind, p);
}

/// The process, started when it is needed, and what became of it.
class rule_process {
public:
  explicit rule_process(external_allocation_config config) : config_(std::move(config)) {}

  bool is_running() const { return process_ != nullptr; }
  bool gave_up() const { return gave_up_; }

  /// `introduction` is what a new process has to be told.
  void start(const std::vector<std::string>& introduction) {
    auto started = policy_process::start(config_.command);
    if (!started) {
      gave_up_ = true;
      trouble_ = "external (no process could be started)";
      return;
    }
    process_ = std::move(*started);
    greeted_ = false;
    silent_ = 0;
    started_ = clock_type::now();
    for (const auto& line : introduction)
      if (!tell(line))
        return;
  }

  bool tell(const std::string& line) {
    if (process_ && !process_->send(line))
      restart("external (the process does not read)");
    return process_ != nullptr;
  }

  std::optional<external_answer> ask(uint64_t id, const std::string& line) {
    const auto deadline = clock_type::now() + config_.timeout;
    if (!greeted_) {
      // Start-up may take long, but only its beginning is waited for.
      if (!answer_to(0, std::min(deadline, started_ + config_.timeout), true)) {
        if (process_ && clock_type::now() - started_ > greeting_limit)
          restart("external (the process does not greet)");
        return std::nullopt;
      }
      greeted_ = true;
    }
    if (!tell(line))
      return std::nullopt;
    return answer_to(id, deadline, false);
  }

  /// Why there was no answer; a text that lives as long as the program.
  std::string_view trouble() const { return trouble_; }

private:
  void restart(std::string_view why) {
    process_.reset();
    trouble_ = why;
    gave_up_ = ++restarts_ > config_.restarts_max;
  }

  std::optional<external_answer> answer_to(
    uint64_t id, clock_type::time_point deadline, bool greeting) {
    std::string line;
    while (process_) {
      switch (process_->receive(line, deadline)) {
      case policy_process::outcome::late:
        trouble_ =
          greeting ? "external (the process is not ready)" : "external (no answer in time)";
        if (!greeting && ++silent_ == silence_max)
          restart("external (ten answers missed in a row)");
        return std::nullopt;
      case policy_process::outcome::ended:
        restart("external (the process ended)");
        return std::nullopt;
      case policy_process::outcome::too_long:
        restart("external (the process wrote a line that is too long)");
        return std::nullopt;
      case policy_process::outcome::line:
        break;
      }
      auto answer = parse_external_answer(line, "problem");
      if (!answer || answer->state || answer->id > id) {
        restart("external (the process wrote what is no answer)");
      } else if (answer->id == id) {
        silent_ = 0;
        return *answer;
      }
      // An older id: the answer to a question that is over.
    }
    return std::nullopt;
  }

  external_allocation_config config_;
  std::unique_ptr<policy_process> process_;
  clock_type::time_point started_;
  bool greeted_ = false;
  bool gave_up_ = false;
  int restarts_ = 0;
  int silent_ = 0;
  std::string_view trouble_ = "external";
};

class external_allocation final : public allocation {
public:
  external_allocation(external_allocation_config config, uint32_t problems, bool by_attempts)
    : process_(std::move(config)), fair_(problems, by_attempts), states_(problems),
      by_attempts_(by_attempts) {}

  std::string_view name() const override { return "external"; }

  void on_eligible(problem_index p, bool eligible) override {
    fair_.set_in_line(p, eligible);
    tell(fmt::format(R"({},"eligible":{}}})", event_of("eligible", p), eligible));
  }
  void on_given(problem_index p) override {
    fair_.add_given(p);
    tell(event_of("given", p) + "}");
  }
  void on_finished(problem_index p, const attempt_gain& brought) override {
    fair_.add_finished(p, brought);
    const double gain = counted_gain(brought);
    states_[p].gain += gain;
    tell(fmt::format(
      R"({},"gpu_ns":{},"log_gain":{}}})", event_of("finished", p), brought.gpu_ns, gain));
  }
  void on_headroom(problem_index p, double log_headroom) override {
    if (!std::isfinite(log_headroom))
      return;
    states_[p].headroom = log_headroom;
    tell(fmt::format(R"({},"log_headroom":{}}})", event_of("headroom", p), log_headroom));
  }

  std::optional<allocation_pick> pick(std::chrono::nanoseconds) const override {
    if (fair_.empty())
      return std::nullopt;
    if (!answered_)
      answered_ = ask();
    return answered_;
  }

private:
  struct state {
    double gain = 0;
    std::optional<double> headroom;
  };

  void tell(const std::string& line) {
    answered_.reset();
    process_.tell(line);
  }

  /// Everything that a process which starts now has missed.
  std::vector<std::string> introduction() const {
    std::vector<std::string> out{
      fmt::format(R"({{"event":"hello","version":1,"id":0,"problems":{},"by_attempts":{}}})",
        states_.size(), by_attempts_)};
    for (problem_index p = 0; p < states_.size(); ++p) {
      const auto& s = states_[p];
      const auto& u = fair_.of(p);
      out.push_back(fmt::format(
        R"({},"eligible":{},"given":{},"in_flight":{},"gpu_ns":{},"log_gain":{},"log_headroom":{}}})",
        event_of("problem", p), fair_.contains(p), u.given, u.in_flight, u.gpu_ns, s.gain,
        s.headroom ? fmt::format("{}", *s.headroom) : "null"));
    }
    return out;
  }

  allocation_pick ask() const {
    std::optional<external_answer> answer;
    if (!process_.is_running() && !process_.gave_up())
      process_.start(introduction());
    const auto id = next_id_++;
    if (process_.is_running())
      answer = process_.ask(id, fmt::format(R"({{"event":"pick","id":{}}})", id));
    const bool good = answer && answer->ticket && *answer->ticket < states_.size()
      && fair_.contains(static_cast<problem_index>(*answer->ticket));
    const auto p = good ? static_cast<problem_index>(*answer->ticket) : fair_.first();
    allocation_pick out{
      p, fair_.reason(p, good ? allocation_rule::own : allocation_rule::own_failed)};
    out.why.label = good || answer ? "external" : process_.trouble();
    return out;
  }

  // Asking changes the process and nothing that anybody else sees: the answer is kept until
  // something happens.
  mutable rule_process process_;
  mutable std::optional<allocation_pick> answered_;
  mutable uint64_t next_id_ = 1;
  share_queue fair_;
  std::vector<state> states_;
  bool by_attempts_;
};

} // namespace

std::unique_ptr<allocation> make_external_allocation(
  external_allocation_config config, uint32_t problems, bool by_attempts) {
  return std::make_unique<external_allocation>(std::move(config), problems, by_attempts);
}

void install_external_planner() {
  install_external_allocation(
    [](const std::string& cmd, const std::string& timeout) -> result<allocation_factory> {
      const auto limit = parse_policy_time(timeout);
      if (!limit || *limit < std::chrono::milliseconds{1} || *limit > std::chrono::seconds{1})
        return fail(errc::invalid_input,
          fmt::format("allocation 'external': timeout={}: must be a time from 1ms to 1s: the "
                      "planner waits for it",
            shown(timeout)));
      return allocation_factory{[cmd, limit = *limit](uint32_t problems, bool by_attempts) {
        external_allocation_config config;
        config.command = cmd;
        config.timeout = limit;
        return make_external_allocation(std::move(config), problems, by_attempts);
      }};
    });
}

} // namespace gristmill
