#include "actors/measure_key.hpp"
#include "actors/prepare_jobs.hpp"
#include "messages/cluster.hpp"
#include "tests/actors/node_run.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace gristmill;
using namespace gristmill::test;

namespace {

struct two_machines : travelling_run {
  temporary_folder there;
  node_folders own;

  two_machines() {
    own.directory = there.path / "run-1";
    own.programs = there.path / "bin";
    own.blobs = std::make_shared<blob_store>(*blob_store::open(there.path / "blobs"));
  }

  result<run_context> arrive(const run_terms& terms) {
    auto read = run_terms_from_json(to_json(terms));
    REQUIRE_MESSAGE(read, (read ? "" : read.error().what));
    for (const auto& ref : blobs_of(*read))
      copy_blob(*here->blobs, *own.blobs, ref);
    return make_node_context(*read, own);
  }
};

/// The job without the paths, which are each machine's own.
std::string without(std::string text, const std::string& folder) {
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.replace(at, folder.size(), "HERE");
  return text;
}

std::string oracle_job(const run_context& context) {
  auto made = build_prepare_job(context, context.problems.at("softmax"));
  REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  job what;
  what.kind = job_kind::prepare;
  what.prepare = *made;
  return without(to_json(what), context.directory.string());
}

bounds_table some_bounds() {
  bounds_table out;
  out.source = "a paper";
  out.date = "2026-01-01";
  out.device = "mock:h200";
  for (auto uuid : {"even-4x8", "odd-3x5"})
    out.problems["softmax"][uuid] = {0.1, 1'234.5};
  return out;
}

measure_request some_request() {
  measure_request out;
  out.attempt = {"softmax", "cuda", 3};
  out.candidate.hash = "c";
  out.candidate.source.sha256 = std::string(64, '1');
  out.candidate.plan.sha256 = std::string(64, '2');
  out.units = {{"unit", {std::string(64, '3'), 10}, {{"kernel<1>", "k1"}}}};
  out.workloads = {"a", "b"};
  return out;
}

} // namespace

TEST_CASE_FIXTURE(two_machines, "a node makes the same inputs as its coordinator") {
  auto arrived = arrive(terms());
  REQUIRE_MESSAGE(arrived, (arrived ? "" : arrived.error().what));
  // The job holds keys, shapes, sets and tolerances: everything that inputs follow from.
  CHECK(oracle_job(*arrived) == oracle_job(*here));
  CHECK(arrived->directory == own.directory);
  CHECK(arrived->programs == own.programs);
  auto other = *here;
  other.secret[5] ^= 1;
  CHECK_MESSAGE(oracle_job(other) != oracle_job(*here), "the secret is in the job");
}

TEST_CASE_FIXTURE(two_machines, "everything that the terms hold is in the context of a node") {
  here->device_title = "NVIDIA H200";
  here->measured = true;
  here->floor_macs_per_second = {1, 2, 3, 4, 5, 6};
  here->shortest_kernel_ns = 7;
  here->write_bytes_per_second = 8;
  here->program = "p";
  here->oracle = "native";
  here->check_elements_max = 9;
  here->sets_bytes_max = 10;
  here->sets_macs_max = 11;
  here->promote = true;
  here->samples = 12;
  here->flush = "clean";
  here->instruction_limit = 13;
  here->bounds = some_bounds();
  auto sent = terms();
  auto arrived = arrive(sent);
  REQUIRE_MESSAGE(arrived, (arrived ? "" : arrived.error().what));
  REQUIRE(arrived->bounds);
  CHECK(arrived->bounds->problems == here->bounds->problems);
  CHECK(arrived->bounds->source == "a paper");
  // Terms made of that context are the same: nothing was lost.
  run_terms_rest rest{sent.run, sent.rehearsal, sent.proposer, sent.estimated_hold, sent.run_end};
  auto again = make_run_terms(*arrived, rest);
  REQUIRE_MESSAGE(again, (again ? "" : again.error().what));
  CHECK(*again == sent);
}

TEST_CASE_FIXTURE(two_machines, "a built-in problem does not travel, and has to be known") {
  here->problems.clear();
  here->problems.emplace("softmax", context->problems.at("softmax"));
  auto sent = terms();
  CHECK(blobs_of(sent).empty());
  auto arrived = arrive(sent);
  REQUIRE_MESSAGE(arrived, (arrived ? "" : arrived.error().what));
  sent.problems[0].name = "sofmax";
  auto refused = arrive(sent);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_input);
  CHECK(refused.error().what.find("softmax") != std::string::npos);
}

TEST_CASE_FIXTURE(two_machines, "what a node lacks is told before anything is begun") {
  auto sent = terms();
  SUBCASE("a file that has not arrived") {
    auto made = make_node_context(sent, own);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::not_found);
  }
  SUBCASE("an interpreter") {
    sent.oracle = "torch";
    auto made = arrive(sent);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::unsupported);
    CHECK(made.error().what.find("--python") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(two_machines, "terms that do not fit a message are refused at the start") {
  auto one = here->problems.at("softmax");
  for (int i = 0; i < 2'000; ++i)
    here->problems.emplace("softmax-" + std::to_string(i), one);
  auto made = make_run_terms(*here, {});
  REQUIRE_FALSE(made);
  CHECK(made.error().what.find("2001 problems") != std::string::npos);
}

TEST_CASE_FIXTURE(two_machines, "another budget is no other context, another seed is") {
  auto a = terms();
  auto b = a;
  b.run_end = std::chrono::hours{1};
  b.proposer = "random";
  CHECK(same_context(a, b));
  b.seed += 1;
  CHECK_FALSE(same_context(a, b));
}

TEST_CASE("who measures and under which lease is no part of what is measured") {
  auto first = some_request();
  auto again = first;
  again.attempt.ordinal = 9;
  again.under.token = 77;
  again.part = 2;
  again.last = false;
  again.workloads = {"b", "a"};
  CHECK(measure_key(first) == measure_key(again));
}

TEST_CASE("every other difference between two measurements is a different key") {
  auto first = some_request();
  std::vector<measure_request> others(11, first);
  others[0].attempt.problem = "rmsnorm";
  others[1].candidate.hash = "d";
  others[2].candidate.plan.sha256[0] = '9';
  others[3].units[0].code.sha256[0] = '9';
  others[4].units[0].entries[0].symbol = "k2";
  others[5].units.push_back(first.units[0]);
  others[6].workloads = {"a"};
  others[7].workloads = {"ab"};
  others[8].purpose = measure_purpose::promotion;
  others[9].draw = "softmax/cuda/3";
  others[10].against = rival{first.candidate, first.units};
  others.push_back(first);
  std::set<std::string> keys;
  for (const auto& one : others)
    keys.insert(measure_key(one));
  CHECK(keys.size() == others.size());
}
