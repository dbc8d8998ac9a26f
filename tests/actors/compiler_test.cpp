#include "actors/compiler.hpp"
#include "actors/search_library.hpp"
#include "actors/template_proposer.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct one_compiler : actor_fixture {
  small_run run;
  fake_journal journal = make_fake_journal(*this);
  fake_child_front children = make_fake_child_front(*this);
  compiler_actor whom;

  one_compiler() {
    children->script = [](const child_request& what) {
      return scripted_child{child_that_says(child_lines(what)), 1s, {}};
    };
  }

  void begin(uint32_t slots = 2, uint32_t waiting_max = 4096) {
    compiler_config config;
    config.context = run.context;
    config.device_code = {"/usr/bin/clang++-19", "clang-19.1.7"};
    config.child_front = children.handle;
    config.events = event_port{journal.handle, start};
    config.slots = slots;
    config.waiting_max = waiting_max;
    whom = spawn<compiler>(std::move(config));
  }

  /// The plain kernel, made different by a comment.
  candidate_ref candidate(const std::string& comment = {}) {
    assignment work;
    work.id = {"softmax", "cuda", 0};
    work.kind = attempt_kind::baseline;
    work.graph = *run.context->blobs->put(run.context->problems.at("softmax").graph_json);
    search_library library;
    auto proposed = propose_for(*run.context, work, library, search_strategy::guided);
    REQUIRE_MESSAGE(proposed, (proposed ? "" : proposed.error().what));
    auto c = proposed->candidate;
    c.source =
      *run.context->blobs->put(*run.context->blobs->get(c.source) + "// " + comment + "\n");
    c.hash = c.source.sha256;
    return c;
  }

  reply<compiled_candidate> compile(const candidate_ref& c) {
    return ask<compiled_candidate>(whom, compile_request{{"softmax", "cuda", 1}, c, "h200"});
  }
};

} // namespace

TEST_CASE_FIXTURE(one_compiler, "a candidate becomes units whose code is in the blob store") {
  begin();
  auto asked = compile(candidate());
  CHECK_FALSE(answered(asked));
  advance(1s);
  auto made = answer(asked);
  REQUIRE(made);
  CHECK_MESSAGE(made->status == verdict_status::passed, made->log);
  CHECK(made->toolchain == "clang-19.1.7");
  CHECK_FALSE(made->cached);
  REQUIRE_FALSE(made->units.empty());
  CHECK(run.context->blobs->has(made->units[0].code));
  CHECK_FALSE(made->units[0].entries.empty());
  CHECK(children->requests[0].profile == child_profile::compiler);
  auto data = nlohmann::json::parse(journal->last("compiled").data);
  CHECK(data.at("status") == "PASSED");
  CHECK_MESSAGE(
    std::filesystem::is_empty(run.context->jobs()), "the job's folder goes with the job");
}

TEST_CASE_FIXTURE(one_compiler, "code that the store has let go is made again") {
  begin();
  auto c = candidate();
  auto first = compile(c);
  advance(1s);
  auto made = answer(first);
  REQUIRE(made);
  for (const auto& unit : made->units)
    std::filesystem::remove(*run.context->blobs->path(unit.code));
  auto again = compile(c);
  advance(1s);
  auto remade = answer(again);
  REQUIRE(remade);
  CHECK_FALSE(remade->cached);
  CHECK(run.context->blobs->has(remade->units.at(0).code));
  CHECK(children->requests.size() == 2);
}

TEST_CASE_FIXTURE(one_compiler, "what was compiled once is not compiled again") {
  begin();
  compile(candidate());
  advance(1s);
  auto again = answer(compile(candidate()));
  REQUIRE(again);
  CHECK(again->cached);
  CHECK(children->requests.size() == 1);
}

TEST_CASE_FIXTURE(
  one_compiler, "a candidate that does not compile is an answer, and it is remembered") {
  children->script = [](const child_request& what) {
    child_manner refuses;
    refuses.compile = verdict_status::compile_error;
    return scripted_child{child_that_says(child_lines(what, refuses)), {}, {}};
  };
  begin();
  auto asked = compile(candidate());
  advance(0s);
  auto made = answer(asked);
  REQUIRE(made);
  CHECK(made->status == verdict_status::compile_error);
  CHECK(made->units.empty());
  CHECK(made->log.find("does not compile") != std::string::npos);
  CHECK_MESSAGE(journal->last("compiled").reason.find('\n') == std::string::npos, "the first line");
  CHECK(answer(compile(candidate()))->cached);
}

TEST_CASE_FIXTURE(one_compiler, "a launch plan that does not parse is an answer as well") {
  begin();
  auto c = candidate();
  c.plan = *run.context->blobs->put("{\"schema\":");
  auto made = answer(compile(c));
  REQUIRE(made);
  CHECK(made->status == verdict_status::compile_error);
  CHECK(made->log.find("launch plan") != std::string::npos);
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(one_compiler, "a blob that is gone is our failure, not the candidate's") {
  begin();
  auto c = candidate();
  c.source.sha256 = std::string(64, 'a');
  CHECK(refusal(compile(c)).code == errc::not_found);
}

TEST_CASE_FIXTURE(
  one_compiler, "a compiler child that dies, lies or says too little fails the request") {
  std::string part;
  children->script = [&](const child_request& what) -> std::optional<scripted_child> {
    if (part == "killed by signal 9") {
      auto dead = child_that_says({}, child_end::no_done);
      dead.status = 128 + 9;
      return scripted_child{dead, {}, {}};
    }
    if (part == "no answer for unit")
      return scripted_child{child_that_says({child_line_text(what.nonce, "done")}), {}, {}};
    if (part == "queue")
      return scripted_child{{}, {}, failure{errc::queue_full, "queue of children"}};
    if (part == "no file of its folder") {
      auto lines = child_lines(what);
      auto at = lines[0].find("0.ptx");
      lines[0].replace(at, 5, "../../secret");
      return scripted_child{child_that_says(lines), {}, {}};
    }
    auto lines = child_lines(what);
    lines[0] = "nonsense";
    return scripted_child{child_that_says(lines), {}, {}};
  };
  begin();
  auto code = errc::child_failed;
  SUBCASE("dies") {
    part = "killed by signal 9";
  }
  SUBCASE("says nothing") {
    part = "no answer for unit";
  }
  SUBCASE("names a file elsewhere") {
    part = "no file of its folder";
  }
  SUBCASE("writes no JSON") {
    part = "compiler: ";
  }
  SUBCASE("is not started") {
    part = "queue";
    code = errc::queue_full;
  }
  auto asked = compile(candidate());
  advance(0s);
  auto why = refusal(asked);
  CHECK(why.code == code);
  CHECK_MESSAGE(why.what.find(part) != std::string::npos, why.what);
  children->script = [](const child_request& what) {
    return scripted_child{child_that_says(child_lines(what)), {}, {}};
  };
  auto again = compile(candidate());
  advance(0s);
  CHECK_MESSAGE(answer(again), "the slot is free again, and a failure is not cached");
}

TEST_CASE_FIXTURE(
  one_compiler, "no more compilers run than there are slots; the others wait in order") {
  begin(2, 1);
  auto a = compile(candidate("a")), b = compile(candidate("b")), c = compile(candidate("c"));
  CHECK(children->requests.size() == 2);
  CHECK(refusal(compile(candidate("d"))).code == errc::queue_full);
  advance(1s);
  CHECK(answer(a));
  CHECK(answer(b));
  CHECK_FALSE(answered(c));
  advance(1s);
  CHECK(answer(c));
}

TEST_CASE_FIXTURE(
  one_compiler, "whoever waits when the compiler ends is told, and its children are cancelled") {
  begin(1);
  auto running = compile(candidate("a")), waits = compile(candidate("b"));
  end(whom, caf::exit_reason::kill);
  CHECK(refusal(running).code == errc::shutting_down);
  CHECK(refusal(waits).code == errc::shutting_down);
  CHECK(children->cancelled == std::vector<uint64_t>{children->requests[0].id});
}
