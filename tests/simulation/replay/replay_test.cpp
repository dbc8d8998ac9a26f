#include "simulation/replay/replay.hpp"

#include "simulation/replay/replay_plan.hpp"
#include "tests/simulation/replay/journals.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

replay_options under(const char* policy) {
  replay_options out;
  out.policies.emplace_back(policy);
  return out;
}

replay_report replayed(const lease_trace& trace, std::vector<std::string> others = {}) {
  replay_options options;
  options.policies = std::move(others);
  auto report = replay_trace(trace, options);
  REQUIRE_MESSAGE(report, report.error().what);
  return *report;
}

/// The recording and its replay under its own policy are the same, grant by grant.
void check_exact(const lease_trace& trace) {
  auto report = replayed(trace);
  REQUIRE(report.policies.size() == 1);
  const auto& own = report.policies[0];
  CHECK(own.own);
  INFO(to_text(report));
  CHECK_FALSE(own.divergence);
  CHECK(own.agreed == trace.grants.size());
  CHECK(own.shift_max == nanoseconds{0});
  CHECK(own.metrics.wait_mean_s == report.recorded.wait_mean_s);
  CHECK(own.metrics.wait_p99_s == report.recorded.wait_p99_s);
  CHECK(own.metrics.jain == report.recorded.jain);
  CHECK(own.metrics.makespan_s == report.recorded.makespan_s);
}

/// Three agents want one GPU at once; who is served first tells the policies apart: `long` came
/// first, `short` says that it is quick.
hand_journal contended(const char* policy) {
  hand_journal j;
  j.head(policy).up("g#0");
  j.request(0, 1, "first").grant(0, 1, "first", "g#0", 1, 0);
  j.request(10, 2, "long").request(20, 3, "short");
  j.release(100, "g#0", 1).free(100, "g#0", 1);
  j.grant(100, 2, "long", "g#0", 2, 90).release(400, "g#0", 2).free(400, "g#0", 2);
  j.grant(400, 3, "short", "g#0", 3, 380).release(450, "g#0", 3).free(450, "g#0", 3);
  return j;
}

} // namespace

TEST_CASE("what the simulator wrote is replayed without divergence under its own policy") {
  auto what = small_scenario();
  for (const char* policy : {"fifo", "stride", "sept(ageing=0.2)", "lottery(by=agent,seed=7)",
         "drr(by=agent)", "las(by=agent)", "rr", "maxmin", "edf", "backfill",
         "priority(order=timing>profile)/stride(by=agent)/fifo"}) {
    CAPTURE(policy);
    what.lease_policy = policy;
    auto trace = simulate_trace(what, 3);
    REQUIRE(trace.grants.size() > 500);
    check_exact(trace);
  }
}

TEST_CASE("hangs, faults and other seeds replay without divergence as well") {
  auto what = small_scenario();
  what.fate = {.hang = 0.02, .hang_cleanup_s = 5, .fault = 0.05};
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    check_exact(simulate_trace(what, seed));
  }
}

TEST_CASE("GPUs that were lost are lost at the same times of the replay") {
  auto what = small_scenario();
  what.incidents.push_back({incident_kind::gpu_down, 500, 300, "b200#0"});
  what.incidents.push_back({incident_kind::gpu_down, 1500, 100, "b200#1"});
  what.incidents.push_back({incident_kind::node_down, 2500, 60, "b200-0"});
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    auto trace = simulate_trace(what, seed);
    CHECK(trace.gpus[0].outages.size() == 2);
    check_exact(trace);
  }
}

TEST_CASE("needs keep their GPUs apart in the replay") {
  auto what = small_scenario();
  what.gpus.push_back({.name = "old", .model = "h100", .count = 2});
  what.agents[0].need = "h100";
  what.agents[1].need = "b200";
  auto trace = simulate_trace(what, 2);
  check_exact(trace);
}

TEST_CASE("another policy gives another order, and the first difference is named") {
  auto j = contended("fifo");
  auto trace = j.read();
  // What it said of itself: `describe` gives everyone the same estimate.
  trace.requests[1].estimate = milliseconds{300};
  trace.requests[2].estimate = milliseconds{50};
  auto report = replayed(trace, {"sept"});
  REQUIRE(report.policies.size() == 2);
  CHECK_FALSE(report.policies[0].divergence);
  const auto& sept = report.policies[1];
  REQUIRE(sept.divergence);
  CHECK(sept.agreed == 1);
  CHECK(sept.divergence->position == 2);
  REQUIRE(sept.divergence->recorded);
  CHECK(sept.divergence->recorded->line == 9);
  CHECK(sept.divergence->recorded->agent == "long");
  CHECK(sept.divergence->recorded->at == milliseconds{100});
  REQUIRE(sept.divergence->replayed);
  CHECK(sept.divergence->replayed->agent == "short");
  CHECK(sept.divergence->replayed->attempt == "short/3");
  CHECK(sept.divergence->replayed->gpu == "g#0");
  // long waits for short: 100 - 10 + 50 = 140 ms, short from 20 to 100.
  CHECK(sept.metrics.wait_max_s == doctest::Approx(0.140));
  CHECK(report.recorded.wait_max_s == doctest::Approx(0.380));
  CHECK(sept.metrics.makespan_s == doctest::Approx(0.450));
  auto text = to_text(report);
  CHECK(text.find("first divergence at grant 2, line 9") != std::string::npos);
}

TEST_CASE("a recording that its own policy would not have made diverges at that line") {
  // As above, but the file claims that the shortest comes first.
  auto trace = contended("sept").read();
  trace.requests[1].estimate = milliseconds{300};
  trace.requests[2].estimate = milliseconds{50};
  auto report = replayed(trace);
  REQUIRE(report.policies.at(0).divergence);
  CHECK(report.policies[0].divergence->recorded->line == 9);
}

TEST_CASE("the same request on another GPU is a divergence") {
  hand_journal j;
  j.head("fifo").up("g#0").up("g#1");
  // Of two free GPUs the first is lent.
  j.request(0, 1, "a").grant(0, 1, "a", "g#1", 1, 0).release(9, "g#1", 1).free(9, "g#1", 1);
  auto report = replayed(j.read());
  const auto& own = report.policies.at(0);
  REQUIRE(own.divergence);
  CHECK(own.divergence->position == 1);
  CHECK(own.divergence->recorded->gpu == "g#1");
  CHECK(own.divergence->replayed->gpu == "g#0");
}

TEST_CASE("a replay that grants more than was recorded diverges after the last grant") {
  hand_journal j;
  j.head("fifo").up("g#0").up("g#1");
  // g#1 was free, and yet nobody served the second.
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).request(10, 2, "b");
  j.wait_end(60, 2, "b", 50).release(100, "g#0", 1).free(100, "g#0", 1);
  auto report = replayed(j.read());
  const auto& own = report.policies.at(0);
  REQUIRE(own.divergence);
  CHECK(own.divergence->position == 2);
  CHECK_FALSE(own.divergence->recorded);
  CHECK(own.divergence->replayed->agent == "b");
  CHECK(own.divergence->replayed->gpu == "g#1");
}

TEST_CASE("a free GPU that was lent late although somebody waited was not there before") {
  hand_journal j;
  j.head("fifo").up("g#0").up("g#1");
  // Its first block of tokens was on the disk at 5 ms.
  j.request(1, 1, "a").request(2, 2, "b").grant(5, 1, "a", "g#0", 1, 4);
  j.grant(6, 2, "b", "g#1", 1, 4).release(20, "g#1", 1).free(20, "g#1", 1);
  j.free(40, "g#0", 1).request(50, 3, "b").grant(50, 3, "b", "g#0", 2, 0).free(60, "g#0", 2);
  auto trace = j.read();
  REQUIRE(trace.gpus[0].outages.size() == 1);
  CHECK(trace.gpus[0].outages[0].to == milliseconds{5});
  CHECK(trace.gpus[1].outages.at(0).to == milliseconds{6});
  CHECK(trace.notes.at(0).find("2 times a free GPU was lent only later") != std::string::npos);
  check_exact(trace);
}

TEST_CASE("a wait that was given up is given up after as long where it gets no GPU") {
  hand_journal j;
  j.head("fifo").up("g#0");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).request(10, 2, "b");
  j.wait_end(60, 2, "b", 50).release(100, "g#0", 1).free(100, "g#0", 1);
  j.request(200, 3, "b").grant(200, 3, "b", "g#0", 2, 0).release(210, "g#0", 2);
  j.free(220, "g#0", 2);
  auto trace = j.read();
  check_exact(trace);
  auto report = replayed(trace);
  CHECK(report.recorded.given_up == 1);
  CHECK(report.policies[0].metrics.given_up == 1);
}

TEST_CASE("an agent that had two leases at once is played by two of its name") {
  hand_journal j;
  j.head("fifo").up("g#0").up("g#1");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0);
  j.request(5, 2, "a").grant(5, 2, "a", "g#1", 1, 0);
  j.release(50, "g#0", 1).free(50, "g#0", 1).release(60, "g#1", 1).free(60, "g#1", 1);
  j.request(70, 3, "a").grant(70, 3, "a", "g#0", 2, 0).free(90, "g#0", 2);
  auto trace = j.read();
  auto plan = plan_replay(trace);
  REQUIRE(plan);
  REQUIRE(plan->agents.size() == 2);
  CHECK(plan->agents[0].name == "a");
  CHECK(plan->agents[1].name == "a");
  // The third follows the lease that ended last.
  CHECK(plan->agents[0].leases.size() == 1);
  CHECK(plan->agents[1].leases.size() == 2);
  CHECK(plan->agents[1].leases[1].gap == milliseconds{10});
  check_exact(trace);
}

TEST_CASE("the journal of a replay reads back as the recording") {
  auto trace = simulate_trace(small_scenario(), 4);
  lease_trace_reader reader;
  uint64_t lines = 0;
  replay_options options;
  options.journal = [&](event&& e) {
    auto taken = reader.take(e, ++lines);
    CHECK(taken);
  };
  REQUIRE(replay_trace(trace, options));
  auto again = reader.finish();
  REQUIRE(again);
  REQUIRE(again->grants.size() == trace.grants.size());
  for (size_t i = 0; i < trace.grants.size(); i += 97) {
    CHECK(again->requests[again->grants[i]].attempt == trace.requests[trace.grants[i]].attempt);
    CHECK(again->requests[again->grants[i]].granted == trace.requests[trace.grants[i]].granted);
  }
}

TEST_CASE("a file that names no policy is replayed under those that are asked for") {
  hand_journal j;
  j.up("g#0").request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).free(10, "g#0", 1);
  auto trace = j.read();
  auto report = replayed(trace, {"fifo"});
  CHECK(report.policies.size() == 1);
  CHECK_FALSE(report.policies[0].own);
  CHECK(report.notes.at(0).find("does not say under which lease policy") != std::string::npos);
  auto none = replay_trace(trace, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().what.find("give --policy") != std::string::npos);
  auto unknown = replay_trace(trace, under("fifu"));
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == errc::invalid_input);
  CHECK(unknown.error().what.find("--policy fifu") != std::string::npos);
  CHECK(unknown.error().what.find("fifo") != std::string::npos);
}

TEST_CASE("a recorded policy that is not known here is told and passed over") {
  auto trace = contended("mine_of_old").read();
  auto report = replayed(trace, {"fifo"});
  CHECK(report.policies.size() == 1);
  CHECK(report.notes.at(0).find("mine_of_old") != std::string::npos);
}

TEST_CASE("intended requests come at their time and have no recording to compare with") {
  hand_journal j;
  j.up("g#0");
  j.request(0, 1, "a", "p", R"(,"hold_ns":100000000)");
  j.request(10, 2, "b", "p", R"(,"hold_ns":100000000)");
  j.request(20, 3, "b", "p", R"(,"hold_ns":100000000)");
  auto report = replayed(j.read(), {"fifo"});
  CHECK(report.intended);
  REQUIRE(report.policies.size() == 1);
  const auto& fifo = report.policies[0];
  CHECK_FALSE(fifo.divergence);
  CHECK(fifo.metrics.grants == 3);
  // 0, 90 and 180 ms: the third does not wait for the end of the second, which is of the same
  // agent.
  CHECK(fifo.metrics.wait_mean_s == doctest::Approx(0.09));
  CHECK(fifo.metrics.utilisation == doctest::Approx(1.0));
  CHECK(to_json(report).find("divergence") == std::string::npos);
}

TEST_CASE("GPUs of strange models and more agents than there is room for are taken care of") {
  hand_journal j;
  j.head("fifo").up("a", "GPU of \\\"mine\\\"").up("b", "h100");
  j.request(0, 1, "x", "p", R"(,"need":"h100")").grant(0, 1, "x", "b", 1, 0).free(5, "b", 1);
  check_exact(j.read());

  lease_trace crowd;
  crowd.gpus.push_back({"g", {}, {}});
  crowd.problems = {"p"};
  crowd.needs = {""};
  crowd.agents = {"a"};
  for (int i = 0; i < 17'000; ++i) {
    traced_request r;
    r.intended = true;
    r.hold = milliseconds{1};
    crowd.requests.push_back(r);
  }
  auto refused = replay_trace(crowd, under("fifo"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what.find("more than the simulator has room for") != std::string::npos);
}
