#include "protocol/program/prompt.hpp"

#include "protocol/program/markdown.hpp"
#include "protocol/program/rule_fields.hpp"
#include "protocol/program/rules.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t cell_bytes_max = 160;
constexpr size_t insight_bytes_max = 200;
constexpr size_t note_bytes_max = 400;

/// At most `bytes`, without half a character at the end.
std::string_view head_of(std::string_view text, size_t bytes) {
  if (text.size() <= bytes)
    return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80)
    --bytes;
  return text.substr(0, bytes);
}

/// In one line, with single blanks.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : trim(text)) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return out;
}

/// A code block whose fence is longer than any run of backticks within.
std::string fenced(std::string_view info, std::string_view text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  return fmt::format(
    "{}{}\n{}{}{}\n", fence, info, text, text.ends_with('\n') || text.empty() ? "" : "\n", fence);
}

std::string cell(std::string_view text) {
  std::string line = one_line(text);
  if (line.size() > cell_bytes_max)
    line = std::string(head_of(line, cell_bytes_max)) + "…";
  std::string out;
  for (const char c : line)
    out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

/// Builds a text of headings and parts; an empty part leaves nothing behind.
class page {
public:
  explicit page(const program_rules& rules) : rules_(rules) {}

  void section(std::string_view title, std::string_view body) {
    if (!trim(body).empty())
      out_ += fmt::format("{}# {}\n\n{}\n", out_.empty() ? "" : "\n", title, trim(body));
  }
  std::string cut(std::string_view text) const { return cut_text(text, rules_.section_bytes); }
  const program_rules& rules() const { return rules_; }
  std::string take() { return std::move(out_); }

private:
  const program_rules& rules_;
  std::string out_;
};

std::string fence_of(std::string_view language) {
  return language == "cute_dsl" ? "python" : "cuda";
}

std::string write_tools(
  const program_rules& rules, const std::vector<std::pair<std::string, std::string>>& tools) {
  std::string out;
  for (const auto& [name, what] : tools)
    if (const auto* limit = rules.find_tool(name); limit != nullptr)
      out +=
        fmt::format("- `{}` ({} calls an attempt): {}\n", name, limit->calls_max, one_line(what));
  if (out.empty())
    return out;
  return "In place of a candidate a reply may ask one tool, by a block such as\n\n"
    + fenced("tool", "{\"name\": \"" + tools.front().first + "\", \"arguments\": {}}")
    + "\n`compile` and `emulate` work on the source and the plan that stand in the same reply, in "
      "their own blocks; `docs` stands alone.\n\n"
    + out;
}

std::string write_rules(const protocol_program& program) {
  std::string out = "A program checks these, in every attempt and without exception.\n\n";
  for (const auto& rule : rule_table(program))
    out += "- " + rule.says + "\n";
  return out;
}

std::string write_cards(const protocol_program& program) {
  std::string out = fill_mentions(program.cards_preface, program.rules);
  out += out.empty() ? "" : "\n\n";
  for (const auto& card : program.cards)
    if (card.withheld.empty())
      out += fmt::format("- `{}`: {}. {}\n", card.id, card.title, card.when);
  return out;
}

std::string instructions_of(const protocol_program& program, const prompt_facts& facts) {
  page to(program.rules);
  const auto filled = [&](const std::string& text) { return fill_mentions(text, program.rules); };
  to.section("Goal", filled(program.goal));
  std::string hardware = filled(program.hardware) + "\n";
  for (const auto& line : facts.device)
    hardware += "\n- " + one_line(line);
  to.section("Hardware", hardware);
  to.section("Contract", filled(program.contract));
  to.section("Allowed", filled(program.allowed));
  to.section("Forbidden", filled(program.forbidden));
  to.section("Rules", write_rules(program));
  to.section("Feedback", filled(program.feedback));
  to.section("Tests", filled(program.tests));
  to.section("Stop", filled(program.stop));
  to.section("Tools", write_tools(program.rules, facts.tools));
  to.section("Strategy cards", write_cards(program));
  return to.take();
}

std::string write_problem(const page& to, const prompt_problem& problem) {
  std::string out;
  const auto add = [&](std::string_view title, const std::string& text) {
    if (!trim(text).empty())
      out += fmt::format("{}{}:\n\n{}", out.empty() ? "" : "\n", title, text);
  };
  if (!trim(problem.description).empty())
    out += to.cut(trim(problem.description)) + "\n";
  add("Inputs and outputs", fenced("", to.cut(problem.signature)));
  if (!trim(problem.workloads).empty())
    add("Workloads, each of which must be right", fenced("", to.cut(problem.workloads)));
  if (!trim(problem.reference).empty())
    add("Reference", fenced("python", to.cut(problem.reference)));
  std::string words;
  for (const auto& each : problem.forbidden)
    words += "- " + one_line(each) + "\n";
  add("Forbidden for this problem", words);
  return out;
}

std::string write_candidate(const page& to, const shown_candidate& shown) {
  std::string head = fmt::format("Attempt {}", shown.id);
  if (!shown.strategy.empty())
    head += ", strategy `" + shown.strategy + "`";
  if (!shown.numbers.empty())
    head += ": " + one_line(shown.numbers);
  return head + ".\n\n" + fenced(fence_of(shown.language), to.cut(shown.source)) + "\n"
    + fenced("json", to.cut(shown.plan));
}

void write_candidates(page& to, const prompt_facts& facts) {
  if (facts.best)
    to.section("Best so far", write_candidate(to, *facts.best));
  if (facts.parent && !(facts.best && facts.best->id == facts.parent->id))
    to.section("Parent: the candidate to start from", write_candidate(to, *facts.parent));
  for (size_t i = 0; i < facts.inspirations.size() && i < to.rules().inspirations; ++i)
    to.section("Inspiration: another candidate", write_candidate(to, facts.inspirations[i]));
}

void write_history(page& to, const std::vector<history_row>& rows) {
  const size_t shown = std::min<size_t>(rows.size(), to.rules().history_rows);
  if (shown == 0)
    return;
  std::string out = "| attempt | strategy | hypothesis | outcome | change of time, % | reason |\n"
                    "|---|---|---|---|---|---|\n";
  for (size_t i = rows.size() - shown; i < rows.size(); ++i) {
    const auto& row = rows[i];
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell(row.id), cell(row.strategy),
      cell(row.hypothesis), cell(row.outcome), cell(row.change), cell(row.reason));
  }
  if (shown < rows.size())
    out += fmt::format("\n[cut: {} older attempts are not shown]\n", rows.size() - shown);
  to.section("History, oldest first", out);
}

void write_feedback(page& to, const std::string& text) {
  if (!trim(text).empty())
    to.section(
      "Feedback on the parent", fenced("", cut_text(trim(text), to.rules().feedback_bytes)));
}

std::string bullets(const std::vector<std::string>& lines, size_t first, size_t count) {
  std::string out;
  for (size_t i = first; i < lines.size() && i - first < count; ++i)
    out += "- " + one_line(lines[i]) + "\n";
  return out;
}

void write_lists(page& to, const prompt_facts& facts) {
  const auto& rules = to.rules();
  to.section("Insights", bullets(facts.insights, 0, rules.insight_lines));
  const size_t notes = std::min<size_t>(facts.notes.size(), rules.notes);
  to.section("Notes of earlier workers", bullets(facts.notes, facts.notes.size() - notes, notes));
  to.section("Known of related problems", to.cut(bullets(facts.knowledge, 0, SIZE_MAX)));
}

void write_card(page& to, const protocol_program& program, const std::string& id) {
  const auto* card = program.find_card(id);
  if (card == nullptr || !card->withheld.empty())
    return;
  to.section("Strategy to try: `" + card->id + "`, " + card->title,
    fmt::format("{}\n\n{}\n\nExample, for the problem `{}`:\n\n{}\n{}", card->when, card->text,
      card->problem, fenced(fence_of(card->language), to.cut(card->source)),
      fenced("json", to.cut(card->plan))));
}

void write_answers(page& to, const std::vector<shown_answer>& answers) {
  std::string out;
  for (const auto& each : answers)
    out += fmt::format("{}`{}` {}:\n\n{}", out.empty() ? "" : "\n", each.name, cell(each.arguments),
      fenced("", to.cut(each.text)));
  to.section("Answers of the tools in this attempt", out);
}

std::string usual_task(const prompt_facts& facts) {
  std::string out = facts.best || facts.parent
    ? "Make ONE focused change to the parent, or to the best where no parent is shown, and state "
      "in "
      "the hypothesis what it should gain and why."
    : "Write a first correct kernel. State in the hypothesis why it should be fast.";
  if (!facts.card.empty())
    out += fmt::format(" Try the strategy `{}`.", facts.card);
  return out + " Reply as the contract says.";
}

} // namespace

std::string cut_text(std::string_view text, size_t bytes) {
  if (text.size() <= bytes)
    return std::string(text);
  std::string_view kept = head_of(text, bytes);
  if (const size_t end = kept.rfind('\n'); end != std::string_view::npos)
    kept = kept.substr(0, end + 1);
  return fmt::format("{}{}[cut: {} of {} bytes shown]\n", kept,
    kept.empty() || kept.ends_with('\n') ? "" : "\n", kept.size(), text.size());
}

prompt render_prompt(const protocol_program& program, const prompt_facts& facts) {
  page to(program.rules);
  to.section("Problem " + facts.problem.name, write_problem(to, facts.problem));
  write_candidates(to, facts);
  write_history(to, facts.history);
  write_feedback(to, facts.feedback);
  write_lists(to, facts);
  write_card(to, program, facts.card);
  write_answers(to, facts.tool_answers);
  to.section("Task", facts.task.empty() ? usual_task(facts) : facts.task);
  return {instructions_of(program, facts), to.take()};
}

std::string render_repair(const protocol_program& program, const parsed_reply& reply) {
  std::string fences;
  for (const auto& language : program.rules.languages)
    fences += fmt::format("{}```{}", fences.empty() ? "" : " or ", fence_of(language));
  return fmt::format("Your reply could not be read ({}): {}.\n\nSend the whole reply again: {}one "
                     "closed {} block with the complete file, then one closed ```json block with "
                     "the launch plan. Change nothing else.",
    to_string(reply.fault), reply.message,
    program.rules.hypothesis_required ? "a line that begins with HYPOTHESIS:, " : "", fences);
}

std::string render_refusal(const protocol_program& program, std::string_view why) {
  return fmt::format("Your candidate was not tried, because it breaks the rules:\n\n{}\nSend the "
                     "whole reply again without that.",
    fenced("", cut_text(why, program.rules.feedback_bytes)));
}

prompt render_reflection(const protocol_program& program, const prompt_facts& facts) {
  page to(program.rules);
  to.section("Problem " + facts.problem.name, write_problem(to, facts.problem));
  if (facts.best)
    to.section("Best so far", write_candidate(to, *facts.best));
  write_history(to, facts.history);
  write_lists(to, facts);
  to.section("Task",
    fmt::format(
      "Write no kernel now. Read the history and write what the next worker must know, as "
      "a list of at most {} lines that replaces the insights above. Begin each line with "
      "\"- works:\", \"- fails:\" or \"- untried:\", one fact a line, with its numbers and "
      "the attempt it comes from, at most {} bytes a line.",
      program.rules.insight_lines, insight_bytes_max));
  return {instructions_of(program, facts), to.take()};
}

result<std::vector<std::string>> parse_reflection(
  std::string_view reply, const program_rules& rules) {
  std::vector<std::string> out;
  const auto text = plain_line_ends(reply);
  for (const std::string_view line : split_lines(text)) {
    const auto words = trim(line);
    if (out.size() >= rules.insight_lines || !(words.starts_with("- ") || words.starts_with("* ")))
      continue;
    out.emplace_back(head_of(trim(words.substr(2)), insight_bytes_max));
  }
  if (out.empty())
    return fail(errc::invalid_input,
      "the reply holds no insight: a list whose lines begin with \"- works:\", \"- fails:\" or "
      "\"- untried:\" is expected");
  return out;
}

prompt render_handoff(const protocol_program& program, const prompt_facts& facts) {
  page to(program.rules);
  to.section("Problem " + facts.problem.name, write_problem(to, facts.problem));
  write_history(to, facts.history);
  write_lists(to, facts);
  to.section("Task",
    fmt::format(
      "Write no kernel now. You leave this problem. Write a note of two sentences, at most "
      "{} bytes, to the worker who comes next: what holds the kernel back, and what you "
      "would try.",
      note_bytes_max));
  return {instructions_of(program, facts), to.take()};
}

result<std::string> parse_handoff(std::string_view reply) {
  const auto line = one_line(reply);
  const std::string note(trim(head_of(line, note_bytes_max)));
  if (note.empty())
    return fail(errc::invalid_input, "the note is empty");
  return note;
}

} // namespace gristmill
