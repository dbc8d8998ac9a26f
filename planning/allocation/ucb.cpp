#include "planning/allocation/line_ranking.hpp"
#include "planning/allocation/policies.hpp"
#include "planning/allocation/problem_uses.hpp"

#include <bit>

namespace gristmill {

namespace {

/// ln t out of additions, multiplications and divisions alone: equal on every machine, which that
/// of the C library is not to the last bit.
double log_of(uint64_t t) {
  const int exponent = static_cast<int>(std::bit_width(t)) - 1;
  // t = m 2^exponent, 1 <= m < 2; ln m = 2 artanh((m - 1)/(m + 1)), whose argument is below 1/3.
  const double m = static_cast<double>(t) / static_cast<double>(uint64_t{1} << exponent);
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 33; k >= 1; k -= 2)
    sum = sum * (s * s) + 1.0 / k;
  return exponent * 0.693147180559945309 + 2 * s * sum;
}

/// The bound of a problem is (mean gain + a sqrt(2 ln t / n)) / cost of an attempt: a line in
/// sqrt(2 ln t), which grows for all with every attempt that is given to anybody.
class ucb final : public allocation {
public:
  ucb(uint32_t problems, bool by_attempts, double a)
    : uses_(problems, by_attempts), a_(a), gains_(problems, 0.0), ranking_(problems) {}

  std::string_view name() const override { return "ucb"; }

  void on_eligible(problem_index problem, bool eligible) override {
    uses_.set_eligible(problem, eligible);
    if (eligible)
      rank(problem);
    else
      ranking_.erase(problem);
  }
  void on_given(problem_index problem) override {
    uses_.add_given(problem);
    ++t_;
    rank(problem);
    ranking_.move_to(std::sqrt(2 * log_of(t_)));
  }
  void on_finished(problem_index problem, const attempt_gain& brought) override {
    uses_.add_finished(problem, brought);
    gains_[problem] += counted_gain(brought);
    rank(problem);
  }
  void on_headroom(problem_index, double) override {}

  std::optional<allocation_pick> pick(std::chrono::nanoseconds) const override {
    if (ranking_.empty())
      return std::nullopt;
    const auto p = ranking_.first();
    allocation_pick out{p, uses_.reason(p, allocation_rule::ucb)};
    const auto& line = ranking_.of(p);
    out.why.gain = line.level;
    out.why.bonus = line.slope * ranking_.x();
    return out;
  }

private:
  void rank(problem_index p) {
    const auto& u = uses_.of(p);
    if (!u.eligible)
      return;
    line_ranking::line line;
    line.given = u.given;
    if (u.given > 0) {
      line.untried = false;
      const double cost = uses_.attempt_cost(p);
      line.level = gains_[p] / (u.given * cost);
      line.slope = a_ / (std::sqrt(static_cast<double>(u.given)) * cost);
    }
    ranking_.set(p, line);
  }

  problem_uses uses_;
  double a_;
  std::vector<double> gains_;
  line_ranking ranking_;
  uint64_t t_ = 0;
};

} // namespace

std::unique_ptr<allocation> make_ucb(uint32_t problems, bool by_attempts, double a) {
  return std::make_unique<ucb>(problems, by_attempts, a);
}

} // namespace gristmill
