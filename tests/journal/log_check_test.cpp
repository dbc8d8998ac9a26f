#include "journal/log_check.hpp"

#include <doctest/doctest.h>
#include <functional>

using namespace gristmill;

namespace {

event make(const std::string& kind, const std::string& attempt = "", const std::string& gpu = "",
  uint64_t token = 0, const std::string& candidate = "", const std::string& data = "{}") {
  event e;
  e.incarnation = 1;
  e.kind = kind;
  e.problem = attempt.empty() ? "" : "p";
  e.attempt = attempt;
  e.gpu = gpu;
  e.token = token;
  e.candidate = candidate;
  e.data = data;
  return e;
}

/// A short sound log.
std::vector<event> sound() {
  std::vector<event> out = {make("run_started"), make("assigned", "p/cuda/0"),
    make("lease_grant", "p/cuda/0", "g", 1), make("lease_release", "p/cuda/0", "g", 1),
    make("verdict", "p/cuda/0", "", 1, "c", R"({"key":"k"})"), make("attempt_finished", "p/cuda/0"),
    make("assigned", "p/cuda/1"), make("lease_grant", "p/cuda/1", "g", 2),
    make("lease_revoke", "p/cuda/1", "g", 2), make("attempt_lost", "p/cuda/1"),
    make("run_ended", "", "", 0, "", R"({"clean":true})")};
  for (size_t i = 0; i < out.size(); ++i)
    out[i].seq = i + 1;
  return out;
}

/// The first fault after the log has been spoilt, renumbered.
std::string fault_of(const std::function<void(std::vector<event>&)>& spoil) {
  auto events = sound();
  spoil(events);
  for (size_t i = 0; i < events.size(); ++i)
    events[i].seq = i + 1;
  auto found = check_log(events);
  return found.faults.empty() ? "" : found.faults[0].what;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a sound log has no faults, and an empty one neither") {
  auto found = check_log(sound());
  CHECK(found.faults.empty());
  CHECK(found.ended);
  CHECK(found.leases == 2);
  CHECK(found.verdicts == 1);
  CHECK(check_log({}).faults.empty());
}

TEST_CASE("a hole in the numbers is a fault, with its line") {
  auto events = sound();
  events.erase(events.begin() + 5);
  auto found = check_log(events);
  REQUIRE_FALSE(found.faults.empty());
  CHECK(found.faults[0].seq == 7);
  CHECK(found.faults[0].what == "follows number 5");
}

TEST_CASE("data that is not canonical is a fault") {
  CHECK(has(fault_of([](auto& e) { e[4].data = R"({ "key": "k" })"; }), "canonical"));
  CHECK(has(fault_of([](auto& e) { e[4].data = "[]"; }), "not a JSON object"));
}

TEST_CASE("tokens of a GPU must rise") {
  CHECK(has(fault_of([](auto& e) { e[7].token = e[8].token = 1; }), "under token 1 after 1"));
}

TEST_CASE("a lease is closed exactly once") {
  CHECK(has(fault_of([](auto& e) { e.erase(e.begin() + 3); }), "never closed"));
  CHECK(has(fault_of([](auto& e) { e.insert(e.begin() + 4, e[3]); }), "not open"));
}

TEST_CASE("an attempt is given out and finished exactly once") {
  CHECK(has(fault_of([](auto& e) { e.erase(e.begin() + 5); }), "never finished"));
  CHECK(has(fault_of([](auto& e) { e.insert(e.begin() + 6, e[5]); }), "a second time"));
  CHECK(has(fault_of([](auto& e) { e.insert(e.begin() + 2, e[1]); }), "given out a second time"));
  CHECK(has(fault_of([](auto& e) { e.erase(e.begin() + 6); }), "without having been given out"));
}

TEST_CASE("a second verdict needs a re-run or a lost attempt") {
  CHECK(has(fault_of([](auto& e) { e.insert(e.begin() + 5, e[4]); }), "a second verdict"));
  CHECK(fault_of([](auto& e) {
    e.insert(e.begin() + 5, {make("rerun_planned", "p/cuda/0", "", 0, "c"), e[4]});
  }).empty());
}

TEST_CASE("in a log that goes on, what is open is counted and no fault") {
  auto events = sound();
  events.resize(3);
  auto found = check_log(events);
  CHECK(found.faults.empty());
  CHECK(found.open_leases == 1);
  CHECK(found.open_attempts == 1);
}

TEST_CASE("an incarnation never falls") {
  CHECK(has(fault_of([](auto& e) { e[0].incarnation = 2; }), "incarnation 1 after 2"));
}
