#include "gpu/lease/ladder.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;
using step = ladder_step;

namespace {

constexpr ladder_view stuck{true, true, false, false};
constexpr ladder_view gone{};

} // namespace

TEST_CASE("the ladder climbs at 0, 2, 5 and 30 seconds after the deadline, each step once") {
  ladder l;
  CHECK(l.due() == 0s);
  CHECK(l.next(0s, stuck) == step::mark);
  CHECK(l.next(0s, stuck) == step::wait);
  CHECK(l.due() == 2s);
  CHECK(l.next(1999ms, stuck) == step::wait);
  CHECK(l.next(2s, stuck) == step::terminate);
  CHECK(l.next(2s, stuck) == step::wait);
  CHECK(l.next(4999ms, stuck) == step::wait);
  CHECK(l.next(5s, stuck) == step::kill);
  CHECK(l.due() == 30s);
  CHECK(l.next(29s, stuck) == step::wait);
  CHECK(l.next(30s, stuck) == step::quarantine);
  CHECK(l.next(30s, stuck) == step::lost);
  CHECK(l.next(99s, stuck) == step::lost);
  CHECK(l.next(99s, gone) == step::lost);
}

TEST_CASE("what ends by itself ends the ladder, but the holder is told that it hung") {
  ladder l;
  CHECK(l.next(0s, gone) == step::mark);
  CHECK(l.next(0s, gone) == step::done);
  CHECK(l.next(40s, stuck) == step::done);
}

TEST_CASE("memory that stays after the process counts as something left") {
  ladder l;
  ladder_view memory{false, true, false, false};
  CHECK(l.next(0s, memory) == step::mark);
  CHECK(l.next(2s, memory) == step::terminate);
  CHECK(l.next(5s, memory) == step::kill);
  CHECK(l.next(29s, memory) == step::wait);
  CHECK(l.next(29s, gone) == step::done);
}

TEST_CASE("a reset is tried where it is possible; one that fails or takes too long loses the GPU") {
  ladder_view can{true, true, true, false};
  ladder_view failed{true, true, true, true};
  for (bool fails : {true, false}) {
    ladder l;
    l.next(0s, can);
    l.next(2s, can);
    l.next(5s, can);
    CHECK(l.next(30s, can) == step::quarantine);
    CHECK(l.next(30s, can) == step::reset);
    CHECK(l.next(31s, can) == step::wait);
    if (fails)
      CHECK(l.next(32s, failed) == step::lost);
    else
      CHECK(l.next(60s, can) == step::lost);
  }
  ladder l;
  for (auto t : {0s, 2s, 5s, 30s, 30s})
    l.next(t, can);
  CHECK(l.reached() == step::reset);
  CHECK(l.next(40s, gone) == step::done);
}

TEST_CASE("a supervisor that was held up still gives a process its time between the signals") {
  ladder l;
  CHECK(l.next(100s, stuck) == step::mark);
  CHECK(l.next(100s, stuck) == step::wait);
  CHECK(l.next(102s, stuck) == step::terminate);
  CHECK(l.next(104s, stuck) == step::wait);
  CHECK(l.next(105s, stuck) == step::kill);
  CHECK(l.next(129s, stuck) == step::wait);
  CHECK(l.next(130s, stuck) == step::quarantine);
}

TEST_CASE("the times of the ladder can be set") {
  ladder l({10ms, 20ms, 30ms, 5ms});
  l.next(0ms, stuck);
  CHECK(l.next(10ms, stuck) == step::terminate);
  CHECK(l.next(20ms, stuck) == step::kill);
  CHECK(l.next(30ms, stuck) == step::quarantine);
}
