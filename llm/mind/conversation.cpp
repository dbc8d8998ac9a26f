#include "llm/mind/conversation.hpp"

#include "protocol/program/candidate_rules.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

/// The larger half of what a model of small context takes.
constexpr uint32_t short_section_bytes = 6000;
constexpr uint32_t short_history_rows = 5;
/// What a note of a failed attempt may have.
constexpr size_t note_bytes_max = 200;

std::string first_line(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), note_bytes_max));
}

} // namespace

conversation::conversation(mind_settings settings) : settings_(std::move(settings)) {}

std::vector<mind_command> conversation::begin(const mind_problem& problem, const assignment& work) {
  problem_ = problem;
  work_ = work;
  own_ = {};
  own_.proposed = proposed_[work.id.problem];
  repairs_ = 0;
  refusals_ = 0;
  shortened_ = false;
  reflected_ = false;
  tool_calls_.clear();
  tools_refused_ = 0;
  questions_ = 0;
  open_call_ = 0;
  if (failures_in_row_ < settings_.failures_before_pause || settings_.pause_first.count() == 0)
    return think();
  auto time = settings_.pause_first;
  for (uint32_t i = settings_.failures_before_pause;
       i < failures_in_row_ && time < settings_.pause_max; ++i)
    time *= 2;
  state_ = state::pausing;
  return {mind_pause{std::min(time, settings_.pause_max)}};
}

std::vector<mind_command> conversation::step(const mind_event& what) {
  return std::visit([this](const auto& e) { return on(e); }, what);
}

void conversation::proposed(const candidate_ref& candidate, const idea& what) {
  proposed_[work_.id.problem].push_back(candidate.hash);
  settings_.book->note_proposal(work_.id.problem, {candidate.key, what.source, what.plan});
}

conversation::commands conversation::on(const pause_over&) {
  if (state_ != state::pausing)
    return {};
  return think();
}

/// What comes before the question for a kernel: the end, a note for others, insights.
conversation::commands conversation::think() {
  const auto& rules = settings_.program->rules;
  plan_ = plan_turn(*settings_.program, work_, own_);
  if (!plan_.enough.empty()) {
    state_ = state::idle;
    return {no_idea{proposal_kind::exhausted, plan_.enough, errc::invalid_input}};
  }
  facts_ =
    facts_of_turn(*settings_.program, problem_, work_, plan_, *settings_.book, settings_.read);
  facts_.tools = settings_.tools;
  if (plan_.best) {
    const auto& best = work_.history[*plan_.best];
    lesson learnt{strategy_of(best.key), best.candidate.hypothesis, 0};
    const auto& first = work_.history.front();
    if (first.objective_ns > 0)
      learnt.speedup =
        static_cast<double>(first.objective_ns) / static_cast<double>(best.objective_ns);
    settings_.book->note_lesson(
      work_.id.problem, problem_.structure, problem_.operators, std::move(learnt));
  }
  std::vector<finished_turn> own;
  auto& proposed = proposed_[work_.id.problem];
  auto& since = handed_off_at_[work_.id.problem];
  for (size_t i = since; i < proposed.size(); ++i)
    for (const auto& t : work_.history)
      if (t.candidate.hash == proposed[i])
        own.push_back({strategy_of(t.key), t.status == verdict_status::passed, t.objective_ns});
  if (auto why = handoff_reason(rules, own); !why.empty()) {
    since = proposed.size();
    return hand_off(why);
  }
  return reflect();
}

conversation::commands conversation::hand_off(const std::string&) {
  // The planner says where a worker goes. What the rule asks for is that the problem is looked at
  // with fresh eyes: the note stays, and the worker's own trail is forgotten.
  own_.proposed.clear();
  state_ = state::handing_off;
  commands out;
  ask(out, "reflect", render_handoff(*settings_.program, facts_), {});
  return out;
}

conversation::commands conversation::reflect() {
  const auto turns = turns_of(work_.history);
  if (reflected_ || !reflection_due(settings_.program->rules, turns)
    || !settings_.book->take_reflection(work_.id.problem, turns.size()))
    return ask_for_kernel();
  reflected_ = true;
  state_ = state::reflecting;
  commands out;
  ask(out, "reflect", render_reflection(*settings_.program, facts_), {});
  return out;
}

conversation::commands conversation::ask_for_kernel() {
  state_ = state::asking;
  shown_ = render_prompt(*settings_.program, facts_);
  commands out;
  ask(out, "propose", shown_, {});
  return out;
}

void conversation::ask(
  commands& out, const std::string& purpose, const prompt& what, std::vector<chat_message> more) {
  llm_request request;
  request.call = open_call_ = settings_.book->next_call();
  request.problem = work_.id.problem;
  request.agent = settings_.agent;
  request.purpose = purpose;
  request.instructions = what.instructions;
  request.messages.push_back({chat_role::user, what.user});
  for (auto& message : more)
    request.messages.push_back(std::move(message));
  const auto& rules = settings_.program->rules;
  request.output_tokens_max = rules.output_tokens_max;
  request.temperature = f64{temperature_at(rules, plan_.heat)};
  // Servers keep it in 31 bits. Nothing but the attempt and the question's place in it decides it,
  // so that a run can be repeated from its cassette.
  request.seed = (work_.seed + questions_++) & 0x7fffffffu;
  out.emplace_back(std::move(request));
}

conversation::commands conversation::on(const llm_reply& reply) {
  if (open_call_ == 0 || reply.call != open_call_)
    return {};
  open_call_ = 0;
  const bool whole = reply.finish == finish_kind::stop;
  if (state_ == state::handing_off) {
    if (auto note = parse_handoff(reply.text); whole && note) {
      settings_.book->note_handoff(work_.id.problem, *note);
      facts_.notes.push_back(*note);
    }
    return reflect();
  }
  if (state_ == state::reflecting) {
    commands out;
    if (auto lines = parse_reflection(reply.text, settings_.program->rules); whole && lines) {
      settings_.book->set_insights(work_.id.problem, *lines);
      facts_.insights = *lines;
      out.emplace_back(insights_written{work_.id.problem, std::move(*lines)});
    }
    for (auto& next : ask_for_kernel())
      out.push_back(std::move(next));
    return out;
  }
  if (state_ != state::asking)
    return {};
  switch (reply.finish) { // no default: the compiler reports a missing case
  case finish_kind::stop:
    return read_reply(reply);
  case finish_kind::length:
    // The gateway has asked again with larger caps before. Telling a model about its format would
    // not help: it never came to the end.
    return give_up(fmt::format("the reply was cut off after {} tokens{}", reply.usage.output(),
      reply.tries > 1 ? ", also with a larger cap" : ""));
  case finish_kind::refusal:
  case finish_kind::content_filter:
    return on_refusal(reply);
  case finish_kind::context_exceeded:
    return on_too_large();
  case finish_kind::unknown:
    return give_up("the reply ended in a way that nobody knows");
  }
  return {};
}

conversation::commands conversation::on(const model_failed& failed) {
  if (open_call_ == 0 || failed.call != open_call_)
    return {};
  open_call_ = 0;
  const bool for_good = failed.why.code == errc::budget_exhausted
    || failed.why.code == errc::provider_refused || failed.why.code == errc::shutting_down;
  // Notes and insights are a help; the kernel can be asked for without them.
  if (!for_good && state_ == state::handing_off)
    return reflect();
  if (!for_good && state_ == state::reflecting)
    return ask_for_kernel();
  return give_up(failed.why.what, failed.why.code);
}

conversation::commands conversation::on_refusal(const llm_reply& reply) {
  if (refusals_++ > 0)
    return give_up(fmt::format("the model refused twice ({})", to_string(reply.finish)));
  if (!plan_.card.empty())
    own_.cards_refused.push_back(plan_.card);
  else
    own_.cards_refused.emplace_back("free");
  plan_ = plan_turn(*settings_.program, work_, own_);
  auto answers = std::move(facts_.tool_answers);
  facts_ =
    facts_of_turn(*settings_.program, problem_, work_, plan_, *settings_.book, settings_.read);
  facts_.tools = settings_.tools;
  facts_.tool_answers = std::move(answers);
  return ask_for_kernel();
}

conversation::commands conversation::on_too_large() {
  if (std::exchange(shortened_, true))
    return give_up("the prompt is larger than the model's context, also in short");
  auto brief = *settings_.program;
  brief.rules.section_bytes = std::min(brief.rules.section_bytes, short_section_bytes);
  brief.rules.history_rows = std::min(brief.rules.history_rows, short_history_rows);
  brief.rules.inspirations = 0;
  facts_.inspirations.clear();
  facts_.knowledge.clear();
  facts_.parent.reset();
  state_ = state::asking;
  shown_ = render_prompt(brief, facts_);
  commands out;
  ask(out, "propose", shown_, {});
  return out;
}

conversation::commands conversation::read_reply(const llm_reply& reply) {
  if (reply.text.find_first_not_of(" \t\r\n") == std::string::npos)
    return give_up("the model stopped without writing anything");
  auto parsed = parse_reply(reply.text, settings_.program->rules);
  switch (parsed.kind) { // no default: the compiler reports a missing case
  case reply_kind::candidate:
    return take_candidate(reply, std::move(parsed));
  case reply_kind::tool:
    return use_tool(parsed);
  case reply_kind::malformed:
    return send_back(reply, render_repair(*settings_.program, parsed),
      fmt::format("{}: {}", to_string(parsed.fault), first_line(parsed.message)));
  }
  return {};
}

conversation::commands conversation::use_tool(const parsed_reply& parsed) {
  auto& calls = tool_calls_[parsed.tool.name];
  auto allowed = check_tool_call(settings_.program->rules, parsed.tool.name, calls);
  const bool works = std::any_of(settings_.tools.begin(), settings_.tools.end(),
    [&](const auto& tool) { return tool.first == parsed.tool.name; });
  if (allowed && works) {
    ++calls;
    state_ = state::using_tool;
    facts_.tool_answers.push_back({parsed.tool.name, parsed.tool.arguments, {}});
    return {tool_call{parsed.tool, parsed.source, parsed.plan}};
  }
  if (++tools_refused_ > 1)
    return give_up(fmt::format(
      "it asked for the tool '{}' again, which it may not use any more", parsed.tool.name));
  facts_.tool_answers.push_back({parsed.tool.name, parsed.tool.arguments,
    allowed ? fmt::format("'{}' does not work in this run. Hand in a candidate.", parsed.tool.name)
            : allowed.error().what + " Hand in a candidate."});
  return ask_for_kernel();
}

conversation::commands conversation::on(const tool_answered& answer) {
  if (state_ != state::using_tool || facts_.tool_answers.empty())
    return {};
  facts_.tool_answers.back().text = answer.text;
  return ask_for_kernel();
}

conversation::commands conversation::take_candidate(const llm_reply& reply, parsed_reply parsed) {
  const auto& program = *settings_.program;
  auto strategy = !parsed.strategy.empty() ? parsed.strategy : plan_.card;
  if (strategy.empty() && plan_.repair && plan_.parent)
    strategy = strategy_of(work_.history[*plan_.parent].key);
  auto fine =
    check_candidate(program, parsed.source, parsed.plan, parsed.hypothesis, parsed.language);
  if (fine)
    fine = check_strategy(program.rules, strategy, turns_of(work_.history));
  if (fine)
    fine = check_duplicate(program.rules, parsed.source, parsed.plan,
      earlier_sources(work_, *settings_.book, settings_.read));
  if (!fine)
    return send_back(
      reply, render_refusal(program, fine.error().what), first_line(fine.error().what));
  state_ = state::idle;
  failures_in_row_ = 0;
  idea out;
  out.source = std::move(parsed.source);
  out.plan = std::move(parsed.plan);
  out.strategy = std::move(strategy);
  out.hypothesis = std::move(parsed.hypothesis);
  if (plan_.parent)
    out.parent = work_.history[*plan_.parent].candidate.hash;
  return {std::move(out)};
}

conversation::commands conversation::send_back(
  const llm_reply& reply, const std::string& fault, const std::string& why) {
  if (!repair_allowed(settings_.program->rules, repairs_))
    return give_up(repairs_ == 0 ? why : "after a repair: " + why);
  ++repairs_;
  state_ = state::asking;
  commands out;
  ask(out, "repair", shown_, {{chat_role::assistant, reply.text}, {chat_role::user, fault}});
  return out;
}

conversation::commands conversation::give_up(std::string reason, errc code) {
  state_ = state::idle;
  open_call_ = 0;
  if (code != errc::shutting_down) {
    ++failures_in_row_;
    settings_.book->note_failure(
      work_.id.problem, fmt::format("An attempt came to no candidate: {}", first_line(reason)));
  }
  return {no_idea{proposal_kind::failed, std::move(reason), code}};
}

} // namespace gristmill
