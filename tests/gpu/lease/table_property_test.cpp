#include "tests/gpu/lease/lease_world.hpp"

#include <chrono>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <iterator>

using namespace gristmill;
using namespace gristmill::test;

namespace {

// A sanitizer makes each schedule tens of times slower, which would run into the time limit of a
// test.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t schedules_usual = 2'000;
#else
constexpr uint64_t schedules_usual = 20'000;
#endif

/// GRISTMILL_LEASE_SCHEDULES asks for more, such as 1000000.
uint64_t schedules() {
  const char* text = std::getenv("GRISTMILL_LEASE_SCHEDULES");
  auto asked = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return asked == 0 ? schedules_usual : asked;
}

void report(const world_script& script, bool calm) {
  auto small = shrink(script, calm);
  auto end = play(small, calm);
  MESSAGE(
    "replay with GRISTMILL_LEASE_SCRIPT=file (", calm ? "calm" : "no calm", "):\n", to_text(small));
  FAIL(end.broken);
}

} // namespace

TEST_CASE("no GPU ever has two valid tokens, and nobody is forgotten, whatever is late or dead") {
  auto count = schedules();
  world_end sum;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    auto script = random_script(seed, 20 + static_cast<uint32_t>(seed % 41));
    auto end = play(script, false);
    sum.grants += end.grants;
    sum.scored += end.scored;
    sum.adopted += end.adopted;
    sum.probes += end.probes;
    sum.restarts += end.restarts;
    if (!end.broken.empty())
      report(script, false);
  }
  MESSAGE(count, " schedules: ", sum.grants, " grants, ", sum.scored, " results scored, ",
    sum.adopted, " leases adopted, ", sum.probes, " probes answered, ", sum.restarts, " restarts");
  // Else the schedules would have tested nothing.
  CHECK(sum.grants > count);
  CHECK(sum.scored > count / 20);
  CHECK(sum.adopted > count / 200);
  CHECK(sum.probes > count / 50);
}

TEST_CASE("when the weather clears every wait ends and every GPU is free again") {
  auto count = schedules() / 20;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    auto script = random_script(seed * 7919, 120);
    if (!play(script, true).broken.empty())
      report(script, true);
  }
}

TEST_CASE("a script is printed and read as the same script") {
  auto script = random_script(4711, 100);
  auto read = parse_script(to_text(script));
  REQUIRE(read);
  CHECK(read->seed == script.seed);
  CHECK(read->steps == script.steps);
  for (const char* bad : {"deliver 1 2 3\n", "world x\n", "world 1\njump 1 2 3\n",
         "world 1\ndeliver 1 2\n", "world 1\ndeliver 1 2 -3\n"})
    CHECK_FALSE(parse_script(bad));
}

TEST_CASE("the same script ends the same way") {
  auto script = random_script(99, 200);
  auto a = play(script, true);
  auto b = play(script, true);
  CHECK(a.grants == b.grants);
  CHECK(a.scored == b.scored);
}

TEST_CASE("a counter-example that was found before holds now") {
  const char* file = std::getenv("GRISTMILL_LEASE_SCRIPT");
  if (file == nullptr)
    return;
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  auto script = parse_script(text);
  REQUIRE_MESSAGE(script, script.error().what);
  for (bool calm : {false, true}) {
    auto end = play(*script, calm);
    CHECK_MESSAGE(end.broken.empty(), "step ", end.at, ": ", end.broken);
  }
}
