#include "protocol/program/reply.hpp"

#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/program/markdown.hpp"
#include "protocol/program/rule_fields.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <vector>

namespace gristmill {

namespace {

/// Bytes of a ```tool block; what it carries is a name and a question.
constexpr size_t tool_bytes_max = 8192;
constexpr size_t strategy_bytes_max = 48;

struct labelled_line {
  size_t line = 0;
  std::string text;
};

/// The text behind "LABEL:" at the start of a line, with the lines of the paragraph that follow it
/// up to the next label. Emphasis around the label is read over.
std::vector<labelled_line> labelled(
  const std::vector<markdown_block>& blocks, std::string_view label) {
  static constexpr std::array<std::string_view, 2> labels{"HYPOTHESIS:", "STRATEGY:"};
  std::vector<labelled_line> out;
  for (const auto& block : blocks) {
    if (block.what != markdown_block::kind::paragraph)
      continue;
    bool inside = false;
    size_t line = block.first_line;
    for (std::string_view text : split_lines(block.text)) {
      text.remove_prefix(std::min(text.find_first_not_of(" \t*_>-"), text.size()));
      const auto found = std::find_if(labels.begin(), labels.end(),
        [&](std::string_view each) { return text.starts_with(each); });
      if (found != labels.end()) {
        inside = *found == label;
        if (inside)
          out.push_back({line, ""});
        text.remove_prefix(found->size());
      }
      if (inside) {
        while (
          !text.empty() && std::string_view(" \t*_").find(text.front()) != std::string_view::npos)
          text.remove_prefix(1);
        while (
          !text.empty() && std::string_view(" \t*_").find(text.back()) != std::string_view::npos)
          text.remove_suffix(1);
        if (!text.empty())
          out.back().text.append(out.back().text.empty() ? "" : " ").append(text);
      }
      ++line;
    }
  }
  return out;
}

bool is_strategy(std::string_view text) {
  return !text.empty() && text.size() <= strategy_bytes_max
    && std::all_of(text.begin(), text.end(),
      [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

class reply_reader {
public:
  reply_reader(std::string_view text, const program_rules& rules)
    : rules_(rules), empty_(trim(text).empty()), large_(text.size() > reply_bytes_max) {
    if (!large_)
      blocks_ = markdown_blocks(plain_line_ends(text));
  }

  parsed_reply read() {
    if (empty_)
      return refuse(format_fault::empty_reply, "the reply is empty");
    if (large_)
      return refuse(format_fault::reply_too_large,
        fmt::format("the reply has more than {} bytes", reply_bytes_max));
    if (!(sort_blocks() && read_hypothesis() && read_strategy()))
      return out_;
    if (!tools_.empty() ? !read_tool() : !read_code(true))
      return out_;
    out_.kind = tools_.empty() ? reply_kind::candidate : reply_kind::tool;
    return out_;
  }

private:
  parsed_reply refuse(format_fault fault, std::string message) {
    out_.kind = reply_kind::malformed;
    out_.fault = fault;
    out_.message = std::move(message);
    return out_;
  }
  bool wrong(format_fault fault, std::string message) {
    refuse(fault, std::move(message));
    return false;
  }

  bool allows(std::string_view language) const {
    return std::find(rules_.languages.begin(), rules_.languages.end(), language)
      != rules_.languages.end();
  }

  /// "```cuda", or both when the rules allow two languages.
  std::string wanted_fence() const {
    std::string out;
    for (const auto& language : rules_.languages)
      out +=
        fmt::format("{}```{}", out.empty() ? "" : " or ", language == "cuda" ? "cuda" : "python");
    return out;
  }

  bool sort_blocks() {
    for (const auto& block : blocks_) {
      if (block.what != markdown_block::kind::code || !block.fenced)
        continue;
      if (!block.closed)
        return wrong(format_fault::unclosed_block,
          fmt::format("the code block that begins in line {} is not closed; end it with its own "
                      "fence on a line of its own",
            block.first_line));
      if (block.info == "tool")
        tools_.push_back(&block);
      else if (block.info == "json")
        plans_.push_back(&block);
      else if ((block.info == "cuda" && allows("cuda"))
        || (block.info == "python" && allows("cute_dsl")))
        sources_.push_back(&block);
      else
        others_.push_back(&block);
    }
    for (const auto* block : others_)
      if (block->info == "cuda" || block->info == "python")
        if (sources_.empty())
          return wrong(format_fault::language_refused,
            fmt::format("line {}: the language of ```{} is not asked for; write {}",
              block->first_line, block->info, wanted_fence()));
    if (!others_.empty() && !rules_.other_blocks)
      return wrong(format_fault::unknown_block,
        fmt::format("line {}: a code block {}; a reply has one {} with the whole file and one "
                    "```json with the plan, and no other",
          others_.front()->first_line,
          others_.front()->info.empty() ? std::string("without a language")
                                        : "'" + others_.front()->info.substr(0, 40) + "'",
          wanted_fence()));
    return true;
  }

  bool read_hypothesis() {
    const auto found = labelled(blocks_, "HYPOTHESIS:");
    if (found.size() > 1)
      return wrong(format_fault::several_hypotheses,
        fmt::format("the lines {} and {} both begin with HYPOTHESIS:; one change, one hypothesis",
          found[0].line, found[1].line));
    if (!found.empty())
      out_.hypothesis = found.front().text;
    if (out_.hypothesis.size() > rules_.hypothesis_bytes_max)
      return wrong(format_fault::hypothesis_too_long,
        fmt::format("the hypothesis has {} bytes, and {} are allowed", out_.hypothesis.size(),
          rules_.hypothesis_bytes_max));
    if (!tools_.empty())
      return true;
    if (out_.hypothesis.empty() && rules_.hypothesis_required && !sources_.empty())
      return wrong(format_fault::no_hypothesis,
        "there is no line HYPOTHESIS: with text behind it; before the code, say in one sentence "
        "what "
        "you changed and why it should be faster");
    if (!out_.hypothesis.empty() && out_.hypothesis.size() < rules_.hypothesis_bytes_min)
      return wrong(format_fault::hypothesis_too_short,
        fmt::format("the hypothesis has {} bytes, and at least {} are asked for",
          out_.hypothesis.size(), rules_.hypothesis_bytes_min));
    return true;
  }

  bool read_strategy() {
    const auto found = labelled(blocks_, "STRATEGY:");
    if (found.empty())
      return true;
    std::string text = found.front().text;
    std::erase(text, '`');
    text = trim(text);
    if (found.size() > 1 || !is_strategy(text))
      return wrong(format_fault::bad_strategy,
        fmt::format("line {}: behind STRATEGY: stands the id of a card or a name of your own, in "
                    "lower case with hyphens, at most {} bytes, once",
          found.back().line, strategy_bytes_max));
    out_.strategy = text;
    return true;
  }

  bool read_code(bool needed) {
    if (sources_.size() > 1)
      return wrong(format_fault::several_code_blocks,
        fmt::format("there are {} code blocks, in the lines {} and {}; give the whole file in one",
          sources_.size(), sources_[0]->first_line, sources_[1]->first_line));
    if (plans_.size() > 1)
      return wrong(format_fault::several_plans,
        fmt::format("there are {} ```json blocks, in the lines {} and {}; give one plan",
          plans_.size(), plans_[0]->first_line, plans_[1]->first_line));
    if (sources_.empty())
      return needed ? wrong(format_fault::no_code_block,
               fmt::format("there is no code block {}; text outside of one is never taken as code",
                 wanted_fence()))
                    : true;
    const auto& source = *sources_.front();
    if (trim(source.text).empty())
      return wrong(format_fault::empty_code_block,
        fmt::format("the code block in line {} is empty", source.first_line));
    if (source.text.size() > rules_.source_bytes_max)
      return wrong(format_fault::source_too_large,
        fmt::format("the source has {} bytes, and {} are allowed", source.text.size(),
          rules_.source_bytes_max));
    if (plans_.empty())
      return wrong(
        format_fault::no_plan, "there is no ```json block with the launch plan behind the code");
    const auto& plan = *plans_.front();
    if (plan.text.size() > rules_.plan_bytes_max)
      return wrong(format_fault::plan_too_large,
        fmt::format(
          "the plan has {} bytes, and {} are allowed", plan.text.size(), rules_.plan_bytes_max));
    json_limits limits;
    limits.unique_keys = true;
    if (auto parsed = parse_json_object(plan.text, "plan", limits); !parsed)
      return wrong(format_fault::plan_not_json,
        fmt::format(
          "the plan in line {} cannot be read: {}", plan.first_line, parsed.error().what));
    out_.language = source.info == "cuda" ? "cuda" : "cute_dsl";
    out_.source = source.text;
    out_.plan = plan.text;
    return true;
  }

  bool read_tool() {
    if (tools_.size() > 1)
      return wrong(format_fault::several_tools,
        fmt::format("there are {} ```tool blocks; ask one thing at a time", tools_.size()));
    const auto& block = *tools_.front();
    const auto not_json = [&](const std::string& why) {
      return wrong(format_fault::tool_not_json,
        fmt::format(
          "the ```tool block in line {} must be {{\"name\": \"…\", \"arguments\": {{…}}}}: "
          "{}",
          block.first_line, why));
    };
    json_limits limits;
    limits.bytes = tool_bytes_max;
    limits.unique_keys = true;
    const auto parsed = parse_json_object(block.text, "tool", limits);
    if (!parsed)
      return not_json(parsed.error().what);
    for (const auto& [key, value] : parsed->items())
      if (key != "name" && key != "arguments")
        return not_json(fmt::format(
          "unknown key '{}'{}", key.substr(0, 40), suggestion(key, {"name", "arguments"})));
    const auto name = parsed->find("name");
    if (name == parsed->end() || !name->is_string())
      return not_json("the name is missing");
    std::vector<std::string> names;
    for (const auto& each : rules_.tools)
      names.push_back(each.name);
    out_.tool.name = name->get<std::string>();
    if (rules_.find_tool(out_.tool.name) == nullptr)
      return wrong(format_fault::tool_unknown,
        fmt::format("no tool '{}' is offered{}", out_.tool.name.substr(0, 40),
          names.empty() ? std::string("; none is") : suggestion(out_.tool.name, names)));
    const auto arguments = parsed->find("arguments");
    if (arguments != parsed->end() && !arguments->is_object())
      return not_json("the arguments must be an object");
    out_.tool.arguments = arguments == parsed->end() ? "{}" : arguments->dump();
    const bool about_code = out_.tool.name != "docs";
    if (!about_code && !(sources_.empty() && plans_.empty()))
      return wrong(format_fault::tool_and_code,
        "a question to docs stands alone: ask first, or hand in the code without a ```tool block");
    if (about_code && sources_.empty())
      return wrong(format_fault::tool_and_code,
        fmt::format("{} works on the code of the same reply: add the {} block and the ```json plan",
          out_.tool.name, wanted_fence()));
    return read_code(false);
  }

  const program_rules& rules_;
  bool empty_ = false;
  bool large_ = false;
  std::vector<markdown_block> blocks_;
  std::vector<const markdown_block*> sources_;
  std::vector<const markdown_block*> plans_;
  std::vector<const markdown_block*> tools_;
  std::vector<const markdown_block*> others_;
  parsed_reply out_;
};

} // namespace

std::string to_string(format_fault fault) {
  switch (fault) { // no default: the compiler reports a missing case
  case format_fault::none:
    return "none";
  case format_fault::empty_reply:
    return "empty_reply";
  case format_fault::reply_too_large:
    return "reply_too_large";
  case format_fault::no_code_block:
    return "no_code_block";
  case format_fault::several_code_blocks:
    return "several_code_blocks";
  case format_fault::unclosed_block:
    return "unclosed_block";
  case format_fault::empty_code_block:
    return "empty_code_block";
  case format_fault::unknown_block:
    return "unknown_block";
  case format_fault::language_refused:
    return "language_refused";
  case format_fault::no_plan:
    return "no_plan";
  case format_fault::several_plans:
    return "several_plans";
  case format_fault::plan_not_json:
    return "plan_not_json";
  case format_fault::plan_too_large:
    return "plan_too_large";
  case format_fault::source_too_large:
    return "source_too_large";
  case format_fault::no_hypothesis:
    return "no_hypothesis";
  case format_fault::several_hypotheses:
    return "several_hypotheses";
  case format_fault::hypothesis_too_short:
    return "hypothesis_too_short";
  case format_fault::hypothesis_too_long:
    return "hypothesis_too_long";
  case format_fault::bad_strategy:
    return "bad_strategy";
  case format_fault::several_tools:
    return "several_tools";
  case format_fault::tool_not_json:
    return "tool_not_json";
  case format_fault::tool_unknown:
    return "tool_unknown";
  case format_fault::tool_and_code:
    return "tool_and_code";
  }
  return "unknown";
}

parsed_reply parse_reply(std::string_view text, const program_rules& rules) {
  return reply_reader(text, rules).read();
}

} // namespace gristmill
