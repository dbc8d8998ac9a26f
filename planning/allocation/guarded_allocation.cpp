#include "planning/allocation/policies.hpp"
#include "planning/allocation/share_queue.hpp"

namespace gristmill {

namespace {

class guarded_allocation final : public allocation {
public:
  guarded_allocation(
    uint32_t problems, bool by_attempts, std::string_view label, std::unique_ptr<allocation> inner)
    : label_(label), problems_(problems), inner_(std::move(inner)), fair_(problems, by_attempts) {}

  std::string_view name() const override { return label_; }

  void on_eligible(problem_index problem, bool eligible) override {
    fair_.set_in_line(problem, eligible);
    inner_->on_eligible(problem, eligible);
  }
  void on_given(problem_index problem) override {
    fair_.add_given(problem);
    inner_->on_given(problem);
  }
  void on_finished(problem_index problem, const attempt_gain& brought) override {
    fair_.add_finished(problem, brought);
    inner_->on_finished(problem, brought);
  }
  void on_headroom(problem_index problem, double log_headroom) override {
    inner_->on_headroom(problem, log_headroom);
  }

  std::optional<allocation_pick> pick(std::chrono::nanoseconds now) const override {
    if (fair_.empty())
      return std::nullopt;
    const auto picked = inner_->pick(now);
    const bool good = picked && picked->problem < problems_ && fair_.contains(picked->problem);
    const auto p = good ? picked->problem : fair_.first();
    allocation_pick out{
      p, fair_.reason(p, good ? allocation_rule::own : allocation_rule::own_failed)};
    out.why.gain = good ? picked->why.gain : 0;
    out.why.label = label_;
    return out;
  }

private:
  std::string_view label_;
  uint32_t problems_;
  std::unique_ptr<allocation> inner_;
  share_queue fair_;
};

} // namespace

std::unique_ptr<allocation> make_guarded(
  uint32_t problems, bool by_attempts, std::string_view label, std::unique_ptr<allocation> inner) {
  return std::make_unique<guarded_allocation>(problems, by_attempts, label, std::move(inner));
}

} // namespace gristmill
