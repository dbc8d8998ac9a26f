#include "actors/held_results.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

held_result result_of(const std::string& key, const std::string& folder = "") {
  held_result out;
  out.key = key;
  out.device = "mock:h200#0";
  out.measured.output_folder = folder;
  out.ended.end = child_end::done;
  return out;
}

std::vector<std::string> keys(const std::vector<held_result>& all) {
  std::vector<std::string> out;
  for (const auto& one : all)
    out.push_back(one.key);
  return out;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("what ended while no hub was there is offered, oldest first") {
  held_results held;
  held.held(result_of("a", "/jobs/a"));
  held.held(result_of("b"));
  CHECK(keys(held.offer()) == texts{"a", "b"});
  CHECK(held.take_dropped().empty());
}

TEST_CASE("what a hub has been told is offered to the next one only if it was not judged") {
  held_results held;
  held.answered(result_of("judged", "/jobs/1"));
  held.answered(result_of("waits", "/jobs/2"));
  held.answered(result_of("no outputs"));
  CHECK(held.offer().empty());
  CHECK(held.judge("/jobs/1"));
  CHECK_FALSE(held.judge("/jobs/1"));
  CHECK_FALSE(held.judge(""));
  held.hub_lost();
  CHECK(keys(held.offer()) == texts{"waits"});
}

TEST_CASE("an offer that was taken is not made twice, but its outputs stay for the judge") {
  held_results held;
  held.held(result_of("a", "/jobs/a"));
  held.held(result_of("without outputs"));
  held.offered();
  CHECK(held.offer().empty());
  held.hub_lost();
  CHECK_MESSAGE(keys(held.offer()) == texts{"a"}, "nobody has judged it yet");
  CHECK(held.judge("/jobs/a"));
  CHECK(held.size() == 0);
}

TEST_CASE("what ended after the offer answers when it is asked for, once") {
  held_results held;
  held.answered(result_of("told", "/jobs/told"));
  held.held(result_of("late", "/jobs/late"));
  CHECK_FALSE(held.hand_in("told"));
  auto late = held.hand_in("late");
  REQUIRE(late);
  CHECK(late->measured.output_folder == "/jobs/late");
  CHECK_FALSE(held.hand_in("late"));
}

TEST_CASE("what measured nothing is not kept, and its outputs are dropped") {
  held_results held;
  auto dead = result_of("dead", "/jobs/dead");
  dead.ended.end = child_end::no_done;
  held.held(dead);
  auto broken = result_of("broken");
  broken.measured.failure_text = "an input is missing";
  held.held(broken);
  CHECK(held.size() == 0);
  CHECK(held.take_dropped() == texts{"/jobs/dead"});
}

TEST_CASE("beyond the limits the oldest are dropped with their outputs") {
  held_results held(held_limits{2, 1 << 20, 1});
  for (auto key : {"a", "b", "c"})
    held.held(result_of(key, std::string("/jobs/") + key));
  CHECK(keys(held.offer()) == texts{"b", "c"});
  CHECK(held.take_dropped() == texts{"/jobs/a"});
  held.answered(result_of("d", "/jobs/d"));
  held.answered(result_of("e", "/jobs/e"));
  CHECK_MESSAGE(held.take_dropped() == texts{"/jobs/d"}, "one may wait for its judge");
  held.hub_lost();
  CHECK(keys(held.offer()) == texts{"c", "e"});
}

TEST_CASE("an offer stays within the size of a message") {
  held_results held(held_limits{64, 10'000, 64});
  auto large = result_of("large");
  large.measured.workloads.resize(1);
  large.measured.workloads[0].samples_ns.resize(1'000);
  CHECK(message_bytes(large) > 8'000);
  held.held(large);
  held.held(result_of("small"));
  held.held(large);
  CHECK(held.size() == 2);
  CHECK(keys(held.offer()) == texts{"small", "large"});
}

TEST_CASE("the end of a run drops everything") {
  held_results held;
  held.held(result_of("a", "/jobs/a"));
  held.answered(result_of("b", "/jobs/b"));
  held.clear();
  CHECK(held.size() == 0);
  CHECK(held.take_dropped() == texts{"/jobs/a", "/jobs/b"});
}
