#include "cli/lease_log.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

struct log_fixture {
  std::vector<event> events;

  event& add(std::chrono::nanoseconds t, const char* kind, const char* gpu = "", uint64_t token = 0,
    const char* data = "{}", const char* reason = "") {
    event e;
    e.seq = events.size() + 1;
    e.incarnation = 1;
    e.t = t;
    e.kind = kind;
    e.gpu = gpu;
    e.token = token;
    e.data = data;
    e.reason = reason;
    events.push_back(e);
    return events.back();
  }

  void lease(std::chrono::nanoseconds from, std::chrono::nanoseconds wait,
    std::chrono::nanoseconds hold, uint64_t token, const char* agent) {
    auto data = nlohmann::json{{"agent", agent}, {"class", "timing"}, {"ticket", token},
      {"queue_ns", wait.count()}, {"term_ns", 120'000'000'000}}
                  .dump();
    add(from, "lease_request", "", 0, data.c_str()).problem = "silu";
    add(from + wait, "lease_grant", "a", token, data.c_str()).problem = "silu";
    add(from + wait, "lease_active", "a", token);
    add(from + wait + hold, "lease_release", "a", token, "{}", "done");
    add(from + wait + hold, "gpu_free", "a", token);
  }

  lease_log read(std::chrono::nanoseconds now = 0s) {
    auto got = read_lease_log(events, now);
    REQUIRE(got);
    return *got;
  }
};

} // namespace

TEST_CASE_FIXTURE(log_fixture, "an empty log has no GPUs and every count") {
  auto log = read();
  CHECK(log.gpus.empty());
  CHECK(log.counts.at("grants") == 0);
  CHECK(log.counts.size() == 18);
  CHECK(log.wait.count == 0);
  CHECK(to_text(log).find("none") != std::string::npos);
}

TEST_CASE_FIXTURE(log_fixture, "waits and holds are values that were seen, by nearest rank") {
  add(0s, "run_started", "", 0, R"({"lease_policy":"stride"})");
  for (int i = 0; i < 20; ++i)
    lease(100s * i, 1s * i, 10s + 1s * i, static_cast<uint64_t>(i + 1), i % 4 == 0 ? "x" : "y");
  add(3000s, "run_ended");
  auto log = read(9999s);
  CHECK(log.ended);
  CHECK_MESSAGE(log.as_of == 3000s, "a run that is over does not age");
  CHECK(log.policy == "stride");
  CHECK(log.wait.count == 20);
  CHECK(log.wait.p50 == 9s);
  CHECK(log.wait.p95 == 18s);
  CHECK(log.wait.max == 19s);
  CHECK(log.hold.p50 == 19s);
  CHECK(log.counts.at("grants") == 20);
  CHECK(log.counts.at("releases") == 20);
  REQUIRE(log.usage.size() == 2);
  CHECK(log.usage[0].flow == lease_flow{"silu", "x"});
  CHECK(log.usage[0].leases == 5);
  CHECK(log.usage[0].held_ns == 90'000'000'000);
  CHECK(log.queue.empty());
}

TEST_CASE_FIXTURE(log_fixture, "a run that goes on shows who holds, who waits, and for how long") {
  lease(0s, 0s, 10s, 1, "x");
  add(20s, "lease_request", "", 0, R"({"agent":"x","class":"profile","ticket":7})").problem = "p";
  add(20s, "lease_grant", "a", 2,
    R"({"agent":"x","class":"profile","queue_ns":0,"term_ns":300000000000,"ticket":7})")
    .problem = "p";
  add(21s, "lease_request", "", 0, R"({"agent":"y","class":"timing","ticket":8,"need":"h200"})");
  add(22s, "alarm", "a", 0, R"({"detail":"holds it","ticket":7})", "idle_while_leased");
  auto log = read(30s);
  CHECK_FALSE(log.ended);
  REQUIRE(log.gpus.size() == 1);
  CHECK(log.gpus[0].phase == gpu_phase::granted);
  CHECK(log.gpus[0].held == 10s);
  CHECK(log.gpus[0].what == lease_class::profile);
  CHECK(log.gpus[0].token == 2);
  REQUIRE(log.queue.size() == 1);
  CHECK(log.queue[0].ticket == 8);
  CHECK(log.queue[0].waited == 9s);
  CHECK(log.queue[0].estimated_wait == 10s);
  CHECK(log.queue[0].need == "h200");
  CHECK(log.alarms.size() == 1);
  add(31s, "alarm_over", "a", 0, R"({"ticket":7})", "idle_while_leased");
  CHECK(read(32s).alarms.empty());
}

TEST_CASE_FIXTURE(log_fixture, "every way that a lease or a GPU ends is counted and shown") {
  auto grant = R"({"agent":"x","class":"timing","queue_ns":1,"term_ns":5,"ticket":1})";
  add(1s, "lease_grant", "a", 1, grant);
  add(2s, "lease_revoke", "a", 1, "{}", "expired");
  add(3s, "gpu_down", "a", 1, "{}", "nobody verified");
  add(3s, "lease_grant", "b", 1, grant);
  add(4s, "lease_withdraw", "b", 1);
  add(5s, "lease_tainted", "b", 1);
  add(5s, "gpu_suspect", "b", 1, "{}", "a probe failed");
  add(6s, "gpu_probe", "b", 1, "{}", "failed");
  add(7s, "gpu_probe", "b", 1, "{}", "could not probe");
  add(8s, "gpu_quarantined", "b", 1, "{}", "3 probes in a row failed");
  add(9s, "lease_wait_end", "", 0, R"({"ticket":9})");
  auto log = read(10s);
  CHECK(log.gpus[0].phase == gpu_phase::lost);
  CHECK(log.gpus[1].phase == gpu_phase::quarantined);
  CHECK(log.gpus[1].reason == "3 probes in a row failed");
  CHECK(log.gpus[1].age == 2s);
  for (const char* name : {"expiries", "revocations", "withdrawals", "tainted", "gpus_lost",
         "quarantines", "probes_failed", "probes_without_answer", "waits_in_vain"})
    CHECK_MESSAGE(log.counts.at(name) == 1, name);
  CHECK(log.hold.count == 2);
  auto json = nlohmann::json::parse(to_json(log));
  CHECK(json.at("gpus").at(1).at("phase") == "quarantined");
  CHECK(json.at("counts").at("expiries") == 1);
}

TEST_CASE_FIXTURE(log_fixture, "a GPU whose executor the end of the run sent home is not lost") {
  const auto ended = "its executor has ended";
  lease(0s, 0s, 10s, 1, "x");
  add(11s, "gpu_down", "gone", 0, "{}", ended);
  add(12s, "gpu_down", "broken", 0, "{}", "nobody verified");
  add(13s, "attempt_finished").attempt = "silu/cuda/0";
  add(14s, "gpu_down", "a", 1, "{}", ended);
  add(14s, "gpu_down", "b", 0, "{}", ended);
  add(14s, "gpu_down", "torn", 0, "{}", "nobody verified");
  auto open = read(15s);
  CHECK_MESSAGE(open.counts.at("gpus_lost") == 5, "a run that goes on may still need them");
  add(15s, "run_ended");
  auto log = read(99s);
  CHECK(log.counts.at("gpus_lost") == 3);
  const auto shown = nlohmann::json::parse(to_json(log)).at("gpus");
  REQUIRE(shown.size() == 5);
  for (const auto& g : shown) {
    CAPTURE(g.dump());
    const bool over = g.at("name") == "a" || g.at("name") == "b";
    CHECK(g.at("phase") == (over ? "ended" : "lost"));
    CHECK((g.at("reason") == "the run is over") == over);
  }
  CHECK(to_text(log).find("ended") != std::string::npos);
}

TEST_CASE_FIXTURE(log_fixture, "broken data is refused with the number of its event") {
  add(1s, "lease_grant", "a", 1);
  add(2s, "lease_release", "a", 1, "{");
  auto got = read_lease_log(events, 3s);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == errc::invalid_input);
  CHECK(got.error().what.find("event 2") != std::string::npos);
}

TEST_CASE_FIXTURE(log_fixture, "numbers of the wrong type or far too large do no harm") {
  add(1s, "lease_grant", "a", 1,
    R"({"agent":7,"class":"none","queue_ns":-5,"term_ns":18446744073709551615,"ticket":"x"})");
  add(0s, "gpu_free", "a", 1);
  CHECK(read().hold.count == 1);
}
