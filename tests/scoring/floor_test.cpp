#include "scoring/floor.hpp"

#include <doctest/doctest.h>
#include <limits>

using namespace gristmill;

TEST_CASE("the floor is the slower of memory traffic and arithmetic") {
  device_rates rates{4'000'000'000'000, 1'000'000'000'000'000};
  CHECK(stated_floor({4'000'000, 0}, rates)->ns == 1000);
  CHECK(stated_floor({4'000'000, 500'000'000}, rates)->ns == 1000);
  CHECK(stated_floor({4'000'000, 2'000'000'000}, rates)->ns == 2000);
}

TEST_CASE("a floor is rounded up and never 0") {
  device_rates rates{1'000'000'000, 1};
  CHECK(stated_floor({1, 0}, rates)->ns == 1);
  device_rates fast{3'000'000'000, 1};
  CHECK(stated_floor({4, 0}, fast)->ns == 2);
  CHECK(stated_floor({1, 0}, fast)->ns == 1);
  CHECK(stated_floor({0, 0}, fast)->ns == 1);
}

TEST_CASE("a floor is exact where a double is not") {
  // 2^53 + 1 bytes at one byte a nanosecond.
  device_rates rates{1'000'000'000, 1};
  CHECK(stated_floor({9'007'199'254'740'993, 0}, rates)->ns == 9'007'199'254'740'993);
}

TEST_CASE("work without a rate is an error, and so is a floor beyond 64 bits") {
  CHECK(stated_floor({1, 0}, {0, 1}).error().code == errc::invalid_input);
  auto no_flops = stated_floor({1, 1}, {1, 0});
  REQUIRE_FALSE(no_flops);
  CHECK(no_flops.error().what.find("flops") != std::string::npos);
  CHECK(stated_floor({1, 0}, {1, 0}));
  CHECK(stated_floor({std::numeric_limits<uint64_t>::max(), 0}, {1, 1}).error().code
    == errc::invalid_input);
}

TEST_CASE("a floor says how it was got") {
  auto floor = stated_floor({10, 0}, {5, 5});
  CHECK(floor->method.find("10 bytes / 5 bytes/s") != std::string::npos);
  CHECK(floor->method.find("flops not stated") != std::string::npos);
  CHECK(stated_floor({10, 7}, {5, 5})->method.find("7 flops") != std::string::npos);
}

TEST_CASE("multiply-adds of several types share one unit, beside memory and vector work") {
  device_rates rates{1'000'000'000, 1'000'000'000};
  rates.macs_per_second[static_cast<size_t>(mac_class::f16)] = 4'000'000'000;
  rates.macs_per_second[static_cast<size_t>(mac_class::f8)] = 8'000'000'000;
  work_amount work{100, 0};
  work.macs[static_cast<size_t>(mac_class::f16)] = 4000;
  work.macs[static_cast<size_t>(mac_class::f8)] = 4000;
  const auto floor = stated_floor(work, rates);
  REQUIRE(floor);
  CHECK(floor->ns == 1000 + 500);
  CHECK(floor->method.find("4000 16-bit multiply-adds / 4000000000 a second") != std::string::npos);
  work.macs[static_cast<size_t>(mac_class::f64)] = 1;
  CHECK_FALSE(stated_floor(work, rates));
}
