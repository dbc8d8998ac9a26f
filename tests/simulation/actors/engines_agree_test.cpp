// Both engines do the same things in the same order: every line that the broker writes, and every
// number that comes out.

#include "journal/event_line.hpp"
#include "simulation/actors/engine.hpp"
#include "simulation/core/engine.hpp"
#include "simulation/model/counter_stream.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace gristmill;

namespace {

struct told {
  lab_result result;
  std::vector<std::string> lines;
  /// Problem, agent, gain and time of what was tried.
  std::vector<std::string> attempts;
};

told tell(result<lab_result> (*engine)(const scenario&, lab_options), const scenario& what,
  uint64_t seed, const std::vector<recorded_agent>& recorded = {}) {
  told out;
  lab_options options;
  options.world.seed = seed;
  options.world.recorded = recorded;
  options.world.on_attempt = [&](uint32_t problem, uint32_t agent, double gain,
                               std::chrono::nanoseconds now) {
    out.attempts.push_back(std::to_string(problem) + " " + std::to_string(agent) + " "
      + std::to_string(gain) + " " + std::to_string(now.count()));
  };
  options.journal = [&](event&& e) { out.lines.push_back(canonical_line(e)); };
  auto got = engine(what, std::move(options));
  REQUIRE_MESSAGE(got, (got ? std::string{} : got.error().what));
  out.result = std::move(*got);
  return out;
}

void check_equal_lines(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  auto common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) {
    if (a[i] == b[i])
      continue;
    for (size_t j = i < 3 ? 0 : i - 3; j < i; ++j)
      MESSAGE("both   ", j, ": ", a[j]);
    for (size_t j = i; j < std::min(i + 4, common); ++j) {
      MESSAGE("core   ", j, ": ", a[j]);
      MESSAGE("actors ", j, ": ", b[j]);
    }
    FAIL_CHECK("line ", i, " of ", a.size(), " and ", b.size(), " differs");
    return;
  }
  CHECK(a.size() == b.size());
}

void check_equal(const told& a, const told& b) {
  check_equal_lines(a.lines, b.lines);
  check_equal_lines(a.attempts, b.attempts);
  const auto& x = a.result;
  const auto& y = b.result;
  CHECK(x.digest.size() == 16);
  CHECK(x.digest == y.digest);
  CHECK(x.transitions == y.transitions);
  CHECK(x.requests == y.requests);
  CHECK(x.grants == y.grants);
  CHECK(x.ended == y.ended);
  CHECK(x.hangs == y.hangs);
  CHECK(x.faults == y.faults);
  CHECK(x.lost == y.lost);
  CHECK(x.given_up == y.given_up);
  CHECK(x.leases_total == y.leases_total);
  CHECK(x.waits.cumulative() == y.waits.cumulative());
  CHECK(x.holds.cumulative() == y.holds.cumulative());
  CHECK(x.responses.cumulative() == y.responses.cumulative());
  CHECK(x.queue_area == y.queue_area);
  CHECK(x.system_area == y.system_area);
  CHECK(x.waited_s == y.waited_s);
  CHECK(x.held_s == y.held_s);
  CHECK(x.thought_s == y.thought_s);
  CHECK(x.gpu_s == y.gpu_s);
  CHECK(x.jain_seconds == y.jain_seconds);
  CHECK(x.problem_s == y.problem_s);
  REQUIRE(x.curve.size() == y.curve.size());
  for (size_t i = 0; i < x.curve.size(); ++i) {
    CHECK(x.curve[i].geomean == y.curve[i].geomean);
    CHECK(x.curve[i].gpu_hours == y.curve[i].gpu_hours);
  }
}

/// Returns what came of the last seed.
lab_result check_engines_agree(
  const scenario& what, std::initializer_list<uint64_t> seeds = {1, 2}) {
  lab_result last;
  for (auto seed : seeds) {
    CAPTURE(seed);
    auto core = tell(run_core, what, seed);
    auto actors = tell(run_actors, what, seed);
    CHECK(core.lines.size() > 100);
    check_equal(core, actors);
    last = std::move(core.result);
  }
  return last;
}

/// Forty agents on four GPUs, as busy as three hundred on twenty-seven.
scenario closed(const std::string& policy, double hours = 6) {
  scenario out;
  out.name = "closed";
  out.duration_s = hours * 3600;
  out.warm_up_s = out.duration_s / 10;
  gpu_group gpus;
  gpus.count = 4;
  gpus.per_node = 2;
  out.gpus.push_back(gpus);
  agent_group agents;
  agents.count = 40;
  out.agents.push_back(agents);
  out.think.call = {draw_kind::exponential, 85, 0, 1, 0};
  out.hold.time = {draw_kind::exponential, 24, 0, 1, 0};
  out.hold.agent_sigma = 1;
  out.lease_policy = policy;
  return out;
}

/// Everything that a scenario can have, at once.
scenario crowded() {
  auto out = closed("stride", 8);
  out.gpus[0].count = 6;
  gpu_group old;
  old.name = "old";
  old.model = "h100";
  old.count = 2;
  old.speed = 0.5;
  old.per_node = 1;
  out.gpus.push_back(old);
  agent_group picky;
  picky.name = "picky";
  picky.count = 10;
  picky.need = "b200";
  picky.weight = 3;
  picky.what = lease_class::profile;
  out.agents.push_back(picky);
  out.hold.launch_s = 0.3;
  out.hold.verify_s = 0.4;
  out.compile.time = {draw_kind::lognormal, 12, 0.7, 1, 0};
  out.compile.slots = 5;
  out.fate.hang = 0.02;
  out.fate.hang_cleanup_s = 2;
  out.fate.fault = 0.05;
  out.problems = 12;
  out.think.calls_mean = 3;
  out.think.call.mean_s = 25;
  out.think.tail_chance = 0.05;
  out.think.tail_factor = 4;
  return out;
}

} // namespace

TEST_CASE("a closed queue is the same in both engines, line by line, whatever the policy") {
  for (const auto& policy : std::vector<std::string>{"fifo", "stride", "sept", "sept(ageing=0.5)",
         "las", "lottery", "drr", "stride(by=problem)/stride(by=agent)/fifo"}) {
    CAPTURE(policy);
    check_engines_agree(closed(policy));
  }
}

TEST_CASE("launch and verification times, and holds that end at once") {
  auto what = closed("fifo");
  what.hold.launch_s = 1;
  what.hold.verify_s = 2;
  check_engines_agree(what);
  what.hold.launch_s = 0;
  what.hold.verify_s = 0;
  what.hold.time.mean_s = 0.00001;
  what.duration_s = 3600;
  check_engines_agree(what);
}

TEST_CASE("constant times, where much happens at once") {
  auto what = closed("stride");
  what.think.call = {draw_kind::constant, 80, 0, 1, 0};
  what.hold.time = {draw_kind::constant, 20, 0, 1, 0};
  what.hold.agent_sigma = 0;
  check_engines_agree(what);
}

TEST_CASE("problems with faults, hangs and compile slots") {
  auto what = crowded();
  for (const auto& policy : std::vector<std::string>{"fifo", "stride", "lottery"}) {
    CAPTURE(policy);
    what.lease_policy = policy;
    auto got = check_engines_agree(what);
    CHECK(got.hangs > 10);
    CHECK(got.faults > 10);
  }
}

TEST_CASE("the compiler on the lease") {
  auto what = crowded();
  what.compile.on_lease = true;
  check_engines_agree(what);
}

TEST_CASE("GPUs and nodes that die and come back") {
  auto what = crowded();
  what.incidents = {
    {incident_kind::gpu_down, 3000, 600, "gpu#1", 1},
    {incident_kind::node_down, 7000, 1800, "gpu-0", 1},
    {incident_kind::model_outage, 12'000, 900, "", 1},
    {incident_kind::rate_limit, 15'000, 3000, "", 0.3},
  };
  what.chance_incidents = {
    {incident_kind::gpu_down, 20'000, 300, 1},
    {incident_kind::node_down, 40'000, 500, 1},
    {incident_kind::model_outage, 30'000, 200, 1},
  };
  auto got = check_engines_agree(what, {1, 2, 3});
  CHECK(got.lost > 0);
  CHECK(got.gpu_s[static_cast<size_t>(gpu_time::down)] > 1000);
}

TEST_CASE("waits that end without a GPU") {
  auto what = closed("las");
  what.patience_s = 60;
  CHECK(check_engines_agree(what).given_up > 100);
}

TEST_CASE("recorded leases, many of them at the same instants") {
  using std::chrono::seconds;
  auto what = closed("stride");
  what.agents.clear();
  std::vector<recorded_agent> recorded;
  for (uint64_t i = 0; i < 30; ++i) {
    recorded_agent who;
    who.name = "r" + std::to_string(i);
    who.weight = 1 + uint32_t(i % 3);
    for (uint64_t n = 0; n < 40; ++n) {
      recorded_lease lease;
      lease.gap = seconds{60 + 10 * (counter_word(1, i, 3 * n) % 4)};
      lease.hold = seconds{10 * (1 + counter_word(1, i, 3 * n + 1) % 4)};
      lease.estimate = seconds{20};
      lease.problem = "p" + std::to_string(i % 5);
      lease.attempt = "a" + std::to_string(n);
      if (counter_word(1, i, 3 * n + 2) % 5 == 0)
        lease.gave_up_after = seconds{30};
      if (counter_word(1, i, 3 * n + 2) % 7 == 0)
        lease.clean_up = seconds{5};
      lease.absolute = n % 10 == 5;
      if (lease.absolute)
        lease.gap = seconds{100 * n};
      who.leases.push_back(lease);
    }
    recorded.push_back(who);
  }
  for (const auto& policy : std::vector<std::string>{"fifo", "stride", "las"}) {
    CAPTURE(policy);
    what.lease_policy = policy;
    auto core = tell(run_core, what, 1, recorded);
    auto actors = tell(run_actors, what, 1, recorded);
    CHECK(core.result.given_up > 0);
    CHECK(core.lines.size() > 1000);
    check_equal(core, actors);
  }
}

TEST_CASE("arrivals from outside") {
  auto what = closed("fifo");
  what.agents.clear();
  what.arrivals.rate = 0.13;
  check_engines_agree(what);
  what.arrivals.leases_mean = 3;
  what.arrivals.rate = 0.045;
  what.lease_policy = "sept";
  check_engines_agree(what);
}

TEST_CASE("the journal changes nothing") {
  auto what = crowded();
  auto with = tell(run_actors, what, 7);
  lab_options options;
  options.world.seed = 7;
  auto without = run_actors(what, std::move(options));
  REQUIRE(without);
  CHECK(without->digest == with.result.digest);
  CHECK(without->ended == with.result.ended);
}

TEST_CASE("another seed gives another run, the same seed the same one") {
  auto what = closed("fifo", 2);
  auto first = tell(run_actors, what, 1);
  auto again = tell(run_actors, what, 1);
  auto other = tell(run_actors, what, 2);
  check_equal(first, again);
  CHECK(other.lines != first.lines);
  CHECK(other.result.digest != first.result.digest);
}

TEST_CASE("a run that is stopped says so and leaves nothing behind") {
  lab_options options;
  int asked = 0;
  options.stop = [&] { return ++asked == 3; };
  auto got = run_actors(closed("fifo", 500), std::move(options));
  REQUIRE_FALSE(got);
  CHECK(got.error().code == errc::shutting_down);
}

TEST_CASE("progress goes up to the end") {
  lab_options options;
  std::vector<double> seen;
  options.progress = [&](double share) { seen.push_back(share); };
  REQUIRE(run_actors(closed("fifo", 200), std::move(options)));
  CHECK(seen.size() > 1);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(seen.back() == 1);
}

TEST_CASE("an unknown policy and a queue that grows without limit are errors in both engines") {
  auto what = closed("fi-fo");
  for (auto* engine : {run_core, run_actors}) {
    auto got = engine(what, {});
    REQUIRE_FALSE(got);
    CHECK(got.error().code == errc::invalid_input);
  }
  what.lease_policy = "fifo";
  what.agents.clear();
  what.arrivals.rate = 1;
  what.arrivals.jobs_max = 500;
  std::vector<failure> why;
  for (auto* engine : {run_core, run_actors}) {
    auto got = engine(what, {});
    REQUIRE_FALSE(got);
    why.push_back(got.error());
  }
  CHECK(why[0].code == errc::refused);
  CHECK(why[0] == why[1]);
}

TEST_CASE("a hundred runs one after the other in one process") {
  auto what = closed("fifo", 0.2);
  std::string digest;
  for (int i = 0; i < 100; ++i) {
    auto got = run_actors(what, {});
    REQUIRE(got);
    if (digest.empty())
      digest = got->digest;
    REQUIRE(got->digest == digest);
  }
}
