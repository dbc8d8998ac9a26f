#include "tests/simulation/replay/journals.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using gristmill::test::hand_journal;
using std::chrono::milliseconds;

namespace {

hand_journal one_lease() {
  hand_journal j;
  j.head("fifo").up("g#0");
  j.request(100, 1, "a").grant(100, 1, "a", "g#0", 1, 0);
  j.release(600, "g#0", 1).free(650, "g#0", 1);
  return j;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a lease is read from its request to the GPU that is free again") {
  auto t = one_lease().read();
  CHECK(t.source == "run");
  CHECK(t.policy == "fifo");
  REQUIRE(t.requests.size() == 1);
  const auto& r = t.requests[0];
  CHECK(t.agents.at(r.agent) == "a");
  CHECK(t.problems.at(r.problem) == "p");
  CHECK(r.asked == milliseconds{100});
  CHECK(r.granted == milliseconds{100});
  CHECK(r.released == milliseconds{600});
  CHECK(r.freed == milliseconds{650});
  CHECK(r.estimate == milliseconds{1000});
  CHECK(r.asked_line == 3);
  CHECK(r.granted_line == 4);
  CHECK(t.grants == std::vector<uint32_t>{0});
  CHECK(t.notes.empty());
}

TEST_CASE("times count from the first lease event, as the clock of a broker does not begin at 0") {
  hand_journal j;
  j.gpu(5'000'000, "gpu_up", "g#0");
  j.request(5'000'100, 1, "a").grant(5'000'100, 1, "a", "g#0", 1, 0);
  j.release(5'000'200, "g#0", 1).free(5'000'200, "g#0", 1);
  auto t = j.read();
  CHECK(t.requests.at(0).asked == milliseconds{100});
  CHECK(t.span == milliseconds{200});
  CHECK(t.policy.empty());
  CHECK_FALSE(t.agents_by_name);
}

TEST_CASE("weights, needs and what a GPU is are read where they are told") {
  hand_journal j;
  j.head("fifo").add({.kind = "gpu_up",
    .gpu = "x",
    .data = R"({"arch":"sm_90a","memory_bytes":1024,"model":"h200","node":"n1"})"});
  j.request(1, 1, "a", "p", R"(,"need":"h200","weight":3)").grant(1, 1, "a", "x", 7, 0);
  auto t = j.read();
  CHECK(t.gpus.at(0).attributes.model == "h200");
  CHECK(t.gpus.at(0).attributes.node == "n1");
  CHECK(t.gpus.at(0).attributes.memory_bytes == 1024);
  CHECK(t.requests.at(0).weight == 3);
  CHECK(t.needs.at(t.requests.at(0).need) == "h200");
}

TEST_CASE("what is still open at the end counts as over, and is told") {
  hand_journal j;
  j.head("fifo").up("g#0");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).request(10, 2, "b").request(500, 3, "c");
  auto t = j.read();
  // In an order in which a replay grants nothing more.
  CHECK(t.requests.at(1).gave_up > milliseconds{500});
  CHECK(t.requests.at(1).gave_up == t.requests.at(2).gave_up);
  CHECK(t.requests.at(0).freed > t.requests.at(1).gave_up);
  CHECK(t.requests.at(0).freed < milliseconds{501});
  REQUIRE(t.notes.size() == 2);
  CHECK(says(t.notes[0], "1 leases that were held at the end"));
  CHECK(says(t.notes[1], "2 requests that waited at the end"));
}

TEST_CASE("a GPU is away from its loss to its return, and up and suspect at once is no return") {
  hand_journal j;
  j.head("fifo").up("g#0").up("g#1");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0);
  j.add({.t = milliseconds{100},
    .kind = "lease_revoke",
    .gpu = "g#0",
    .token = 1,
    .reason = "node_lost: gone"});
  j.gpu(100, "gpu_down", "g#0", "gone").gpu(300, "gpu_up", "g#0").gpu(300, "gpu_suspect", "g#0");
  j.gpu(400, "gpu_free", "g#0").request(450, 2, "a");
  auto t = j.read();
  CHECK(t.requests.at(0).lost);
  CHECK(t.requests.at(0).freed == milliseconds{100});
  REQUIRE(t.gpus.at(0).outages.size() == 1);
  CHECK(t.gpus.at(0).outages[0].from == milliseconds{100});
  CHECK(t.gpus.at(0).outages[0].to == milliseconds{400});
  CHECK(t.gpus.at(1).outages.empty());
}

TEST_CASE("a journal that begins in the middle is read with what it has") {
  hand_journal j;
  j.grant(100, 17, "a", "g#0", 40, 60).release(200, "g#0", 40).free(200, "g#0", 40);
  j.release(250, "g#1", 3);
  auto t = j.read();
  REQUIRE(t.requests.size() == 1);
  CHECK(t.requests[0].granted == milliseconds{0});
  CHECK(t.requests[0].asked == milliseconds{0});
  REQUIRE(t.notes.size() == 2);
  CHECK(says(t.notes[0], "whose request is not in the file"));
  CHECK(says(t.notes[1], "whose grant is not in the file"));
}

TEST_CASE("a broker that starts anew numbers its tickets anew") {
  hand_journal j;
  j.head("fifo").up("g#0");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).request(5, 2, "b").request(6, 3, "c");
  j.release(10, "g#0", 1).free(10, "g#0", 1);
  j.request(20, 2, "b").grant(20, 2, "b", "g#0", 2, 0);
  auto t = j.read();
  CHECK(t.requests.size() == 4);
  CHECK(t.requests[1].gave_up == milliseconds{10});
  CHECK(says(t.notes.at(0), "2 waits that a start of the broker cut off"));
}

TEST_CASE("a damaged line is named with its number and what is wrong with it") {
  auto with = [](const event& e) {
    auto j = one_lease();
    j.add(e);
    return j.complaint();
  };
  auto at = milliseconds{700};
  CHECK(says(with({.t = at, .kind = "lease_request", .data = "{}"}), "line 7 (lease_request)"));
  CHECK(says(with({.t = at, .kind = "lease_request", .data = R"({"ticket":2,"class":"timing"})"}),
    "data.agent is missing"));
  CHECK(says(
    with(
      {.t = at, .kind = "lease_request", .data = R"({"ticket":2,"agent":"a","class":"timming"})"}),
    "known: correctness, timing"));
  CHECK(says(with({.t = at,
               .kind = "lease_request",
               .data = R"({"ticket":2,"agent":"a","class":"timing","weight":0})"}),
    "data.weight"));
  CHECK(says(with({.t = at,
               .kind = "lease_request",
               .data = R"({"ticket":2,"agent":"a","class":"timing","estimate_ns":-5})"}),
    "data.estimate_ns is not a whole number"));
  CHECK(says(with({.t = at,
               .kind = "lease_request",
               .data = R"({"ticket":2,"agent":"a","class":"timing","need":"memory=="})"}),
    "data.need"));
  CHECK(says(with({.t = at,
               .kind = "lease_grant",
               .gpu = "g#0",
               .token = 1,
               .data = R"({"agent":"a","class":"timing","ticket":9,"queue_ns":0,"term_ns":1})"}),
    "token 1 of g#0 does not come after token 1"));
  CHECK(says(with({.t = at, .kind = "gpu_free"}), "the field 'gpu' is empty"));
  CHECK(says(with({.t = at, .kind = "lease_request", .data = "[1]"}), "not a JSON object"));
  CHECK(says(with({.t = milliseconds{1}, .kind = "gpu_free", .gpu = "g#0"}), "earlier"));
  CHECK(says(with({.t = milliseconds{-1}, .kind = "gpu_free", .gpu = "g#0"}), "within 0"));
}

TEST_CASE("a GPU is never granted twice at a time") {
  hand_journal j;
  j.head("fifo").up("g#0");
  j.request(0, 1, "a").grant(0, 1, "a", "g#0", 1, 0).request(5, 2, "b");
  j.grant(6, 2, "b", "g#0", 2, 1);
  CHECK(says(j.complaint(), "line 6"));
  CHECK(says(j.complaint(), "while its lease of line 4 is not over"));
}

TEST_CASE("numbers of lines must rise, and holes among them are told") {
  lease_trace_reader reader;
  auto j = one_lease();
  auto events = j.events();
  events[4].seq = 3;
  bool refused = false;
  for (size_t i = 0; i < events.size(); ++i)
    if (auto taken = reader.take(events[i], i + 1); !taken) {
      CHECK(says(taken.error().what, "line 5 (lease_release): seq 3 does not come after seq 4"));
      refused = true;
    }
  CHECK(refused);

  lease_trace_reader other;
  for (const auto& e : j.events())
    if (e.kind != "lease_release") {
      auto taken = other.take(e, e.seq);
      CHECK(taken);
    }
  auto trace = other.finish();
  REQUIRE(trace);
  CHECK(says(trace->notes.at(0), "1 holes"));
}

TEST_CASE("a log without leases is refused") {
  hand_journal j;
  CHECK(says(j.complaint(), "nothing in it"));
  j.head("fifo").add({.kind = "verdict"});
  CHECK(says(j.complaint(), "nobody asked for a GPU"));
}

TEST_CASE("limits are refused with the line, and the time limit ends the reading") {
  auto j = one_lease();
  for (int i = 0; i < 5; ++i)
    j.request(1000 + i, static_cast<uint64_t>(10 + i), fmt::format("a{}", i));
  auto refusal = [&](const lease_trace_limits& limits) {
    lease_trace_reader reader(limits);
    for (const auto& e : j.events())
      if (auto taken = reader.take(e, e.seq); !taken) {
        CHECK(taken.error().code == errc::refused);
        return taken.error().what;
      }
    return std::string{};
  };
  CHECK(says(refusal({.requests = 3}), "line 9: more than 3 requests"));
  CHECK(says(refusal({.gpus = 0}), "line 2: more than 0 GPUs"));
  CHECK(says(refusal({.names = 4}), "line 10: more than 4 different names"));

  lease_trace_reader reader({.until = milliseconds{650}});
  for (const auto& e : j.events()) {
    auto taken = reader.take(e, e.seq);
    CHECK(taken);
  }
  CHECK(reader.over());
  auto trace = reader.finish();
  REQUIRE(trace);
  CHECK(trace->requests.size() == 1);
}

TEST_CASE("requests that say how long they will hold are no recording, and do not mix with one") {
  hand_journal j;
  j.up("g#0")
    .request(0, 1, "a", "p", R"(,"hold_ns":5000000)")
    .request(3, 2, "b", "p", R"(,"hold_ns":6000000)");
  auto t = j.read();
  CHECK(t.intended);
  CHECK(t.requests.at(1).hold == milliseconds{6});
  j.grant(4, 1, "a", "g#0", 1, 4);
  CHECK(says(j.complaint(), "this is no recording"));
}
