#pragma once

#include "tests/actors/system/lease_relay.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <istream>
#include <string>
#include <vector>

namespace gristmill::test {

inline constexpr std::array<const char*, 12> verbs = {"request", "read", "measure", "cancel",
  "give_back", "holder_crash", "executor_crash", "stale_report", "drain", "broker_crash", "wait",
  "link_loss"};
/// How often each comes.
inline constexpr std::array<uint8_t, 18> mix = {
  0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

struct script_step {
  uint8_t verb = 0;
  uint64_t seed = 0;
};

/// A schedule as data: what the links, the clocks and the children do hangs on the seeds alone.
struct script {
  uint64_t seed = 0;
  std::vector<script_step> steps;
};

inline script random_script(uint64_t seed) {
  dice random{seed};
  script out{seed, {}};
  for (auto n = 20 + random.below(100); n > 0; --n)
    out.steps.push_back({mix[random.below(mix.size())], random()});
  return out;
}

inline std::string to_text(const script& what) {
  auto out = fmt::format("world {}\n", what.seed);
  for (const auto& s : what.steps)
    out += fmt::format("{} {}\n", verbs[s.verb], s.seed);
  return out;
}

inline script parse_script(std::istream& in) {
  script out;
  std::string word;
  uint64_t seed = 0;
  while (in >> word >> seed) {
    if (word == "world") {
      out.seed = seed;
      continue;
    }
    auto verb = std::find(verbs.begin(), verbs.end(), word);
    REQUIRE_MESSAGE(verb != verbs.end(), "not a step: ", word);
    out.steps.push_back({static_cast<uint8_t>(verb - verbs.begin()), seed});
  }
  return out;
}

} // namespace gristmill::test
