#include "gpu/lease/external_policy.hpp"

#include "gpu/lease/external_messages.hpp"
#include "gpu/lease/policy_process.hpp"
#include "gpu/lease/policy_state.hpp"

#include <fmt/format.h>
#include <map>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;
using clock_type = std::chrono::steady_clock;

/// A process that has not greeted by then is started again.
constexpr auto greeting_limit = std::chrono::seconds{10};
/// So many answers missed in a row count as a process that is dead.
constexpr int silence_max = 10;
/// Not yet taken by `take_failures`.
constexpr size_t failures_max = 64;

/// The process, and everything that another one would have to be told.
class external_core {
public:
  explicit external_core(external_policy_config config) : config_(std::move(config)) {}

  void tell(const std::string& line) {
    if (gave_up_)
      return;
    if (!process_) {
      // A process that is started now is told what waits, this line's news included.
      start();
      return;
    }
    if (!process_->send(line))
      restart("does not read");
  }

  /// The answer to `line`, which carries `id`; nothing when there was none in time.
  std::optional<external_answer> ask(uint64_t id, const std::string& line) {
    auto deadline = clock_type::now() + config_.timeout;
    if (!process_)
      start();
    if (!process_ || !greeted(deadline))
      return std::nullopt;
    if (!process_->send(line)) {
      restart("does not read");
      return std::nullopt;
    }
    return answer_with(id, deadline);
  }

  void complain(const std::string& what) {
    if (failures_.size() < failures_max)
      failures_.push_back(what);
  }

  std::map<uint64_t, waiter> waiting_;
  struct running_lease {
    waiter who;
    uint32_t gpu = 0;
    nanoseconds granted{0};
  };
  std::map<uint64_t, running_lease> running_;
  std::string state_;
  std::vector<std::string> failures_;
  uint64_t next_id_ = 1;

private:
  void start() {
    if (gave_up_)
      return;
    auto started = policy_process::start(config_.command);
    if (!started) {
      complain(started.error().what);
      gave_up_ = true;
      return;
    }
    process_ = std::move(*started);
    greeted_ = false;
    not_ready_told_ = false;
    silent_ = 0;
    started_ = clock_type::now();
    bool heard = process_->send(external_hello());
    if (!state_.empty())
      heard = heard && process_->send(external_load(state_));
    // A lease that runs was once requested, too.
    for (const auto& [ticket, lease] : running_)
      heard = heard && process_->send(external_request(lease.who))
        && process_->send(external_grant(ticket, lease.gpu, lease.granted));
    for (const auto& [ticket, w] : waiting_)
      heard = heard && process_->send(external_request(w));
    if (!heard)
      restart("does not read");
  }

  /// Ends the process; the next call that needs one starts it.
  void restart(const std::string& why) {
    process_.reset();
    if (++restarts_ <= config_.restarts_max) {
      complain(fmt::format(
        "the policy process {}; restart {} of {}", why, restarts_, config_.restarts_max));
    } else {
      gave_up_ = true;
      complain(
        fmt::format("the policy process {}; it was started {} times: fifo decides from now on", why,
          restarts_));
    }
  }

  bool greeted(clock_type::time_point deadline) {
    if (greeted_)
      return true;
    // Start-up may take long, but only its beginning is waited for.
    auto until = std::min(deadline, started_ + config_.timeout);
    if (auto answer = answer_with(0, until, true))
      return greeted_ = true;
    if (process_ && clock_type::now() - started_ > greeting_limit)
      restart("does not greet");
    return false;
  }

  std::optional<external_answer> answer_with(
    uint64_t id, clock_type::time_point deadline, bool greeting = false) {
    std::string line;
    while (process_) {
      switch (process_->receive(line, deadline)) {
      case policy_process::outcome::late:
        if (greeting) {
          if (!not_ready_told_)
            complain("the policy process is not ready yet: fifo decides meanwhile");
          not_ready_told_ = true;
        } else if (++silent_ == silence_max) {
          restart(fmt::format("missed {} answers in a row", silence_max));
        } else {
          complain(fmt::format("the policy process gave no answer within {} ms",
            std::chrono::duration_cast<std::chrono::milliseconds>(config_.timeout).count()));
        }
        return std::nullopt;
      case policy_process::outcome::ended:
        restart("ended");
        return std::nullopt;
      case policy_process::outcome::too_long:
        restart("wrote a line that is too long");
        return std::nullopt;
      case policy_process::outcome::line:
        break;
      }
      auto answer = parse_external_answer(line);
      if (!answer) {
        restart(answer.error().what);
      } else if (answer->id > id) {
        restart(fmt::format("answers question {}, which was not asked", answer->id));
      } else if (answer->id == id) {
        silent_ = 0;
        return *answer;
      }
      // An older id: the answer to a question that is over.
    }
    return std::nullopt;
  }

  external_policy_config config_;
  std::unique_ptr<policy_process> process_;
  clock_type::time_point started_;
  bool greeted_ = false;
  bool not_ready_told_ = false;
  bool gave_up_ = false;
  int restarts_ = 0;
  int silent_ = 0;
};

class external_policy final : public lease_policy {
public:
  explicit external_policy(external_policy_config config)
    : core_(std::make_unique<external_core>(std::move(config))), fifo_(make_fifo_policy()) {}

  std::string_view name() const override { return "external"; }

  void on_request(const waiter& w) override {
    if (!core_->waiting_.emplace(w.ticket, w).second)
      return;
    fifo_->on_request(w);
    core_->tell(external_request(w));
  }

  void on_cancel(uint64_t ticket) override {
    if (core_->waiting_.erase(ticket) == 0)
      return;
    fifo_->on_cancel(ticket);
    core_->tell(external_cancel(ticket));
  }

  void on_grant(uint64_t ticket, uint32_t gpu, nanoseconds now) override {
    auto it = core_->waiting_.find(ticket);
    if (it == core_->waiting_.end())
      return;
    core_->running_[ticket] = {it->second, gpu, now};
    core_->waiting_.erase(it);
    fifo_->on_grant(ticket, gpu, now);
    core_->tell(external_grant(ticket, gpu, now));
  }

  void on_release(const lease_usage& usage, std::string_view reason, nanoseconds now) override {
    if (core_->running_.erase(usage.ticket) != 0)
      core_->tell(external_release(usage, reason, now));
  }

  std::optional<uint64_t> pick(const gpu_offer& offer, nanoseconds now) override {
    auto fallback = fifo_->pick(offer, now);
    if (!fallback)
      return std::nullopt;
    auto id = core_->next_id_++;
    auto answer = core_->ask(id, external_pick(id, offer, now));
    if (!answer)
      return fallback;
    if (!answer->ticket) {
      core_->complain(
        fmt::format("the policy process names nobody, although ticket {} waits", *fallback));
      return fallback;
    }
    auto it = core_->waiting_.find(*answer->ticket);
    if (it != core_->waiting_.end() && (offer.fits >> it->second.need & 1) != 0)
      return answer->ticket;
    core_->complain(fmt::format("the policy process names ticket {}, which {}", *answer->ticket,
      it == core_->waiting_.end() ? "does not wait" : "this GPU does not fit"));
    return fallback;
  }

  std::unique_ptr<lease_policy> clone() const override { return nullptr; }

  std::string save() const override {
    auto id = core_->next_id_++;
    if (auto answer = core_->ask(id, external_save(id)); answer && answer->state)
      core_->state_ = *answer->state;
    return fmt::format("external 1 {}\n", state_hex(core_->state_));
  }

  result<void> load(std::string_view text) override {
    if (!core_->waiting_.empty() || !core_->running_.empty())
      return fail(
        errc::refused, "the state of lease policy 'external' is loaded before any request");
    state_reader in(text, "external");
    if (!in.next_line() || !in.word("external") || !in.word("1"))
      return tl::unexpected<failure>(in.damaged());
    auto state = in.hex();
    if (!state || !in.line_done() || !in.at_end())
      return tl::unexpected<failure>(in.damaged());
    core_->state_ = std::move(*state);
    return {};
  }

  std::vector<std::string> take_failures() override { return std::exchange(core_->failures_, {}); }

private:
  std::unique_ptr<external_core> core_;
  std::unique_ptr<lease_policy> fifo_;
};

} // namespace

std::unique_ptr<lease_policy> make_external_policy(external_policy_config config) {
  return std::make_unique<external_policy>(std::move(config));
}

} // namespace gristmill
