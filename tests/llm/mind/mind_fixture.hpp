#pragma once

#include "journal/hash.hpp"
#include "llm/mind/conversation.hpp"
#include "protocol/feedback.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>

namespace gristmill::test {

inline std::string kernel_source(int width) {
  return fmt::format(
    "__global__ void k(const float* x, float* y) {{ y[0] = x[{}] * {}.5f; }}\n", width, width);
}

inline constexpr const char* kernel_plan =
  R"({"schema": "gristmill.plan/1", "variants": [{"steps": [{"op": "launch", "entry": "k",)"
  R"( "grid": [1, 1, 1], "block": [1, 1, 1], "args": ["x", "y"]}]}]})";

/// A reply in the form of the contract.
inline std::string reply_text(const std::string& source, const std::string& strategy = "",
  const std::string& hypothesis = "wider loads need fewer instructions, so it is faster") {
  return "HYPOTHESIS: " + hypothesis + "\n"
    + (strategy.empty() ? "" : "STRATEGY: " + strategy + "\n") + "\n```cuda\n" + source
    + "```\n\n```json\n" + kernel_plan + "\n```\n";
}

/// A conversation with a store in memory, and somebody who answers by hand.
struct mind_fixture {
  std::map<std::string, std::string> blobs;
  std::shared_ptr<protocol_program> program = std::make_shared<protocol_program>();
  std::shared_ptr<idea_book> book = std::make_shared<idea_book>();
  mind_problem problem;
  assignment work;
  std::optional<conversation> mind;
  std::vector<mind_command> last;

  mind_fixture() {
    auto& rules = program->rules;
    rules.hypothesis_bytes_min = 10;
    rules.tools = {{"docs", 2}, {"compile", 1}};
    program->goal = "Make it faster.";
    for (const char* id : {"loads", "shuffles", "split"}) {
      strategy_card card;
      card.id = card.title = id;
      card.when = "always";
      card.text = "Do it.";
      card.source = kernel_source(1);
      card.plan = kernel_plan;
      program->cards.push_back(card);
    }
    problem.text.name = "p";
    problem.text.signature = "input x: float32 [N]\n";
    problem.device = {"SMs: 132"};
    work.id = {"p", "cuda", 1};
    work.seed = 11;
    begin_again();
  }

  void begin_again() {
    mind_settings settings;
    settings.program = program;
    settings.book = book;
    settings.agent = "worker-0";
    settings.tools = {{"docs", "searches"}, {"compile", "compiles"}};
    settings.read = [this](const blob_ref& what) -> result<std::string> {
      auto found = blobs.find(what.sha256);
      if (found == blobs.end())
        return fail(errc::not_found, "no such blob");
      return found->second;
    };
    mind.emplace(std::move(settings));
  }

  blob_ref put(const std::string& text) {
    auto name = sha256_hex(text);
    blobs[name] = text;
    return {name, text.size()};
  }

  /// A finished trial, appended to the history.
  const trial& tried(const std::string& strategy, verdict_status status, uint64_t ns,
    const std::string& source, const std::string& parent = "") {
    trial t;
    t.candidate.source = put(source);
    t.candidate.plan = put(kernel_plan);
    t.candidate.hash = sha256_hex(source);
    t.candidate.parent = parent;
    t.candidate.hypothesis = "hypothesis about " + strategy;
    t.candidate.key = t.key = model_key(strategy, t.candidate.hash);
    t.status = status;
    t.objective_ns = status == verdict_status::passed ? ns : 0;
    feedback said;
    said.what = status == verdict_status::passed ? feedback_class::slow : feedback_class::compile;
    said.summary = "feedback of " + strategy;
    t.feedback = put(to_json(said));
    work.history.push_back(t);
    return work.history.back();
  }

  void begin() { last = mind->begin(problem, work); }

  /// The command at the end, which must be of this kind.
  template <class T>
  const T& next() const {
    REQUIRE_FALSE(last.empty());
    REQUIRE(std::holds_alternative<T>(last.back()));
    return std::get<T>(last.back());
  }
  const llm_request& asked() const { return next<llm_request>(); }
  const std::string& user_text() const { return asked().messages.front().text; }

  void say(const std::string& text, finish_kind finish = finish_kind::stop) {
    llm_reply reply;
    reply.call = asked().call;
    reply.text = text;
    reply.finish = finish;
    last = mind->step(reply);
  }
  void fails(errc code, const std::string& why = "why") {
    last = mind->step(model_failed{asked().call, {code, why}});
  }
};

} // namespace gristmill::test
