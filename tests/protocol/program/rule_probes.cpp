#include "tests/protocol/program/rule_probes.hpp"

#include "llm/mind/conversation.hpp"
#include "protocol/program/candidate_rules.hpp"
#include "protocol/program/prompt.hpp"
#include "protocol/program/reply.hpp"
#include "protocol/program/turn_rules.hpp"
#include "tests/protocol/program/small_program.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gristmill::test {

namespace {

std::string told(const result<void>& checked) {
  return checked ? "accepted" : checked.error().what;
}

std::string check(const protocol_program& program, const std::string& source,
  const std::string& hypothesis = good_hypothesis, const std::string& plan = good_plan,
  const std::string& language = "cuda") {
  return told(check_candidate(program, source, plan, hypothesis, language));
}

/// Attempts of which the first passed, and the others had these times (0: failed).
std::vector<finished_turn> turns(const std::vector<uint64_t>& times) {
  std::vector<finished_turn> out;
  for (const uint64_t time : times)
    out.push_back({"plain-loop", time > 0, time});
  return out;
}

std::string user_text(const protocol_program& program, const prompt_facts& facts) {
  return render_prompt(program, facts).user;
}

prompt_facts many_facts() {
  prompt_facts out;
  out.problem.name = "relu";
  for (int i = 0; i < 10; ++i) {
    out.history.push_back({std::to_string(i), "row of history", "s", "PASSED", "-1.0", ""});
    out.notes.push_back("note of a worker");
    out.inspirations.push_back({std::to_string(i), "cuda", good_source, good_plan, "", ""});
  }
  return out;
}

size_t count(const std::string& text, const std::string& part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

/// What a worker asks its model first.
std::string first_question(const protocol_program& program) {
  mind_settings settings;
  settings.program = std::make_shared<protocol_program>(program);
  settings.book = std::make_shared<idea_book>();
  settings.read = [](const blob_ref&) -> result<std::string> {
    return fail(errc::not_found, "there is none");
  };
  assignment work;
  work.id = {"relu", "cuda", 1};
  for (const auto& command : conversation(settings).begin({}, work))
    if (const auto* asked = std::get_if<llm_request>(&command))
      return fmt::format("at most {} tokens", asked->output_tokens_max);
  return "nothing";
}

std::vector<rule_probe> make_probes() {
  const std::string source = good_source;
  return {
    {"candidate.languages", R"(["cute_dsl"])", [=](const auto& p) { return check(p, source); }},
    {"candidate.source_bytes_max", "300",
      [=](const auto& p) { return check(p, source + std::string(300, ' ')); }},
    {"candidate.plan_bytes_max", "300",
      [=](const auto& p) {
        return check(p, source, good_hypothesis, good_plan + std::string(300, ' '));
      }},
    {"candidate.other_blocks", "true",
      [](const auto& p) {
        const auto read = parse_reply(good_reply() + "\n```text\nfor example\n```\n", p.rules);
        return to_string(read.fault);
      }},
    {"candidate.hypothesis_required", "false", [=](const auto& p) { return check(p, source, ""); }},
    {"candidate.hypothesis_bytes_min", "40",
      [=](const auto& p) { return check(p, source, "It should be faster."); }},
    {"candidate.hypothesis_bytes_max", "30",
      [=](const auto& p) { return check(p, source, good_hypothesis); }},
    {"candidate.forbidden", R"(["fmaxf"])", [=](const auto& p) { return check(p, source); }},
    {"candidate.allowed_headers", R"(["cuda_bf16.h"])",
      [=](const auto& p) { return check(p, "#include <cstdint>\n" + source); }},
    {"candidate.inline_ptx", "false",
      [=](const auto& p) {
        return check(p, source + "__device__ void f() { asm volatile(\"membar.gl;\"); }\n");
      }},
    {"candidate.extra_entries", "true",
      [=](const auto& p) { return check(p, source + "__global__ void other() {}\n"); }},
    {"candidate.similarity_max", "0.9",
      [=](const auto& p) {
        const std::string changed = replaced(source, "0.0f", "1.0f");
        return told(check_duplicate(p.rules, changed, good_plan, {{"7", source, good_plan}}));
      }},
    {"turn.format_repairs", "0",
      [](const auto& p) { return std::string(repair_allowed(p.rules, 0) ? "sent back" : "lost"); }},
    {"turn.output_tokens_max", "2000", [](const auto& p) { return first_question(p); }},
    {"turn.temperature_min", "0.5",
      [](const auto& p) { return fmt::format("{}", temperature_at(p.rules, 0)); }},
    {"turn.temperature_max", "0.7",
      [](const auto& p) { return fmt::format("{}", temperature_at(p.rules, 1)); }},
    {"tools.compile", "1",
      [](const auto& p) { return told(check_tool_call(p.rules, "compile", 2)); }},
    {"tools.emulate", "1",
      [](const auto& p) { return told(check_tool_call(p.rules, "emulate", 1)); }},
    {"tools.docs", "1", [](const auto& p) { return told(check_tool_call(p.rules, "docs", 3)); }},
    {"prompt.history_rows", "3",
      [](const auto& p) {
        return std::to_string(count(user_text(p, many_facts()), "row of history"));
      }},
    {"prompt.insight_lines", "2",
      [](const auto& p) {
        const auto lines = parse_reflection("- works: a\n- works: b\n- fails: c\n", p.rules);
        return std::to_string(lines ? lines->size() : 0);
      }},
    {"prompt.feedback_bytes", "200",
      [](const auto& p) {
        prompt_facts facts;
        facts.feedback = std::string(300, 'x');
        return std::to_string(count(user_text(p, facts), "[cut: 200 of 300 bytes shown]"));
      }},
    {"prompt.inspirations", "1",
      [](const auto& p) {
        return std::to_string(count(user_text(p, many_facts()), "# Inspiration"));
      }},
    {"prompt.notes", "1",
      [](const auto& p) {
        return std::to_string(count(user_text(p, many_facts()), "note of a worker"));
      }},
    {"prompt.section_bytes", "5000",
      [](const auto& p) {
        prompt_facts facts;
        facts.problem.reference = std::string(4500, 'x');
        return std::to_string(count(user_text(p, facts), "[cut: 4000 of 4500 bytes shown]"));
      }},
    {"search.same_strategy_max", "2",
      [](const auto& p) {
        return told(check_strategy(p.rules, "plain-loop", turns({100, 100})));
      }},
    {"search.plateau_attempts", "3",
      [](const auto& p) {
        return std::string(at_plateau(p.rules, turns({100, 100, 0, 100})) ? "plateau" : "goes on");
      }},
    {"search.plateau_gain", "0.2",
      [](const auto& p) {
        return std::string(at_plateau(p.rules, turns({100, 90, 0, 0, 0})) ? "plateau" : "goes on");
      }},
    {"search.reflect_every", "5",
      [](const auto& p) {
        return std::string(
          reflection_due(p.rules, turns({0, 0, 0, 0, 0})) ? "reflects" : "goes on");
      }},
    {"stop.handoff_attempts", "14",
      [](const auto& p) { return handoff_reason(p.rules, std::vector<finished_turn>(14)); }},
    {"stop.handoff_plateaus", "1",
      [](const auto& p) {
        return handoff_reason(p.rules, turns({100, 0, 0, 0, 0}));
      }},
    {"stop.floor_share", "0.5", [](const auto& p) { return good_enough(p.rules, 0.6); }},
  };
}

} // namespace

const std::vector<rule_probe>& rule_probes() {
  static const auto probes = make_probes();
  return probes;
}

probed probe(const std::string& rule) {
  const auto& all = rule_probes();
  const auto found =
    std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.rule == rule; });
  REQUIRE_MESSAGE(found != all.end(), rule);
  std::string text = edited(small_program_text(), rule, found->value);
  if (rule == "candidate.languages")
    text = replaced(text, "and a plan.", "and a plan, or\n\n```python\ndef run(): ...\n```\n");
  return {found->outcome(parsed(small_program_text())), found->outcome(parsed(text))};
}

} // namespace gristmill::test
