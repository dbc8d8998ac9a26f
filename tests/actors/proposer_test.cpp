#include "actors/candidate.hpp"
#include "actors/template_proposer.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>

using namespace gristmill;
using namespace gristmill::test;

namespace {

struct with_proposer : actor_fixture {
  small_run run;
  proposer_actor whom = spawn<template_proposer>(run.context);
  assignment work;

  with_proposer() {
    work.id = {"softmax", "cuda", 3};
    work.seed = 5;
    work.graph = *run.context->blobs->put(run.context->problems.at("softmax").graph_json);
  }

  reply<proposal> propose() { return ask<proposal>(whom, propose_request{work}); }
  proposal proposed() {
    auto got = answer(propose());
    REQUIRE(got);
    return *got;
  }
};

} // namespace

TEST_CASE_FIXTURE(
  with_proposer, "a search proposes a stored candidate, the same for equal assignments") {
  auto first = proposed();
  REQUIRE_MESSAGE(first.kind == proposal_kind::candidate, first.reason);
  CHECK(run.context->blobs->has(first.candidate.source));
  CHECK(run.context->blobs->has(first.candidate.plan));
  CHECK(first.candidate.hash.size() == 64);
  CHECK(proposed().candidate == first.candidate);
  work.in_flight = {first.candidate.key};
  auto second = proposed();
  REQUIRE(second.kind == proposal_kind::candidate);
  CHECK(second.candidate.key != first.candidate.key);
}

TEST_CASE_FIXTURE(with_proposer, "a baseline is the frozen plain kernel") {
  work.kind = attempt_kind::baseline;
  auto got = proposed();
  REQUIRE(got.kind == proposal_kind::candidate);
  CHECK(got.candidate.key == "plain/1");
}

TEST_CASE_FIXTURE(with_proposer, "a given candidate is handed on as it is") {
  candidate_ref given;
  given.hash = "h";
  given.key = "mine.cu";
  work.given = given;
  work.kind = attempt_kind::planted;
  CHECK(proposed().candidate == given);
}

TEST_CASE_FIXTURE(with_proposer, "a problem without a graph has no candidate") {
  work.graph = {};
  CHECK(proposed().kind == proposal_kind::no_candidate);
}

TEST_CASE_FIXTURE(
  with_proposer, "what is missing or broken is an error, and the proposer lives on") {
  SUBCASE("unknown problem") {
    work.id.problem = "max";
    CHECK(refusal(propose()).code == errc::not_found);
  }
  SUBCASE("a graph that is gone") {
    work.graph.sha256 = std::string(64, 'a');
    CHECK(refusal(propose()).code == errc::not_found);
  }
  SUBCASE("a graph that does not parse") {
    work.graph = *run.context->blobs->put("{");
    CHECK(refusal(propose()).code == errc::invalid_input);
  }
  CHECK(alive(whom));
}

TEST_CASE_FIXTURE(with_proposer, "the scripted proposer searches nothing but measures a baseline") {
  whom = spawn<scripted_proposer>(run.context);
  CHECK(proposed().kind == proposal_kind::exhausted);
  work.kind = attempt_kind::baseline;
  CHECK(proposed().kind == proposal_kind::candidate);
}

TEST_CASE_FIXTURE(with_proposer, "what is proposed can be launched at every workload") {
  for (int i = 0; i < 12; ++i) {
    auto got = proposed();
    REQUIRE(got.kind == proposal_kind::candidate);
    CHECK(resolve_candidate(*run.context, "softmax", got.candidate));
    CHECK(got.effort == attempt_effort::full); // Two workloads are too few for a probe.
    CHECK(got.workloads.empty());
    work.in_flight.push_back(got.candidate.key);
  }
}

TEST_CASE_FIXTURE(with_proposer, "the fixed searches propose other points than the guided one") {
  const auto guided = proposed().candidate.key;
  auto library = std::make_shared<search_library>();
  whom = spawn<template_proposer>(run.context, library, search_strategy::random);
  std::set<std::string> drawn;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    work.seed = seed;
    drawn.insert(proposed().candidate.key);
  }
  CHECK(drawn.size() > 2);
  whom = spawn<template_proposer>(run.context, library, search_strategy::exhaustive);
  const auto first = proposed().candidate.key;
  work.seed = 77;
  CHECK(proposed().candidate.key == first);
  work.in_flight = {first};
  CHECK(proposed().candidate.key != first);
  // Baselines are the same for all.
  work.kind = attempt_kind::baseline;
  CHECK(proposed().kind == proposal_kind::candidate);
}

namespace {

struct with_two_problems : actor_fixture {
  small_run run{{"softmax", "sibling"}};
  std::shared_ptr<search_library> library = std::make_shared<search_library>();
  proposer_actor whom = spawn<template_proposer>(run.context, library);
  proposer_actor other = spawn<template_proposer>(run.context, library);

  proposal proposed(const proposer_actor& by, const assignment& work) {
    auto got = answer(ask<proposal>(by, propose_request{work}));
    REQUIRE(got);
    REQUIRE(got->kind == proposal_kind::candidate);
    return *got;
  }
  assignment work_on(const std::string& problem) {
    assignment work;
    work.id = {problem, "cuda", 3};
    work.graph = *run.context->blobs->put(run.context->problems.at(problem).graph_json);
    return work;
  }
};

trial passed(const std::string& key, uint64_t ns) {
  trial out;
  out.key = key;
  out.status = verdict_status::passed;
  out.objective_ns = ns;
  return out;
}

} // namespace

TEST_CASE_FIXTURE(
  with_two_problems, "the best of a problem of equal structure is tried right after the first") {
  auto work = work_on("softmax");
  const auto first = proposed(whom, work).candidate.key;
  work.in_flight = {first};
  const auto best = proposed(whom, work).candidate.key;
  work.in_flight.clear();
  work.history = {passed(first, 900), passed(best, 500)};
  proposed(whom, work); // It has seen the history now.
  auto sibling = work_on("sibling");
  CHECK(proposed(other, sibling).candidate.key == first);
  sibling.history = {passed(first, 900)};
  const auto next = proposed(other, sibling);
  CHECK(next.candidate.key == best);
  CHECK(next.candidate.hypothesis.find("equal structure") != std::string::npos);
}
