#include "actors/template_proposer.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>

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
