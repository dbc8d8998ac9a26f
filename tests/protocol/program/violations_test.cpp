// One test a typed rule: what breaks it is refused, cut or ended, and was not before the rule said
// so. protocol/program/rules.cpp names these tests.

#include "tests/protocol/program/rule_probes.hpp"
#include "tests/protocol/program/small_program.hpp"

#include <doctest/doctest.h>

using namespace gristmill::test;

TEST_CASE("a language that is not asked for is refused") {
  const auto [before, after] = probe("candidate.languages");
  CHECK(before == "accepted");
  CHECK(contains(after, "the language 'cuda' is not asked for"));
}

TEST_CASE("a source that is too large is refused") {
  const auto [before, after] = probe("candidate.source_bytes_max");
  CHECK(before == "accepted");
  CHECK(contains(after, "and 300 are allowed (candidate.source_bytes_max)"));
}

TEST_CASE("a plan that is too large is refused") {
  const auto [before, after] = probe("candidate.plan_bytes_max");
  CHECK(before == "accepted");
  CHECK(contains(after, "and 300 are allowed (candidate.plan_bytes_max)"));
}

TEST_CASE("a code block that is neither source nor plan is refused") {
  const auto [before, after] = probe("candidate.other_blocks");
  CHECK(before == "unknown_block");
  CHECK(after == "none");
}

TEST_CASE("a candidate without a hypothesis is refused") {
  const auto [before, after] = probe("candidate.hypothesis_required");
  CHECK(contains(before, "hypothesis: missing"));
  CHECK(after == "accepted");
}

TEST_CASE("a hypothesis that says too little is refused") {
  const auto [before, after] = probe("candidate.hypothesis_bytes_min");
  CHECK(before == "accepted");
  CHECK(contains(after, "hypothesis: 20 bytes, and at least 40 are asked for"));
}

TEST_CASE("a hypothesis that is too long is refused") {
  const auto [before, after] = probe("candidate.hypothesis_bytes_max");
  CHECK(before == "accepted");
  CHECK(contains(after, "and 30 are allowed (candidate.hypothesis_bytes_max)"));
}

TEST_CASE("a forbidden name is refused") {
  const auto [before, after] = probe("candidate.forbidden");
  CHECK(before == "accepted");
  CHECK(contains(after, "source:4: `fmaxf` is forbidden"));
}

TEST_CASE("a header that is not allowed is refused") {
  const auto [before, after] = probe("candidate.allowed_headers");
  CHECK(before == "accepted");
  CHECK(contains(after, "source:1: the header 'cstdint' is not allowed"));
}

TEST_CASE("inline PTX is refused where it is not allowed") {
  const auto [before, after] = probe("candidate.inline_ptx");
  CHECK(before == "accepted");
  CHECK(contains(after, "source:6: inline PTX is not allowed"));
}

TEST_CASE("a kernel that the plan does not launch is refused") {
  const auto [before, after] = probe("candidate.extra_entries");
  CHECK(contains(before, "source:6: no step of the plan launches the kernel `other`"));
  CHECK(after == "accepted");
}

TEST_CASE("a near-duplicate is refused") {
  const auto [before, after] = probe("candidate.similarity_max");
  CHECK(before == "accepted");
  CHECK(contains(after, "this is the candidate 7 again"));
}

TEST_CASE("no repair beyond those allowed") {
  const auto [before, after] = probe("turn.format_repairs");
  CHECK(before == "sent back");
  CHECK(after == "lost");
}

TEST_CASE("no reply may be longer than the rule says") {
  const auto [before, after] = probe("turn.output_tokens_max");
  CHECK(before == "at most 1000 tokens");
  CHECK(after == "at most 2000 tokens");
}

TEST_CASE("no temperature is below the range") {
  const auto [before, after] = probe("turn.temperature_min");
  CHECK(before == "0.2");
  CHECK(after == "0.5");
}

TEST_CASE("no temperature is above the range") {
  const auto [before, after] = probe("turn.temperature_max");
  CHECK(before == "1");
  CHECK(after == "0.7");
}

TEST_CASE("no call of compile beyond those allowed") {
  const auto [before, after] = probe("tools.compile");
  CHECK(before == "accepted");
  CHECK(contains(after, "has used its 1 calls of compile"));
}

TEST_CASE("no call of emulate beyond those allowed") {
  const auto [before, after] = probe("tools.emulate");
  CHECK(before == "accepted");
  CHECK(contains(after, "has used its 1 calls of emulate"));
}

TEST_CASE("no call of docs beyond those allowed") {
  const auto [before, after] = probe("tools.docs");
  CHECK(before == "accepted");
  CHECK(contains(after, "has used its 1 calls of docs"));
}

TEST_CASE("no more rows of history than allowed are shown") {
  const auto [before, after] = probe("prompt.history_rows");
  CHECK(before == "5");
  CHECK(after == "3");
}

TEST_CASE("no more insight lines than allowed are kept") {
  const auto [before, after] = probe("prompt.insight_lines");
  CHECK(before == "3");
  CHECK(after == "2");
}

TEST_CASE("feedback that is too long is cut and says so") {
  const auto [before, after] = probe("prompt.feedback_bytes");
  CHECK(before == "0");
  CHECK(after == "1");
}

TEST_CASE("no more inspirations than allowed are shown") {
  const auto [before, after] = probe("prompt.inspirations");
  CHECK(before == "2");
  CHECK(after == "1");
}

TEST_CASE("no more notes than allowed are shown") {
  const auto [before, after] = probe("prompt.notes");
  CHECK(before == "2");
  CHECK(after == "1");
}

TEST_CASE("a part that is too long is cut and says so") {
  const auto [before, after] = probe("prompt.section_bytes");
  CHECK(before == "1");
  CHECK(after == "0");
}

TEST_CASE("a strategy is refused after its turns in a row") {
  const auto [before, after] = probe("search.same_strategy_max");
  CHECK(before == "accepted");
  CHECK(contains(after, "the last 2 attempts were all 'plain-loop'"));
}

TEST_CASE("a plateau is as long as the rule says") {
  const auto [before, after] = probe("search.plateau_attempts");
  CHECK(before == "goes on");
  CHECK(after == "plateau");
}

TEST_CASE("a gain below the rule's share is none") {
  const auto [before, after] = probe("search.plateau_gain");
  CHECK(before == "goes on");
  CHECK(after == "plateau");
}

TEST_CASE("a reflection comes when the rule says") {
  const auto [before, after] = probe("search.reflect_every");
  CHECK(before == "goes on");
  CHECK(after == "reflects");
}

TEST_CASE("a worker leaves after its attempts") {
  const auto [before, after] = probe("stop.handoff_attempts");
  CHECK(before.empty());
  CHECK(contains(after, "14 attempts by one worker"));
}

TEST_CASE("a worker leaves after its plateaus") {
  const auto [before, after] = probe("stop.handoff_plateaus");
  CHECK(before.empty());
  CHECK(contains(after, "1 plateaus in a row"));
}

TEST_CASE("a problem that is good enough gets no more attempts") {
  const auto [before, after] = probe("stop.floor_share");
  CHECK(before.empty());
  CHECK(contains(after, "60 % of the lower bound"));
}
