#include "gpu/lease/admission.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

measure_request asked(uint64_t token, uint32_t part = 0, uint32_t gpu = 2) {
  measure_request what;
  what.under.gpu = gpu;
  what.under.token = token;
  what.part = part;
  return what;
}

executor_state idle(uint64_t fence) {
  executor_state out;
  out.name = "mock:h200#2";
  out.gpu = 2;
  out.fence = fence;
  return out;
}

executor_state between_parts() {
  auto out = idle(5);
  out.lease = executor_state::open_lease{5, 1, true, false, false};
  return out;
}

errc refusal(const executor_state& executor, const measure_request& what) {
  auto got = admit(executor, what);
  REQUIRE_FALSE(got);
  return got.error().code;
}

} // namespace

TEST_CASE("a token starts once, and only a newer one than all that were seen") {
  CHECK(admit(idle(5), asked(6)) == admission::first_part);
  CHECK(refusal(idle(5), asked(5)) == errc::lease_expired);
  CHECK(refusal(idle(5), asked(4)) == errc::lease_expired);
}

TEST_CASE("the lease of another GPU is refused whatever its token") {
  CHECK(refusal(idle(5), asked(6, 0, 1)) == errc::invalid_input);
}

TEST_CASE("nothing new starts while a lease is open or the device is looked at") {
  CHECK(refusal(between_parts(), asked(6)) == errc::refused);
  auto probed = idle(5);
  probed.is_probed = true;
  CHECK(refusal(probed, asked(6)) == errc::refused);
}

TEST_CASE("within a lease parts grow, one at a time") {
  CHECK(admit(between_parts(), asked(5, 2)) == admission::next_part);
  CHECK(admit(between_parts(), asked(5, 9)) == admission::next_part);
  CHECK(refusal(between_parts(), asked(5, 1)) == errc::lease_expired);
  CHECK(refusal(between_parts(), asked(5, 0)) == errc::lease_expired);
  auto busy = between_parts();
  busy.lease->awaits_part = false;
  CHECK(refusal(busy, asked(5, 2)) == errc::refused);
}

TEST_CASE("a lease that ends or whose term is over takes no further part") {
  auto ending = between_parts();
  ending.lease->is_ending = true;
  CHECK(refusal(ending, asked(5, 2)) == errc::lease_expired);
  auto over = between_parts();
  over.lease->term_is_over = true;
  CHECK(refusal(over, asked(5, 2)) == errc::lease_expired);
}
