#include "scoring/incumbents.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

judge_request asked(const std::string& hash, measure_purpose purpose = measure_purpose::screen) {
  judge_request out;
  out.attempt = {"softmax", "cuda", 1};
  out.candidate.hash = hash;
  out.candidate.key = "key of " + hash;
  out.purpose = purpose;
  return out;
}

/// A promotion against that candidate, in one pair of blocks; no blocks for a time of 0.
judge_request promotion(const std::string& hash, const std::string& against, uint64_t ns) {
  auto out = asked(hash, measure_purpose::promotion);
  rival other;
  other.candidate.hash = against;
  out.against = other;
  workload_measurement w;
  w.uuid = "w";
  if (ns != 0)
    w.blocks = {{true, 100'000, 10, 50}, {false, ns, 10, 50}};
  out.measured.workloads.push_back(w);
  return out;
}

verdict passed(uint64_t ns) {
  verdict v;
  v.status = verdict_status::passed;
  v.objective_ns = ns;
  return v;
}

} // namespace

TEST_CASE("without promotions a screening replaces the incumbent when it is faster") {
  incumbents all;
  for (const auto& [hash, ns] : {std::pair{"a", 100}, std::pair{"b", 100}, std::pair{"c", 90}}) {
    auto v = passed(static_cast<uint64_t>(ns));
    CHECK(all.weigh(asked(hash), false, v).empty());
    CHECK_FALSE(v.wants_promotion);
  }
  const auto* best = all.find({"softmax", "cuda", 7});
  REQUIRE(best != nullptr);
  CHECK(best->candidate.hash == "c");
  CHECK(best->tried == 3);
  CHECK(all.find({"softmax", "triton", 1}) == nullptr);
}

TEST_CASE("with promotions a faster screening wants one and replaces nobody") {
  incumbents all;
  auto first = asked("plain");
  first.kind = attempt_kind::baseline; // Nobody chose it among others.
  auto v = passed(100'000);
  all.weigh(first, true, v);
  CHECK_FALSE(v.wants_promotion);
  auto faster = passed(90'000);
  all.weigh(asked("a"), true, faster);
  CHECK(faster.wants_promotion);
  CHECK(faster.incumbent->hash == "plain");
  CHECK(all.find({"softmax", "cuda", 1})->candidate.hash == "plain");
  for (const auto& [hash, ns] : {std::pair{"a", 100'000}, std::pair{"plain", 50'000}}) {
    auto leads_nowhere = passed(static_cast<uint64_t>(ns));
    all.weigh(asked(hash), true, leads_nowhere);
    CHECK_FALSE(leads_nowhere.wants_promotion);
  }
  CHECK(all.find({"softmax", "cuda", 1})->candidate.hash == "plain");
}

TEST_CASE("a promotion that gains replaces the incumbent, even with a time that is not smaller") {
  incumbents all;
  all.of({"softmax", "cuda", 1}).take(asked("old").candidate, 80'000, false);
  auto v = passed(90'000); // The clock is slower today: the blocks know, 100000 against 90000.
  CHECK(all.weigh(promotion("new", "old", 90'000), true, v).find("%") != std::string::npos);
  CHECK_FALSE(v.incumbent_stays);
  CHECK(all.find({"softmax", "cuda", 1})->candidate.hash == "new");
  CHECK(all.find({"softmax", "cuda", 1})->objective_ns == 90'000);
}

TEST_CASE("a promotion without a gain, or with blocks that cannot be read, replaces nobody") {
  incumbents all;
  all.of({"softmax", "cuda", 1}).take(asked("old").candidate, 100'000, false);
  auto v = passed(99'990);
  all.weigh(promotion("new", "old", 99'990), true, v);
  CHECK(v.incumbent_stays);
  CHECK(v.reason.starts_with("the incumbent stays: "));
  auto unread = passed(50'000);
  all.weigh(promotion("new", "old", 0), true, unread);
  CHECK(unread.status == verdict_status::infrastructure);
  CHECK(all.find({"softmax", "cuda", 1})->candidate.hash == "old");
}

TEST_CASE("whoever was overtaken during its promotion faces the new incumbent, if it is faster") {
  incumbents all;
  all.of({"softmax", "cuda", 1}).take(asked("other").candidate, 90'000, false);
  auto slower = passed(95'000);
  CHECK(all.weigh(promotion("new", "old", 95'000), true, slower)
    == "key of other has become the incumbent meanwhile, with 90000 ns");
  CHECK(slower.incumbent_stays);
  auto faster = passed(80'000);
  all.weigh(promotion("new", "old", 80'000), true, faster);
  CHECK(faster.wants_promotion);
  CHECK(faster.incumbent->hash == "other");
  CHECK(all.find({"softmax", "cuda", 1})->candidate.hash == "other");
}

TEST_CASE("the first candidate of a problem is promoted against nobody") {
  incumbents all;
  auto v = passed(100);
  auto alone = asked("a", measure_purpose::promotion);
  CHECK(all.weigh(alone, true, v).empty());
  CHECK(all.find({"softmax", "cuda", 1})->candidate.hash == "a");
}
