#include "actors/agent_tools.hpp"
#include "actors/candidate.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/small_run.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

struct compiler_memory {
  std::vector<compile_request> requests;
  /// Nothing: never answered.
  std::function<std::optional<result<compiled_candidate>>(const compile_request&)> script;
  std::vector<caf::typed_response_promise<compiled_candidate>> open;
};

class scripted_compiler final : public compiler_actor::base {
public:
  scripted_compiler(caf::actor_config& config, std::shared_ptr<compiler_memory> memory)
    : compiler_actor::base(config), memory_(std::move(memory)) {}

  behavior_type make_behavior() override {
    return {[this](const compile_request& what) -> caf::result<compiled_candidate> {
      memory_->requests.push_back(what);
      auto said = memory_->script(what);
      if (said && *said)
        return **said;
      if (said)
        return to_error(said->error());
      memory_->open.push_back(make_response_promise<compiled_candidate>());
      return memory_->open.back();
    }};
  }
  void on_exit() override { memory_->open.clear(); }

private:
  std::shared_ptr<compiler_memory> memory_;
};

compiled_candidate compiled(verdict_status status, std::string log = {}) {
  compiled_candidate out;
  out.status = status;
  out.toolchain = "clang-19";
  out.log = std::move(log);
  if (status == verdict_status::passed)
    out.units.push_back({"WIDTH=8", {"sha", 100}, {{"softmax<WIDTH>", "_Z7softmax"}}});
  return out;
}

struct tools_of_a_run : actor_fixture {
  small_run run;
  fake_child_front children = make_fake_child_front(*this);
  std::shared_ptr<compiler_memory> compiler = std::make_shared<compiler_memory>();
  agent_tools_config config;
  agent_tools_actor whom;
  candidate_ref candidate;

  void begin() {
    compiler->script = [](const compile_request&) {
      return result<compiled_candidate>{compiled(verdict_status::passed)};
    };
    auto stored = store_candidate(*run.context->blobs, "line one\nint broken = ;\nline three\n",
      R"({"schema":"gristmill.plan/1","variants":[]})", "k", "", "h");
    REQUIRE(stored);
    candidate = *stored;
    config.context = run.context;
    config.compiler = spawn<scripted_compiler>(compiler);
    config.child_front = children.handle;
    whom = spawn<agent_tools>(config);
  }

  reply<tool_answer> question(agent_tool what, const std::string& problem = "softmax") {
    return ask<tool_answer>(whom, tool_question{what, problem, candidate, {}});
  }
  errc code_of(const reply<tool_answer>& asked) {
    auto got = answer(asked);
    REQUIRE_FALSE(got);
    return from_error(sys, got.error()).code;
  }
};

} // namespace

TEST_CASE_FIXTURE(
  tools_of_a_run, "what compiles is told with its entries, without a lease or an attempt") {
  begin();
  auto got = answer(question(agent_tool::compile));
  REQUIRE(got);
  CHECK(got->status == verdict_status::passed);
  CHECK(got->text.find("softmax<WIDTH>") != std::string::npos);
  auto data = nlohmann::json::parse(got->json);
  CHECK(data.at("units")[0].at("key") == "WIDTH=8");
  CHECK(compiler->requests.at(0).attempt.language == "tool");
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(
  tools_of_a_run, "what does not compile is an answer with the line of the source") {
  begin();
  compiler->script = [](const compile_request&) {
    return result<compiled_candidate>{
      compiled(verdict_status::compile_error, "kernel.cu:2:14: error: expected expression\n")};
  };
  for (auto what : {agent_tool::compile, agent_tool::emulate, agent_tool::check}) {
    auto got = answer(question(what));
    REQUIRE(got);
    CHECK(got->what == what);
    CHECK(got->status == verdict_status::compile_error);
    CHECK(got->text.find("line 2: expected expression") != std::string::npos);
    CHECK(got->text.find("int broken") != std::string::npos);
  }
  CHECK(children->requests.empty());
}

TEST_CASE_FIXTURE(tools_of_a_run, "questions that cannot be answered are errors with a code") {
  begin();
  CHECK(code_of(question(agent_tool::compile, "softmux")) == errc::not_found);
  compiler->script = [](const compile_request&) {
    return result<compiled_candidate>{compiled(verdict_status::infrastructure, "no compiler")};
  };
  CHECK(code_of(question(agent_tool::compile)) == errc::child_failed);
  compiler->script = [](const compile_request&) {
    return result<compiled_candidate>{fail(errc::child_failed, "it died")};
  };
  CHECK(code_of(question(agent_tool::check)) == errc::child_failed);
}

TEST_CASE_FIXTURE(
  tools_of_a_run, "few questions are worked on at once, few wait, and the rest are turned away") {
  config.slots = 1;
  config.waiting_max = 1;
  begin();
  compiler->script = [](const compile_request&) { return std::nullopt; };
  auto first = question(agent_tool::compile);
  auto second = question(agent_tool::compile);
  CHECK(code_of(question(agent_tool::compile)) == errc::queue_full);
  settle();
  CHECK(compiler->requests.size() == 1);
  compiler->open.at(0).deliver(compiled(verdict_status::passed));
  settle();
  CHECK(answer(first)->status == verdict_status::passed);
  CHECK(compiler->requests.size() == 2);
  end(whom, caf::exit_reason::user_shutdown);
  CHECK(code_of(second) == errc::shutting_down);
}

TEST_CASE_FIXTURE(tools_of_a_run, "a compiler that was replaced is asked from then on") {
  begin();
  auto other = std::make_shared<compiler_memory>();
  other->script = [](const compile_request&) {
    return result<compiled_candidate>{compiled(verdict_status::passed)};
  };
  auto successor = spawn<scripted_compiler>(other);
  tell(whom, peer_restarted{role::compiler}, caf::actor_cast<caf::strong_actor_ptr>(successor));
  CHECK(answer(question(agent_tool::compile)));
  CHECK(other->requests.size() == 1);
  CHECK(compiler->requests.empty());
}
