#include "planning/allocation/policies.hpp"
#include "planning/allocation/scored_allocation.hpp"

namespace gristmill {

namespace {

/// 2^(-1/halflife) out of additions, multiplications and divisions alone: equal on every machine,
/// which that of the C library is not to the last bit.
double kept_after_one(double halflife) {
  const double x = -0.693147180559945309 / halflife;
  double sum = 1;
  for (int k = 24; k >= 1; --k)
    sum = 1 + sum * x / k;
  return sum;
}

double power(double base, uint32_t exponent) {
  double out = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1)
      out *= base;
    base *= base;
  }
  return out;
}

/// Gain and use are averaged apart, each with the same weights, so that a long attempt counts for
/// more than a short one; their ratio is the rate.
class greedy final : public scored_allocation {
public:
  greedy(uint32_t problems, bool by_attempts, double halflife, double prior)
    : scored_allocation(problems, by_attempts), kept_(kept_after_one(halflife)),
      recent_(problems, average{prior, 0}) {}

  std::string_view name() const override { return "greedy"; }

private:
  struct average {
    double gain = 0;
    double use = 0;
  };

  void finished(problem_index p, const attempt_gain& brought) override {
    auto& r = recent_[p];
    const double use =
      uses_.by_attempts() ? 1 : std::max(static_cast<double>(brought.gpu_ns) * 1e-9, 1e-9);
    r.gain = r.gain * kept_ + counted_gain(brought);
    r.use = r.use * kept_ + use;
  }

  double score(problem_index p) const override {
    const auto& u = uses_.of(p);
    if (u.given == 0)
      return std::numeric_limits<double>::infinity();
    const auto& r = recent_[p];
    if (u.in_flight == 0)
      return r.use > 0 ? r.gain / r.use : 0;
    // As if all in flight had ended without a gain: their use is a geometric series.
    const double kept = power(kept_, u.in_flight);
    const double more = uses_.attempt_cost(p) * (1 - kept) / (1 - kept_);
    return r.gain * kept / (r.use * kept + more);
  }

  allocation_reason why(problem_index p) const override {
    auto out = uses_.reason(p, allocation_rule::greedy);
    out.gain = out.given == 0 ? 0 : score(p);
    return out;
  }

  double kept_;
  std::vector<average> recent_;
};

} // namespace

std::unique_ptr<allocation> make_greedy(
  uint32_t problems, bool by_attempts, double halflife, double prior) {
  return std::make_unique<greedy>(problems, by_attempts, halflife, prior);
}

} // namespace gristmill
