#include "actors/virtual_time.hpp"

#include "tests/support/actor_fixture.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <vector>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

using listener_actor = caf::typed_actor<sig<void, tick>>;

struct heard {
  std::vector<std::pair<caf::timespan, uint64_t>> ticks;
};

/// Remembers what it hears and when; a tick of generation n below `chain` sends the next one.
class listener final : public listener_actor::base {
public:
  listener(
    caf::actor_config& config, caf::actor_clock::time_point start, heard* into, uint64_t chain)
    : listener_actor::base(config), start_(start), into_(into), chain_(chain) {}

  behavior_type make_behavior() override {
    return {[this](const tick& due) {
      into_->ticks.emplace_back(clock().now() - start_, due.generation);
      if (due.generation < chain_)
        seam::tell_later(this, 1s, listener_actor{this}, tick{due.generation + 1});
    }};
  }

private:
  caf::actor_clock::time_point start_;
  heard* into_;
  uint64_t chain_;
};

using entry = std::pair<caf::timespan, uint64_t>;

} // namespace

TEST_CASE_FIXTURE(test::actor_fixture, "timers fire at their own instants, in order of time") {
  heard h;
  auto who = spawn<listener>(start, &h, uint64_t{0});
  caf::delayed_anon_send(who, 3s, tick{3});
  caf::delayed_anon_send(who, 1s, tick{1});
  caf::delayed_anon_send(who, 2s, tick{2});
  CHECK(time.run_for(10s) == 3);
  CHECK(h.ticks == std::vector<entry>{{1s, 1}, {2s, 2}, {3s, 3}});
  CHECK(now() == 10s);
}

TEST_CASE_FIXTURE(
  test::actor_fixture, "timers of one instant fire in the order in which they were set") {
  heard h;
  auto who = spawn<listener>(start, &h, uint64_t{0});
  std::vector<entry> expected;
  for (uint64_t i = 0; i < 100; ++i) {
    caf::delayed_anon_send(who, 1s, tick{i});
    expected.emplace_back(1s, i);
  }
  time.run_for(1s);
  CHECK(h.ticks == expected);
}

TEST_CASE_FIXTURE(test::actor_fixture, "what falls due exactly at the end still fires") {
  heard h;
  auto who = spawn<listener>(start, &h, uint64_t{0});
  caf::delayed_anon_send(who, 1s, tick{1});
  caf::delayed_anon_send(who, 1s + 1ns, tick{2});
  CHECK(time.run_for(1s) == 1);
  CHECK(h.ticks.size() == 1);
  CHECK(time.run_for(1ns) == 1);
  CHECK(h.ticks.size() == 2);
}

TEST_CASE_FIXTURE(test::actor_fixture, "a chain of timers keeps exact time") {
  heard h;
  auto who = spawn<listener>(start, &h, uint64_t{100'000});
  tell(who, tick{1});
  time.run_for(200'000s);
  REQUIRE(h.ticks.size() == 100'000);
  CHECK(h.ticks.back() == entry{99'999s, 100'000});
}

TEST_CASE_FIXTURE(
  test::actor_fixture, "running until an instant in pieces is the same as at once") {
  heard h;
  auto who = spawn<listener>(start, &h, uint64_t{1000});
  tell(who, tick{1});
  uint64_t fired = 0;
  int pieces = 0;
  while (!time.run_until(start + 500s + 1ns, 7, &fired)) {
    ++pieces;
    CHECK(now() <= 500s);
  }
  CHECK(fired == 500);
  CHECK(pieces == 71);
  CHECK(h.ticks.size() == 501);
  CHECK(now() == 500s + 1ns);
}

TEST_CASE_FIXTURE(test::actor_fixture, "a dead actor's timers are dropped when they fall due") {
  heard h;
  auto who = spawn<listener>(start, &h, uint64_t{0});
  caf::delayed_anon_send(who, 1s, tick{1});
  end(who);
  CHECK(time.run_for(2s) == 1);
  CHECK(h.ticks.empty());
  CHECK(time.clock().pending() == 0);
}

namespace {

/// Timers at the same instant as messages.
struct row_of_timers : timer_source {
  std::vector<caf::actor_clock::time_point> due;
  std::function<void()> then;

  caf::actor_clock::time_point first() const override {
    return due.empty() ? caf::actor_clock::time_point::max() : due.front();
  }
  void fire() override {
    due.erase(due.begin());
    then();
  }
};

} // namespace

TEST_CASE_FIXTURE(
  test::actor_fixture, "timers of a source come before the messages of their instant") {
  heard h;
  auto who = spawn<listener>(start, &h, uint64_t{0});
  row_of_timers timers;
  timers.due = {start + 1s, start + 1s, start + 3s};
  std::vector<size_t> heard_before;
  timers.then = [&] { heard_before.push_back(h.ticks.size()); };
  time.clock().set_source(&timers);
  caf::delayed_anon_send(who, 1s, tick{1});
  caf::delayed_anon_send(who, 2s, tick{2});
  CHECK(time.run_for(2s) == 4);
  CHECK(heard_before == std::vector<size_t>{0, 0});
  CHECK(h.ticks.size() == 2);
  CHECK(time.run_for(1s) == 1);
  CHECK(heard_before == std::vector<size_t>{0, 0, 2});
  timers.due = {start + 4s};
  time.clock().set_source(nullptr);
  CHECK(time.run_for(10s) == 0);
}
