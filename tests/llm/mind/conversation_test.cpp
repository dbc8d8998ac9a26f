#include "tests/llm/mind/mind_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE_FIXTURE(mind_fixture, "a reply in the form of the contract becomes a candidate") {
  tried("plain", verdict_status::passed, 1000, kernel_source(2));
  begin();
  CHECK(asked().purpose == "propose");
  CHECK(asked().problem == "p");
  CHECK(asked().agent == "worker-0");
  CHECK(asked().output_tokens_max == program->rules.output_tokens_max);
  CHECK(asked().messages.size() == 1);
  say(reply_text(kernel_source(3), "loads"));
  const auto& got = next<idea>();
  CHECK(got.source == kernel_source(3));
  CHECK(got.strategy == "loads");
  CHECK(got.parent == work.history.front().candidate.hash);
  CHECK(has(got.hypothesis, "wider loads"));
  CHECK(mind->idle());
}

TEST_CASE_FIXTURE(mind_fixture, "the context is made anew from the store each turn") {
  tried("loads", verdict_status::passed, 1000, kernel_source(2));
  begin();
  auto first = user_text();
  CHECK(has(first, kernel_source(2)));
  CHECK(has(first, "hypothesis about loads"));
  say(reply_text(kernel_source(3)));
  work.id.ordinal = 2;
  begin();
  CHECK_MESSAGE(asked().messages.size() == 1, "nothing of the conversation before");
  CHECK_FALSE(has(user_text(), kernel_source(3)));
}

TEST_CASE_FIXTURE(mind_fixture, "equal assignments ask equal questions") {
  tried("loads", verdict_status::passed, 1000, kernel_source(2));
  begin();
  auto first = asked();
  begin_again();
  begin();
  CHECK(asked().messages == first.messages);
  CHECK(asked().instructions == first.instructions);
  CHECK(*asked().seed == *first.seed);
  CHECK(double(*asked().temperature) == double(*first.temperature));
}

TEST_CASE_FIXTURE(
  mind_fixture, "openevolve#241, #346: a failed edit is shown to the model, never a silent no-op") {
  begin();
  say("HYPOTHESIS: I would change one line of it.\n\n<<<<<<< SEARCH\nfoo\n=======\nbar\n>>>>>>>\n");
  CHECK(asked().purpose == "repair");
  REQUIRE(asked().messages.size() == 3);
  CHECK(asked().messages[1].from == chat_role::assistant);
  CHECK(has(asked().messages[1].text, "SEARCH"));
  CHECK(asked().messages[2].from == chat_role::user);
  SUBCASE("and mended, it counts") {
    say(reply_text(kernel_source(3)));
    CHECK(next<idea>().source == kernel_source(3));
    CHECK(mind->failures_in_row() == 0);
  }
  SUBCASE("once: the second fault ends the attempt, with its reason") {
    say("still prose");
    CHECK(next<no_idea>().kind == proposal_kind::failed);
    CHECK(has(next<no_idea>().reason, "no_code_block"));
  }
}

TEST_CASE_FIXTURE(
  mind_fixture, "openevolve#390: whoever comes next is told of the attempt that came to nothing") {
  begin();
  say("prose");
  say("prose");
  REQUIRE(next<no_idea>().kind == proposal_kind::failed);
  begin();
  CHECK(has(user_text(), "came to no candidate"));
}

TEST_CASE_FIXTURE(
  mind_fixture, "sm64ds-decomp#1199: a reply that was cut off is never nagged about its format") {
  begin();
  say("HYPOTHESIS: something that never ends\n```cuda\n__global__", finish_kind::length);
  CHECK(next<no_idea>().kind == proposal_kind::failed);
  CHECK(has(next<no_idea>().reason, "cut off"));
}

TEST_CASE_FIXTURE(mind_fixture, "LLaMEA#58: a repeat is refused before it is compiled") {
  tried("loads", verdict_status::compile_error, 0, kernel_source(2));
  SUBCASE("of the history, whatever it is called") {
    begin();
    say(reply_text(
      "// new\n  __global__   void k(const float* x, float* y)\n{ y[0] = x[2] * 2.5f; }\n"));
  }
  SUBCASE("of what another worker is trying now") {
    work.history.clear();
    book->note_proposal("p", {"llm/loads/1", kernel_source(2), kernel_plan});
    work.in_flight = {"llm/loads/1"};
    begin();
    say(reply_text(kernel_source(2)));
  }
  CHECK(asked().purpose == "repair");
  say(reply_text(kernel_source(2)));
  CHECK(next<no_idea>().kind == proposal_kind::failed);
}

TEST_CASE_FIXTURE(mind_fixture, "what another worker has finished is no duplicate by its name") {
  book->note_proposal("p", {"llm/loads/1", kernel_source(2), kernel_plan});
  begin();
  say(reply_text(kernel_source(2)));
  CHECK_MESSAGE(next<idea>().source == kernel_source(2), "it is not in flight and not in history");
}

TEST_CASE_FIXTURE(mind_fixture, "a refusal is asked once more with another card, then given up") {
  begin();
  auto first = asked();
  say("I cannot help with that.", finish_kind::refusal);
  CHECK(asked().purpose == "propose");
  CHECK(asked().messages.size() == 1);
  CHECK(asked().messages != first.messages);
  say("No.", finish_kind::content_filter);
  CHECK(next<no_idea>().kind == proposal_kind::failed);
  CHECK(has(next<no_idea>().reason, "refused"));
}

TEST_CASE_FIXTURE(mind_fixture, "a prompt that is too large is asked once more in short") {
  for (int i = 0; i < 20; ++i)
    tried("s" + std::to_string(i), verdict_status::passed, 1000,
      kernel_source(10 + i) + "// " + std::string(2000, 'x') + "\n");
  begin();
  while (asked().purpose == "reflect")
    say("");
  auto before = user_text().size();
  say("", finish_kind::context_exceeded);
  CHECK(user_text().size() < before);
  say("", finish_kind::context_exceeded);
  CHECK(next<no_idea>().kind == proposal_kind::failed);
}

TEST_CASE_FIXTURE(mind_fixture, "an empty reply is a failure, not an opinion") {
  begin();
  say(" \n ");
  CHECK(next<no_idea>().kind == proposal_kind::failed);
}

TEST_CASE_FIXTURE(mind_fixture, "an end that nobody knows is a failure") {
  begin();
  say(reply_text(kernel_source(3)), finish_kind::unknown);
  CHECK(next<no_idea>().kind == proposal_kind::failed);
}

TEST_CASE_FIXTURE(mind_fixture, "what breaks a rule of the program is sent back with the rule") {
  program->rules.forbidden = {"malloc"};
  begin();
  say(reply_text("__global__ void k(const float* x, float* y) { malloc(4); }\n"));
  CHECK(asked().purpose == "repair");
  CHECK(has(asked().messages.back().text, "malloc"));
}

TEST_CASE_FIXTURE(mind_fixture, "the same strategy more than three times in a row is sent back") {
  for (int i = 0; i < 3; ++i)
    tried("loads", verdict_status::passed, 1000 - 100 * static_cast<uint64_t>(i), kernel_source(i));
  begin();
  say(reply_text(kernel_source(9), "loads"));
  CHECK(asked().purpose == "repair");
  CHECK(has(asked().messages.back().text, "same_strategy_max"));
}

TEST_CASE_FIXTURE(mind_fixture, "a tool is asked, and its answer stands in the next question") {
  begin();
  say("```tool\n{\"name\": \"docs\", \"arguments\": {\"query\": \"tma\"}}\n```\n");
  CHECK(next<tool_call>().what.name == "docs");
  CHECK(has(next<tool_call>().what.arguments, "tma"));
  last = mind->step(tool_answered{"TMA copies tiles."});
  CHECK(asked().messages.size() == 1);
  CHECK(has(user_text(), "TMA copies tiles."));
  say(reply_text(kernel_source(3)));
  CHECK(next<idea>().source == kernel_source(3));
}

TEST_CASE_FIXTURE(
  mind_fixture, "a tool that is used up is turned down once, then the attempt ends") {
  const std::string ask_docs =
    "```tool\n{\"name\": \"docs\", \"arguments\": {\"query\": \"a\"}}\n```\n";
  begin();
  for (int i = 0; i < 2; ++i) {
    say(ask_docs);
    REQUIRE(std::holds_alternative<tool_call>(last.back()));
    last = mind->step(tool_answered{"answer"});
  }
  say(ask_docs);
  CHECK(has(user_text(), "Hand in a candidate"));
  say(ask_docs);
  CHECK(next<no_idea>().kind == proposal_kind::failed);
}

TEST_CASE_FIXTURE(mind_fixture, "a failed candidate of one's own is mended first, twice at most") {
  auto& base = tried("plain", verdict_status::passed, 1000, kernel_source(2));
  auto base_hash = base.candidate.hash;
  begin();
  say(reply_text(kernel_source(3), "loads"));
  auto got = next<idea>();
  auto failed = tried("loads", verdict_status::compile_error, 0, kernel_source(3), base_hash);
  mind->proposed(failed.candidate, got);
  begin();
  CHECK(has(user_text(), "feedback of loads"));
  CHECK(has(user_text(), kernel_source(3)));
  say(reply_text(kernel_source(4), "loads"));
  auto again = next<idea>();
  CHECK(again.parent == failed.candidate.hash);
  auto second = tried("loads", verdict_status::compile_error, 0, kernel_source(4), again.parent);
  mind->proposed(second.candidate, again);
  begin();
  say(reply_text(kernel_source(5), "shuffles"));
  auto last_try = next<idea>();
  CHECK(last_try.parent == second.candidate.hash);
  auto third =
    tried("shuffles", verdict_status::compile_error, 0, kernel_source(5), last_try.parent);
  mind->proposed(third.candidate, last_try);
  begin();
  say(reply_text(kernel_source(6), "split"));
  CHECK_MESSAGE(next<idea>().parent == base_hash, "given up: back to what works");
}

TEST_CASE_FIXTURE(
  mind_fixture, "insights are written every few attempts and replace the old ones") {
  program->rules.reflect_every = 2;
  tried("loads", verdict_status::passed, 1000, kernel_source(1));
  tried("split", verdict_status::passed, 900, kernel_source(2));
  book->set_insights("p", {"what was thought before"});
  begin();
  CHECK(asked().purpose == "reflect");
  say("- works: wider loads\n- untried: split\n");
  REQUIRE(last.size() == 2);
  const auto& written = std::get<insights_written>(last.front());
  CHECK(written.problem == "p");
  CHECK(book->insights("p") == written.lines);
  CHECK(asked().purpose == "propose");
  CHECK(has(user_text(), "wider loads"));
  CHECK_FALSE(has(user_text(), "what was thought before"));
  SUBCASE("once for so many attempts, whoever asks") {
    begin_again();
    begin();
    CHECK(asked().purpose == "propose");
  }
}

TEST_CASE_FIXTURE(mind_fixture, "a reflection that fails costs no attempt") {
  program->rules.reflect_every = 1;
  tried("loads", verdict_status::passed, 1000, kernel_source(1));
  begin();
  REQUIRE(asked().purpose == "reflect");
  SUBCASE("no answer") {
    fails(errc::timed_out);
  }
  SUBCASE("no list") {
    say("I have no idea.");
  }
  CHECK(asked().purpose == "propose");
}

TEST_CASE_FIXTURE(mind_fixture, "a worker that stays too long leaves a note for the others") {
  program->rules.handoff_attempts = 1;
  program->rules.reflect_every = 0;
  begin();
  say(reply_text(kernel_source(3), "loads"));
  auto got = next<idea>();
  auto done = tried("loads", verdict_status::passed, 1000, kernel_source(3));
  mind->proposed(done.candidate, got);
  begin();
  CHECK(asked().purpose == "reflect");
  say("Loads are done. Try split.");
  CHECK(asked().purpose == "propose");
  CHECK(book->handoffs("p").size() == 1);
  CHECK(has(user_text(), "Try split."));
}

TEST_CASE_FIXTURE(
  mind_fixture, "notes of workers who left and knowledge of related problems are shown") {
  work.notes = {"bank conflicts ate the gain"};
  problem.structure = "rms";
  book->note_lesson("q", "rms", {}, {"vector-loads", "fewer instructions", 2.5});
  begin();
  CHECK(has(user_text(), "bank conflicts ate the gain"));
  CHECK(has(user_text(), "2.50x by vector-loads"));
}

TEST_CASE_FIXTURE(
  mind_fixture, "history beyond the table is told in one sentence (autoresearch: dead ends)") {
  program->rules.history_rows = 2;
  program->rules.reflect_every = 0;
  tried("dead-end", verdict_status::incorrect_numerical, 0, kernel_source(1));
  tried("dead-end", verdict_status::compile_error, 0, kernel_source(2));
  tried("loads", verdict_status::passed, 1000, kernel_source(3));
  tried("split", verdict_status::passed, 900, kernel_source(4));
  begin();
  CHECK(has(user_text(), "Before the table there were 2 attempts"));
  CHECK(has(user_text(), "dead-end"));
}

TEST_CASE_FIXTURE(
  mind_fixture, "attempts in a row that fail at once are followed by a growing pause") {
  for (int i = 0; i < 3; ++i) {
    begin();
    say("");
    REQUIRE(std::holds_alternative<no_idea>(last.back()));
  }
  begin();
  CHECK(next<mind_pause>().time == 5s);
  last = mind->step(pause_over{});
  say("");
  begin();
  CHECK(next<mind_pause>().time == 10s);
  last = mind->step(pause_over{});
  say(reply_text(kernel_source(3)));
  CHECK(std::holds_alternative<idea>(last.back()));
  begin();
  CHECK_MESSAGE(std::holds_alternative<llm_request>(last.back()), "a candidate ends the row");
}

TEST_CASE_FIXTURE(mind_fixture, "a gateway without an answer ends the attempt with its reason") {
  begin();
  auto call = asked().call;
  fails(errc::budget_exhausted, "the run's budget of 5 USD");
  CHECK(next<no_idea>().code == errc::budget_exhausted);
  CHECK(has(next<no_idea>().reason, "5 USD"));
  CHECK_MESSAGE(mind->step(model_failed{call, {errc::timed_out, "late"}}).empty(), "twice is once");
}

TEST_CASE_FIXTURE(mind_fixture, "answers that nobody waits for change nothing") {
  begin();
  llm_reply late;
  late.call = asked().call + 100;
  late.finish = finish_kind::stop;
  CHECK(mind->step(late).empty());
  CHECK(mind->step(tool_answered{"x"}).empty());
  CHECK(mind->step(pause_over{}).empty());
  auto call = asked().call;
  mind->forget();
  late.call = call;
  CHECK(mind->step(late).empty());
}

TEST_CASE_FIXTURE(mind_fixture, "a best that is good enough ends the search") {
  auto best = tried("loads", verdict_status::passed, 1000, kernel_source(1));
  best.floor_share = 0.97;
  work.history.replace(0, best);
  begin();
  CHECK(next<no_idea>().kind == proposal_kind::exhausted);
  CHECK(has(next<no_idea>().reason, "97 %"));
}
