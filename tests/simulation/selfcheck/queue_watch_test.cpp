#include "simulation/selfcheck/queue_watch.hpp"

#include "simulation/selfcheck/mutants.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

waiter waiter_of(uint64_t ticket, nanoseconds arrived, const std::string& problem = "a",
  lease_class what = lease_class::timing) {
  waiter out;
  out.ticket = ticket;
  out.arrived = arrived;
  out.flow.problem = problem;
  out.what = what;
  out.est_hold = 1s;
  return out;
}

} // namespace

TEST_CASE("the watch adds up waits, holds and the area of the queue") {
  queue_watch watch(1, 0s);
  auto policy = watch.before(make_fifo_policy());
  policy->on_request(waiter_of(1, 1s));
  policy->on_grant(1, 0, 1s);
  policy->on_request(waiter_of(2, 2s, "b", lease_class::profile));
  CHECK(policy->pick({0, 1}, 5s) == 2);
  policy->on_release({1, 0, 4s}, "done", 5s);
  policy->on_grant(2, 0, 5s);
  policy->on_release({2, 0, 3s}, "done", 8s);
  watch.close(10s);
  CHECK(watch.waiting_area_s() == doctest::Approx(3));
  CHECK(watch.idle_s() == 0);
  CHECK(watch.of(lease_class::timing).waited == 0s);
  CHECK(watch.of(lease_class::profile).waited == 3s);
  CHECK(watch.of(lease_class::profile).held == 3s);
  CHECK(watch.by_problem().at("a").held == 4s);
  CHECK(watch.by_problem().at("a").longest_held == 4s);
  CHECK(watch.ends_s(lease_class::timing) == doctest::Approx(5));
  CHECK(watch.ends_s(lease_class::profile) == doctest::Approx(8));
}

TEST_CASE("a GPU that is free while somebody waits is seen") {
  queue_watch watch(2, 0s);
  auto policy = watch.before(make_fifo_policy());
  policy->on_request(waiter_of(1, 1s));
  policy->on_grant(1, 0, 1s);
  policy->on_request(waiter_of(2, 2s));
  policy->on_request(waiter_of(3, 4s));
  policy->on_grant(2, 1, 7s);
  policy->on_grant(3, 1, 7s);
  watch.close(10s);
  // From 2 s to 7 s one of two GPUs is free, and one or two wait.
  CHECK(watch.idle_s() == doctest::Approx(5));
}

TEST_CASE("what comes before the warm-up is over does not count") {
  queue_watch watch(1, 10s);
  auto policy = watch.before(make_fifo_policy());
  policy->on_request(waiter_of(1, 1s));
  policy->on_request(waiter_of(2, 2s));
  policy->on_grant(1, 0, 4s);
  policy->on_release({1, 0, 8s}, "done", 12s);
  policy->on_grant(2, 0, 12s);
  watch.close(20s);
  CHECK(watch.waiting_area_s() == doctest::Approx(2));
  CHECK(watch.idle_s() == 0);
  CHECK(watch.of(lease_class::timing).grants == 2);
  CHECK(watch.of(lease_class::timing).measured == 1);
  CHECK(watch.of(lease_class::timing).waited == 10s);
}

TEST_CASE("the mutant lifo serves the newest request") {
  auto policy = with_mutant(mutant_kind::lifo, make_fifo_policy(), 4);
  policy->on_request(waiter_of(1, 1s));
  policy->on_request(waiter_of(2, 2s));
  CHECK(policy->pick({0, 1}, 3s) == 2);
  CHECK(policy->clone()->pick({0, 1}, 3s) == 2);
  policy->on_cancel(2);
  CHECK(policy->pick({0, 1}, 3s) == 1);
}

TEST_CASE("the mutant lost-wakeup names nobody every eighth time that somebody could be named") {
  auto policy = with_mutant(mutant_kind::lost_wakeup, make_fifo_policy(), 4);
  CHECK_FALSE(policy->pick({0, 1}, 0s));
  policy->on_request(waiter_of(1, 1s));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 7; ++i)
      CHECK(policy->pick({0, 1}, 1s) == 1);
    CHECK_FALSE(policy->pick({0, 1}, 1s));
  }
}

TEST_CASE("the mutant ignore-free-gpu never uses the last free GPU") {
  auto policy = with_mutant(mutant_kind::ignore_free_gpu, make_fifo_policy(), 2);
  policy->on_request(waiter_of(1, 1s));
  policy->on_request(waiter_of(2, 1s));
  CHECK(policy->pick({0, 1}, 1s) == 1);
  policy->on_grant(1, 0, 1s);
  CHECK_FALSE(policy->pick({1, 1}, 1s));
  policy->on_release({1, 0, 1s}, "done", 2s);
  CHECK(policy->pick({0, 1}, 2s) == 2);
}

TEST_CASE("without a mutant the policy is what it was, and names of mutants are checked") {
  auto policy = make_fifo_policy();
  const auto* before = policy.get();
  CHECK(with_mutant(mutant_kind::none, std::move(policy), 1).get() == before);
  for (const auto each : mutants())
    CHECK(mutant_from_text(to_string(each)).value() == each);
  const auto wrong = mutant_from_text("lost-wakup");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == errc::invalid_input);
  CHECK(wrong.error().what.find("lost-wakeup") != std::string::npos);
}
