#include "llm/mind/turn_facts.hpp"

#include "protocol/feedback.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill {

namespace {

std::string id_of(size_t place) {
  return std::to_string(place + 1);
}

std::string numbers_of(const trial_history& history, size_t place) {
  const auto& t = history[place];
  if (t.status != verdict_status::passed)
    return to_string(t.status);
  auto text = fmt::format("{:.2f} us", static_cast<double>(t.objective_ns) / 1e3);
  // The plain kernel is the first trial of a problem.
  if (const auto plain = history.front().objective_ns; plain > 0 && place > 0)
    text += fmt::format(
      ", {:.2f}x attempt 1", static_cast<double>(plain) / static_cast<double>(t.objective_ns));
  if (double(t.floor_share) > 0)
    text += fmt::format(", {:.0f} % of the lower bound", 100 * double(t.floor_share));
  return text;
}

std::optional<shown_candidate> shown(
  const trial_history& history, size_t place, const blob_reader& read) {
  const auto& t = history[place];
  auto source = read(t.candidate.source);
  auto plan = read(t.candidate.plan);
  if (!source || !plan)
    return std::nullopt;
  shown_candidate out;
  out.id = id_of(place);
  out.source = std::move(*source);
  out.plan = std::move(*plan);
  out.strategy = strategy_of(t.key);
  out.numbers = numbers_of(history, place);
  return out;
}

std::optional<feedback> feedback_of(const trial& t, const blob_reader& read) {
  if (t.feedback.sha256.empty())
    return std::nullopt;
  auto text = read(t.feedback);
  if (!text)
    return std::nullopt;
  auto parsed = parse_feedback(*text);
  return parsed ? std::optional(std::move(*parsed)) : std::nullopt;
}

/// The table, oldest first; only the newest rows get the reason, which has to be read.
std::vector<history_row> rows_of(
  const trial_history& history, uint32_t rows_max, const blob_reader& read) {
  std::vector<history_row> out;
  uint64_t best = 0;
  const size_t first = history.size() > rows_max ? history.size() - rows_max : 0;
  for (size_t i = 0; i < history.size(); ++i) {
    const auto& t = history[i];
    const bool passed = t.status == verdict_status::passed && t.objective_ns > 0;
    if (i >= first) {
      history_row row{
        id_of(i), t.candidate.hypothesis, strategy_of(t.key), to_string(t.status), {}, {}};
      if (passed && best > 0)
        row.change = fmt::format(
          "{:+.1f}", 100 * (static_cast<double>(t.objective_ns) / static_cast<double>(best) - 1));
      if (auto said = feedback_of(t, read))
        row.reason = said->what == feedback_class::slow && !said->times.empty()
          ? "limited by " + said->times.front().limiter
          : said->summary;
      out.push_back(std::move(row));
    }
    if (passed && t.effort == attempt_effort::full)
      best = best == 0 ? t.objective_ns : std::min(best, t.objective_ns);
  }
  return out;
}

/// "Before the table: 34 attempts; 20 PASSED, 14 COMPILE_ERROR; strategies tried: …"
std::string summary_of_older(const trial_history& history, uint32_t rows_max) {
  if (history.size() <= rows_max)
    return {};
  const size_t older = history.size() - rows_max;
  std::map<std::string, size_t> outcomes;
  std::set<std::string> strategies;
  for (size_t i = 0; i < older; ++i) {
    ++outcomes[to_string(history[i].status)];
    if (auto strategy = strategy_of(history[i].key); !strategy.empty())
      strategies.insert(strategy);
  }
  auto text = fmt::format("Before the table there were {} attempts:", older);
  for (const auto& [outcome, count] : outcomes)
    text += fmt::format(" {} {},", count, outcome);
  text.back() = ';';
  text += " strategies tried:";
  for (const auto& strategy : strategies)
    text += " " + strategy + ",";
  text.back() = '.';
  return text;
}

} // namespace

prompt_facts facts_of_turn(const protocol_program& program, const mind_problem& problem,
  const assignment& work, const turn_plan& plan, const idea_book& book, const blob_reader& read) {
  const auto& rules = program.rules;
  prompt_facts out;
  out.problem = problem.text;
  out.device = problem.device;
  if (plan.best)
    out.best = shown(work.history, *plan.best, read);
  if (plan.parent && plan.parent != plan.best)
    out.parent = shown(work.history, *plan.parent, read);
  for (auto place : plan.inspirations)
    if (auto other = shown(work.history, place, read))
      out.inspirations.push_back(std::move(*other));
  out.history = rows_of(work.history, rules.history_rows, read);
  if (plan.parent)
    if (auto said = feedback_of(work.history[*plan.parent], read))
      out.feedback = to_text(*said, rules.feedback_bytes);
  out.insights = book.insights(work.id.problem);
  if (auto older = summary_of_older(work.history, rules.history_rows); !older.empty())
    out.notes.push_back(std::move(older));
  for (const auto* list : {&work.notes})
    out.notes.insert(out.notes.end(), list->begin(), list->end());
  for (const auto& list : {book.handoffs(work.id.problem), book.failures(work.id.problem)})
    out.notes.insert(out.notes.end(), list.begin(), list.end());
  // The newest are shown; what was before the table is never left out.
  if (out.notes.size() > rules.notes && rules.notes > 0
    && work.history.size() > rules.history_rows) {
    auto older = out.notes.front();
    out.notes.erase(
      out.notes.begin(), out.notes.end() - static_cast<std::ptrdiff_t>(rules.notes - 1));
    out.notes.insert(out.notes.begin(), std::move(older));
  }
  out.knowledge = book.knowledge(work.id.problem, problem.structure, problem.operators);
  out.card = plan.card;
  out.task = plan.task;
  return out;
}

std::vector<earlier_source> earlier_sources(
  const assignment& work, const idea_book& book, const blob_reader& read) {
  std::vector<earlier_source> out;
  for (size_t i = 0; i < work.history.size(); ++i) {
    const auto& t = work.history[i];
    if (t.candidate.hash.empty() || t.status == verdict_status::infrastructure)
      continue;
    auto source = read(t.candidate.source);
    auto plan = read(t.candidate.plan);
    if (source && plan)
      out.push_back({"attempt " + id_of(i), std::move(*source), std::move(*plan)});
  }
  for (auto& one : book.proposals(work.id.problem))
    if (std::find(work.in_flight.begin(), work.in_flight.end(), one.name) != work.in_flight.end())
      out.push_back({"what another worker is trying now", one.source, one.plan});
  return out;
}

} // namespace gristmill
