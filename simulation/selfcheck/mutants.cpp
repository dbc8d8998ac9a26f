#include "simulation/selfcheck/mutants.hpp"

#include "gpu/lease/ranked_policy.hpp"
#include "protocol/nearest.hpp"
#include "simulation/selfcheck/wrapped_policy.hpp"

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

class newest_first final : public ranked_policy {
public:
  newest_first() : ranked_policy("lifo") {}
  std::unique_ptr<lease_policy> clone() const override {
    return std::make_unique<newest_first>(*this);
  }

private:
  wide rank(const waiter& w) const override { return -wide{w.ticket}; }
};

class losing_wakeups final : public wrapped_policy {
public:
  using wrapped_policy::wrapped_policy;
  std::optional<uint64_t> pick(const gpu_offer& offer, nanoseconds now) override {
    const auto right = wrapped_policy::pick(offer, now);
    if (right && ++offers_ % 8 == 0)
      return std::nullopt;
    return right;
  }

private:
  uint64_t offers_ = 0;
};

class ignoring_a_gpu final : public wrapped_policy {
public:
  ignoring_a_gpu(std::unique_ptr<lease_policy> right, uint32_t gpus)
    : wrapped_policy(std::move(right)), gpus_(gpus) {}
  void on_grant(uint64_t ticket, uint32_t gpu, nanoseconds now) override {
    ++held_;
    wrapped_policy::on_grant(ticket, gpu, now);
  }
  void on_release(const lease_usage& usage, std::string_view reason, nanoseconds now) override {
    --held_;
    wrapped_policy::on_release(usage, reason, now);
  }
  std::optional<uint64_t> pick(const gpu_offer& offer, nanoseconds now) override {
    return held_ + 1 >= gpus_ ? std::nullopt : wrapped_policy::pick(offer, now);
  }

private:
  uint32_t gpus_;
  uint32_t held_ = 0;
};

} // namespace

std::string to_string(mutant_kind what) {
  switch (what) {
  case mutant_kind::none:
    return "none";
  case mutant_kind::lifo:
    return "lifo";
  case mutant_kind::lost_wakeup:
    return "lost-wakeup";
  case mutant_kind::ignore_free_gpu:
    return "ignore-free-gpu";
  }
  return "?";
}

const std::vector<mutant_kind>& mutants() {
  static const std::vector<mutant_kind> all = {
    mutant_kind::lifo, mutant_kind::lost_wakeup, mutant_kind::ignore_free_gpu};
  return all;
}

result<mutant_kind> mutant_from_text(std::string_view text) {
  std::vector<std::string> known;
  for (const auto each : mutants()) {
    known.push_back(to_string(each));
    if (text == known.back())
      return each;
  }
  return fail(errc::invalid_input,
    "--mutant: there is no mutant '" + std::string(text) + "'"
      + suggestion(std::string(text), known));
}

std::unique_ptr<lease_policy> with_mutant(
  mutant_kind what, std::unique_ptr<lease_policy> right, uint32_t gpus) {
  switch (what) {
  case mutant_kind::none:
    return right;
  case mutant_kind::lifo:
    return std::make_unique<newest_first>();
  case mutant_kind::lost_wakeup:
    return std::make_unique<losing_wakeups>(std::move(right));
  case mutant_kind::ignore_free_gpu:
    return std::make_unique<ignoring_a_gpu>(std::move(right), gpus);
  }
  return right;
}

} // namespace gristmill
