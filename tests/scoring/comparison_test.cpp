#include "scoring/comparison.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace gristmill;

namespace {

workload_measurement blocks_of(const std::string& uuid,
  std::initializer_list<std::pair<bool, uint64_t>> sides, uint64_t mad = 10) {
  workload_measurement out;
  out.uuid = uuid;
  for (const auto& [rival, ns] : sides)
    out.blocks.push_back({rival, ns, mad, 50});
  return out;
}

paired_comparison compare_one(const workload_measurement& w, uint32_t attempts = 1) {
  return compare_paired(std::vector{w}, attempts);
}

} // namespace

TEST_CASE("without workloads or without a pair nothing can be said") {
  CHECK(compare_paired({}, 1).answer == gain_answer::cannot_say);
  CHECK(compare_one(blocks_of("w", {})).answer == gain_answer::cannot_say);
  CHECK(compare_one(blocks_of("w", {{false, 1000}})).answer == gain_answer::cannot_say);
  auto same = compare_one(blocks_of("w", {{false, 1000}, {false, 900}}));
  CHECK(same.answer == gain_answer::cannot_say);
  CHECK(same.reason.find("workload w") != std::string::npos);
  // One of two workloads is enough to be silent: the mean needs its whole denominator.
  std::vector two{blocks_of("a", {{false, 50'000}, {true, 100'000}}), blocks_of("b", {})};
  CHECK(compare_paired(two, 1).answer == gain_answer::cannot_say);
}

TEST_CASE("a block without samples or time makes no pair") {
  auto w = blocks_of("w", {{false, 0}, {true, 100'000}});
  CHECK(compare_one(w).answer == gain_answer::cannot_say);
  w = blocks_of("w", {{false, 50'000}, {true, 100'000}});
  w.blocks[0].samples = 0;
  CHECK(compare_one(w).answer == gain_answer::cannot_say);
}

TEST_CASE("one pair is compared by the spread within its blocks") {
  auto better = compare_one(blocks_of("w", {{true, 100'000}, {false, 90'000}}));
  CHECK(better.answer == gain_answer::improves);
  CHECK(better.workloads.at(0).pairs == 1);
  CHECK(better.log_ratio == doctest::Approx(std::log(0.9)));
  CHECK(better.high < 0);
  auto noisy = compare_one(blocks_of("w", {{true, 100'000}, {false, 90'000}}, 30'000));
  CHECK(noisy.answer == gain_answer::does_not);
}

TEST_CASE("pairs are neighbours of unlike sides, whatever the order") {
  // A B B A, and A A B B which has one pair.
  auto abba = compare_one(
    blocks_of("w", {{false, 90'000}, {true, 100'000}, {true, 102'000}, {false, 91'000}}));
  CHECK(abba.workloads.at(0).pairs == 2);
  CHECK(abba.answer == gain_answer::improves);
  auto aabb = compare_one(
    blocks_of("w", {{false, 90'000}, {false, 91'000}, {true, 102'000}, {true, 100'000}}));
  CHECK(aabb.workloads.at(0).pairs == 1);
  CHECK(aabb.log_ratio == doctest::Approx(std::log(91.0 / 102.0)));
}

TEST_CASE("a drift that moves both sides of a pair is no gain") {
  // The clock sinks by 5 % from block to block; the sides are equal.
  auto drift = compare_one(
    blocks_of("w", {{false, 100'000}, {true, 105'000}, {true, 110'000}, {false, 115'000}}));
  CHECK(drift.answer == gain_answer::does_not);
  CHECK(std::abs(drift.log_ratio) < 0.01);
}

TEST_CASE("a gain must be larger than one per cent, and than 100 ns") {
  const auto at = [](uint64_t ns) {
    return compare_one(
      blocks_of("w", {{false, ns}, {true, 100'000}, {true, 100'000}, {false, ns}}, 1));
  };
  CHECK(at(98'900).answer == gain_answer::improves);
  CHECK(at(99'100).answer == gain_answer::does_not);
  CHECK(at(100'000).answer == gain_answer::does_not);
  CHECK(at(110'000).answer == gain_answer::does_not);
  // 2 us: 100 ns are five per cent.
  const auto small = [](uint64_t ns) {
    return compare_one(blocks_of("w", {{false, ns}, {true, 2000}, {true, 2000}, {false, ns}}, 1));
  };
  CHECK(small(1920).answer == gain_answer::does_not);
  CHECK(small(1880).answer == gain_answer::improves);
}

TEST_CASE("who tries more often needs more") {
  auto w = blocks_of("w",
    {{false, 97'000}, {true, 100'000}, {true, 99'600}, {false, 97'800}, {false, 97'000},
      {true, 100'100}, {true, 99'900}, {false, 97'600}},
    200);
  auto first = compare_one(w, 1);
  auto hundredth = compare_one(w, 100);
  CHECK(hundredth.needed > first.needed);
  const auto& of = first.workloads.at(0);
  CHECK(hundredth.needed - first.needed
    == doctest::Approx(
      std::max(0.0, 3 * of.deviation + expected_maximum(100) * of.error - first.needed)));
}

TEST_CASE("the expected maximum of noise is Blom's") {
  CHECK(expected_maximum(0) == 0);
  CHECK(expected_maximum(1) == 0);
  CHECK(expected_maximum(2) == doctest::Approx(0.5895).epsilon(0.01));
  CHECK(expected_maximum(10) == doctest::Approx(1.547).epsilon(0.01));
  CHECK(expected_maximum(100) == doctest::Approx(2.50).epsilon(0.01));
  CHECK(expected_maximum(1000) == doctest::Approx(3.24).epsilon(0.01));
}

TEST_CASE("the mean is over all workloads, and none may pay for another") {
  auto good =
    blocks_of("good", {{false, 50'000}, {true, 100'000}, {true, 100'000}, {false, 50'000}});
  auto bad =
    blocks_of("bad", {{false, 130'000}, {true, 100'000}, {true, 100'000}, {false, 130'000}});
  auto paid = compare_paired(std::vector{good, bad}, 1);
  CHECK(paid.answer == gain_answer::does_not);
  CHECK(paid.log_ratio == doctest::Approx((std::log(0.5) + std::log(1.3)) / 2));
  CHECK(paid.reason.find("bad") != std::string::npos);
  auto slightly =
    blocks_of("slightly", {{false, 105'000}, {true, 100'000}, {true, 100'000}, {false, 105'000}});
  CHECK(compare_paired(std::vector{good, slightly}, 1).answer == gain_answer::improves);
}
