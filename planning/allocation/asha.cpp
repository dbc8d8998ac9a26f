#include "planning/allocation/policies.hpp"
#include "planning/allocation/problem_uses.hpp"
#include "planning/allocation/ranking.hpp"
#include "planning/allocation/share_queue.hpp"

#include <compare>
#include <set>

namespace gristmill {

namespace {

/// Those that finished a rung in this round, the best 1/eta apart. Each entry costs O(log P).
class rung_board {
public:
  /// Returns who is among the best now and was not before; at most two.
  std::vector<problem_index> add(problem_index p, double gain_rate, uint32_t given, uint32_t eta) {
    std::vector<problem_index> risen;
    const entry one{-gain_rate, given, p};
    if (!best_.empty() && one < *best_.rbegin()) {
      best_.insert(one);
      risen.push_back(p);
    } else {
      rest_.insert(one);
    }
    const auto quota = (best_.size() + rest_.size()) / eta;
    if (best_.size() > quota) {
      rest_.insert(*best_.rbegin());
      best_.erase(std::prev(best_.end()));
    } else if (best_.size() < quota) {
      best_.insert(*rest_.begin());
      risen.push_back(rest_.begin()->problem);
      rest_.erase(rest_.begin());
    }
    return risen;
  }

private:
  struct entry {
    double loss;
    uint32_t given;
    problem_index problem;
    friend auto operator<=>(const entry&, const entry&) = default;
  };
  std::set<entry> best_;
  std::set<entry> rest_;
};

class asha final : public allocation {
public:
  asha(uint32_t problems, bool by_attempts, uint32_t eta, uint32_t first)
    : eta_(eta), first_(first), equal_(problems, by_attempts), lives_(problems), next_(problems) {}

  std::string_view name() const override { return "asha"; }

  void on_eligible(problem_index problem, bool eligible) override {
    if (equal_.contains(problem) == eligible)
      return;
    equal_.set_in_line(problem, eligible);
    if (eligible) {
      eligible_.insert(problem);
      // It was away when the round began.
      if (lives_[problem].round != round_)
        enter_round(problem);
    } else {
      eligible_.erase(problem);
    }
    settle(problem);
  }

  void on_given(problem_index problem) override {
    equal_.add_given(problem);
    ++lives_[problem].given;
    place(problem);
  }

  void on_finished(problem_index problem, const attempt_gain& brought) override {
    equal_.add_finished(problem, brought);
    auto& life = lives_[problem];
    ++life.done;
    life.gain += counted_gain(brought);
    life.gpu_ns += brought.gpu_ns;
    settle(problem);
  }

  void on_headroom(problem_index, double) override {}

  std::optional<allocation_pick> pick(std::chrono::nanoseconds) const override {
    if (equal_.empty())
      return std::nullopt;
    const bool waits = next_.empty();
    const auto p = waits ? equal_.first() : next_.first();
    allocation_pick out{
      p, equal_.reason(p, waits ? allocation_rule::asha_waits : allocation_rule::asha)};
    const auto& life = lives_[p];
    out.why.round = round_;
    out.why.rung = life.rung;
    out.why.gain = life.last_gain;
    out.why.window = life.last_done;
    return out;
  }

private:
  /// A problem's way through the rungs.
  struct climber {
    uint32_t round = 0;
    uint32_t rung = 0;
    /// Its rung has attempts to give or to wait for; else it waits to be among the best.
    bool climbs = true;
    /// It is one of `climbing_`.
    bool is_counted = false;
    /// Since its last rung ended, whoever gave them.
    uint64_t given = 0;
    uint64_t done = 0;
    double gain = 0;
    uint64_t gpu_ns = 0;
    /// Of the rung that ended last.
    double last_gain = 0;
    uint32_t last_done = 0;
  };

  /// Attempts of a rung in this round; huge where it would not fit.
  uint64_t attempts_of(uint32_t rung) const {
    uint64_t out = first_;
    for (uint64_t i = 0; i < rung; ++i) {
      if (out > (uint64_t{1} << 40))
        break;
      out *= eta_;
    }
    return out;
  }

  void enter_round(problem_index p) {
    auto& life = lives_[p];
    life.round = round_;
    life.rung = 0;
    life.climbs = true;
  }

  /// Puts a problem in line, or takes it out.
  void place(problem_index p) {
    auto& life = lives_[p];
    const bool counts = life.climbs && equal_.contains(p);
    if (counts && life.given < attempts_of(life.rung))
      next_.set(p, life.rung * 4294967296.0 - equal_.of(p).in_flight, 0);
    else
      next_.erase(p);
    if (counts != life.is_counted)
      climbing_ += counts ? 1 : -1;
    life.is_counted = counts;
  }

  /// After something happened to a problem: ends its rung, sends up who is among the best, begins
  /// the next round.
  void settle(problem_index changed) {
    std::vector<problem_index> open{changed};
    for (;;) {
      while (!open.empty()) {
        const auto p = open.back();
        open.pop_back();
        auto& life = lives_[p];
        if (life.climbs && life.done >= attempts_of(life.rung))
          for (auto q : end_rung(p)) {
            auto& up = lives_[q];
            // Some were sent up before and fell back since.
            if (up.climbs || up.rung != life.rung)
              continue;
            ++up.rung;
            up.climbs = true;
            open.push_back(q);
          }
        place(p);
      }
      if (climbing_ > 0 || eligible_.empty())
        return;
      ++round_;
      boards_.clear();
      for (auto p : eligible_) {
        enter_round(p);
        open.push_back(p);
      }
    }
  }

  std::vector<problem_index> end_rung(problem_index p) {
    auto& life = lives_[p];
    const double use = equal_.by_attempts()
      ? static_cast<double>(life.done)
      : std::max(static_cast<double>(life.gpu_ns) * 1e-9, 1e-9);
    const double rate = life.gain / use;
    life.climbs = false;
    life.last_gain = life.gain;
    life.last_done = static_cast<uint32_t>(life.done);
    life.given = equal_.of(p).in_flight;
    life.done = 0;
    life.gain = 0;
    life.gpu_ns = 0;
    if (boards_.size() <= life.rung)
      boards_.resize(size_t{life.rung} + 1);
    return boards_[life.rung].add(p, rate, equal_.of(p).given, eta_);
  }

  uint32_t eta_;
  uint32_t first_;
  /// Those that can use an attempt, for when all that remains of a round is in flight; also what
  /// each problem has had.
  share_queue equal_;
  /// The same, to go through them.
  std::set<problem_index> eligible_;
  std::vector<climber> lives_;
  /// Those with attempts to be given.
  ranking next_;
  /// By rung, of this round.
  std::vector<rung_board> boards_;
  uint32_t round_ = 0;
  /// Eligible ones whose rung has not ended.
  int64_t climbing_ = 0;
};

} // namespace

std::unique_ptr<allocation> make_asha(
  uint32_t problems, bool by_attempts, uint32_t eta, uint32_t first) {
  return std::make_unique<asha>(problems, by_attempts, eta, first);
}

} // namespace gristmill
