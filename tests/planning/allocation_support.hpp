#pragma once

#include "planning/allocation/allocation_text.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace gristmill::test {

inline constexpr std::chrono::nanoseconds no_time{0};
inline constexpr uint64_t a_second = 1'000'000'000;

/// The rule that a text names; nobody can use an attempt yet.
inline std::unique_ptr<allocation> make_rule(
  const std::string& text, uint32_t problems, bool by_attempts = true) {
  auto made = allocation_from_text(text);
  REQUIRE_MESSAGE(made, made.error().what);
  return (*made)(problems, by_attempts);
}

/// The same where all can.
inline std::unique_ptr<allocation> start_rule(
  const std::string& text, uint32_t problems, bool by_attempts = true) {
  auto out = make_rule(text, problems, by_attempts);
  for (problem_index p = 0; p < problems; ++p)
    out->on_eligible(p, true);
  return out;
}

inline void give(allocation& who, problem_index p, double gain = 0, uint64_t gpu_ns = a_second) {
  who.on_given(p);
  who.on_finished(p, {gpu_ns, gain});
}

inline problem_index first(const allocation& who) {
  auto picked = who.pick(no_time);
  REQUIRE(picked);
  return picked->problem;
}

/// Gives out `slots` attempts one at a time, each finished before the next, and counts them.
/// `gain(p, n)` is what the n-th attempt of a problem brings.
template <class Gain>
std::vector<int> play(allocation& who, uint32_t problems, int slots, Gain gain) {
  std::vector<int> had(problems, 0);
  for (int i = 0; i < slots; ++i) {
    auto p = first(who);
    give(who, p, gain(p, had[p]));
    ++had[p];
  }
  return had;
}

inline constexpr auto no_gain = [](problem_index, int) { return 0.0; };

/// Equal numbers for equal seeds.
class draws {
public:
  explicit draws(uint32_t seed) : engine_(seed) {}
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(engine_() % n); }

private:
  std::mt19937 engine_;
};

/// Every rule of the house, the ones that change others too.
inline const std::vector<std::string> every_rule = {"equal", "round_robin", "greedy", "ucb",
  "rising", "asha", "asha(eta=2, first=1)", "gate(equal)", "gate(0.05, asha)", "floor(0.5, greedy)",
  "floor(share=0.25, gate(eps=0.1, ucb))", "rebalance"};

} // namespace gristmill::test
