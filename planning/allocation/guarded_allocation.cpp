#include "planning/allocation/policies.hpp"
#include "planning/allocation/share_queue.hpp"

#include <vector>

namespace gristmill {

namespace {

class guarded_allocation final : public allocation {
public:
  guarded_allocation(
    uint32_t problems, bool by_attempts, std::string_view label, std::unique_ptr<allocation> inner)
    : label_(label), inner_(std::move(inner)), fair_(problems, by_attempts), eligible_(problems) {}

  std::string_view name() const override { return label_; }

  void on_eligible(problem_index problem, bool eligible) override {
    eligible_[problem] = eligible;
    if (eligible)
      fair_.insert(problem);
    else
      fair_.erase(problem);
    inner_->on_eligible(problem, eligible);
  }
  void on_given(problem_index problem) override {
    fair_.change(problem, [](share_queue::use& u) {
      ++u.in_flight;
      ++u.given;
    });
    inner_->on_given(problem);
  }
  void on_finished(problem_index problem, const attempt_gain& brought) override {
    fair_.change(problem, [&](share_queue::use& u) {
      u.in_flight -= u.in_flight > 0 ? 1 : 0;
      u.gpu_ns += brought.gpu_ns;
    });
    inner_->on_finished(problem, brought);
  }
  void on_headroom(problem_index problem, double log_headroom) override {
    inner_->on_headroom(problem, log_headroom);
  }

  std::optional<allocation_pick> pick(std::chrono::nanoseconds now) const override {
    if (fair_.empty())
      return std::nullopt;
    const auto picked = inner_->pick(now);
    const bool good = picked && picked->problem < eligible_.size() && eligible_[picked->problem];
    const auto p = good ? picked->problem : fair_.first();
    const auto& u = fair_.of(p);
    allocation_pick out{p, {}};
    out.why.rule = good ? allocation_rule::own : allocation_rule::own_failed;
    out.why.in_flight = u.in_flight;
    out.why.given = u.given;
    out.why.gpu_ns = fair_.counted_ns(p);
    out.why.gain = good ? picked->why.gain : 0;
    out.why.label = label_;
    return out;
  }

private:
  std::string_view label_;
  std::unique_ptr<allocation> inner_;
  share_queue fair_;
  std::vector<bool> eligible_;
};

} // namespace

std::unique_ptr<allocation> make_guarded(
  uint32_t problems, bool by_attempts, std::string_view label, std::unique_ptr<allocation> inner) {
  return std::make_unique<guarded_allocation>(problems, by_attempts, label, std::move(inner));
}

} // namespace gristmill
