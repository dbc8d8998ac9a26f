#include "simulation/core/oracle_allocation.hpp"

#include "planning/allocation/scored_allocation.hpp"
#include "simulation/model/plain_math.hpp"

namespace gristmill {

namespace {

class oracle_allocation final : public scored_allocation {
public:
  oracle_allocation(const std::vector<problem_curve>& truth, const learning_law& law)
    : scored_allocation(static_cast<uint32_t>(truth.size()), true), truth_(truth), law_(law) {}

  std::string_view name() const override { return "oracle"; }

private:
  double score(problem_index p) const override {
    const auto in_flight = static_cast<double>(uses_.of(p).in_flight);
    if (in_flight == 0)
      return truth_[p].expected_gain(law_);
    auto then = truth_[p];
    // It matters only if all in flight fail.
    if (!then.is_solved)
      return then.expected_gain(law_) * plain_pow(1 - law_.correct, in_flight);
    // E[g^-gamma] grows by the same for each attempt.
    const double each = law_.gamma * law_.correct * law_.improve * then.ease / law_.step;
    then.gap = plain_pow(plain_pow(then.gap, -law_.gamma) + in_flight * each, -1 / law_.gamma);
    return then.expected_gain(law_);
  }

  allocation_reason why(problem_index p) const override {
    auto out = uses_.reason(p, allocation_rule::oracle);
    out.gain = score(p);
    return out;
  }

  const std::vector<problem_curve>& truth_;
  learning_law law_;
};

} // namespace

std::unique_ptr<allocation> make_oracle_allocation(
  const std::vector<problem_curve>& truth, const learning_law& law) {
  return std::make_unique<oracle_allocation>(truth, law);
}

} // namespace gristmill
