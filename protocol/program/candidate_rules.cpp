#include "protocol/program/candidate_rules.hpp"

#include "protocol/nearest.hpp"
#include "protocol/plan.hpp"
#include "protocol/program/device_tokens.hpp"
#include "protocol/program/markdown.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

using token_kind = device_token::kind;
constexpr size_t complaints_max = 20;

/// What is wrong, a line each; for the same reason only once a line.
class complaints {
public:
  void add(std::string text) {
    if (std::find(all_.begin(), all_.end(), text) == all_.end())
      all_.push_back(std::move(text));
  }
  result<void> verdict(errc code = errc::refused) const {
    if (all_.empty())
      return {};
    std::string out;
    for (size_t i = 0; i < all_.size() && i < complaints_max; ++i)
      out += (i == 0 ? "" : "\n") + all_[i];
    if (all_.size() > complaints_max)
      out += fmt::format("\nand {} more", all_.size() - complaints_max);
    return fail(code, out);
  }

private:
  std::vector<std::string> all_;
};

bool fits(std::string_view word, std::string_view pattern) {
  if (pattern.ends_with('*'))
    return word.starts_with(pattern.substr(0, pattern.size() - 1));
  return word == pattern;
}

/// Whether the pattern stands at this token: one word, or several with `::` between.
bool stands_at(const std::vector<device_token>& tokens, size_t at, std::string_view pattern) {
  while (true) {
    const size_t colons = pattern.find("::");
    const auto word = pattern.substr(0, colons);
    if (at >= tokens.size() || tokens[at].what != token_kind::identifier
      || !fits(tokens[at].text, word))
      return false;
    if (colons == std::string_view::npos)
      return true;
    if (at + 1 >= tokens.size() || tokens[at + 1].text != "::")
      return false;
    at += 2;
    pattern.remove_prefix(colons + 2);
  }
}

void check_names(
  const program_rules& rules, const std::vector<device_token>& tokens, complaints& out) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& token = tokens[i];
    for (const auto& pattern : rules.forbidden)
      if (pattern == "##" ? token.text == "##" && token.what == token_kind::mark
                          : stands_at(tokens, i, pattern))
        out.add(
          fmt::format("source:{}: `{}` is forbidden (candidate.forbidden)", token.line, pattern));
    // A universal name would spell a forbidden word in another way.
    if (token.text == "\\" && token.what == token_kind::mark)
      out.add(
        fmt::format("source:{}: a backslash outside of texts; write plain names", token.line));
    if (!rules.inline_ptx && token.what == token_kind::identifier
      && (token.text == "asm" || token.text == "__asm__" || token.text == "__asm"))
      out.add(
        fmt::format("source:{}: inline PTX is not allowed (candidate.inline_ptx)", token.line));
    if (token.what == token_kind::header
      && std::find(rules.allowed_headers.begin(), rules.allowed_headers.end(), token.text)
        == rules.allowed_headers.end())
      out.add(fmt::format("source:{}: the header '{}' is not allowed (candidate.allowed_headers){}",
        token.line, token.text, suggestion(token.text, rules.allowed_headers)));
  }
}

/// Behind a bracket that opens at `at`, or the end of the tokens.
size_t behind_brackets(const std::vector<device_token>& tokens, size_t at) {
  const std::string open = tokens[at].text, close = open == "(" ? ")" : "]";
  size_t depth = 0;
  for (; at < tokens.size(); ++at) {
    if (tokens[at].text == open)
      ++depth;
    else if (tokens[at].text == close && --depth == 0)
      return at + 1;
  }
  return at;
}

struct kernel_name {
  std::string name;
  size_t line = 0;
};

/// The names behind `__global__`. One that a macro makes is not seen here; the compiler's own check
/// of entries comes later.
std::vector<kernel_name> kernels_of(const std::vector<device_token>& tokens) {
  static const std::set<std::string, std::less<>> attributes{
    "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "__block_size__"};
  std::vector<kernel_name> out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text != "__global__" || tokens[i].directive)
      continue;
    for (size_t at = i + 1; at < tokens.size();) {
      const auto& token = tokens[at];
      // Not `: ""`, which would make a copy of the text that ends with this line.
      const auto next =
        at + 1 < tokens.size() ? std::string_view(tokens[at + 1].text) : std::string_view();
      if (token.text == "[") {
        at = behind_brackets(tokens, at);
      } else if (attributes.contains(token.text) && next == "(") {
        at = behind_brackets(tokens, at + 1);
      } else if (token.what == token_kind::identifier && (next == "(" || next == "<")) {
        out.push_back({token.text, token.line});
        break;
      } else if (token.what == token_kind::identifier || token.text == "::") {
        ++at;
      } else {
        break;
      }
    }
  }
  return out;
}

void entry_names(const std::vector<plan_step>& steps, std::set<std::string>& out) {
  for (const auto& step : steps) {
    entry_names(step.steps, out);
    if (step.what != plan_step::op::launch)
      continue;
    std::string name = step.entry.substr(0, step.entry.find('<'));
    if (const size_t colons = name.rfind("::"); colons != std::string::npos)
      name.erase(0, colons + 2);
    out.insert(std::string(trim(name)));
  }
}

void check_plan(const program_rules& rules, const std::vector<device_token>& tokens,
  std::string_view text, complaints& out) {
  const auto parsed = parse_plan(text);
  if (!parsed) {
    out.add("plan: " + parsed.error().what);
    return;
  }
  if (rules.extra_entries)
    return;
  std::set<std::string> launched;
  for (const auto& variant : parsed->variants)
    entry_names(variant.steps, launched);
  for (const auto& kernel : kernels_of(tokens))
    if (!launched.contains(kernel.name))
      out.add(fmt::format("source:{}: no step of the plan launches the kernel `{}` "
                          "(candidate.extra_entries); delete it or launch it",
        kernel.line, kernel.name));
}

void check_hypothesis(const program_rules& rules, std::string_view text, complaints& out) {
  const auto words = trim(text);
  if (words.empty()) {
    if (rules.hypothesis_required)
      out.add("hypothesis: missing (candidate.hypothesis_required); say in one sentence what you "
              "changed and why it should be faster");
    return;
  }
  if (words.size() < rules.hypothesis_bytes_min)
    out.add(fmt::format("hypothesis: {} bytes, and at least {} are asked for "
                        "(candidate.hypothesis_bytes_min); say what changed and why",
      words.size(), rules.hypothesis_bytes_min));
  if (words.size() > rules.hypothesis_bytes_max)
    out.add(fmt::format("hypothesis: {} bytes, and {} are allowed "
                        "(candidate.hypothesis_bytes_max)",
      words.size(), rules.hypothesis_bytes_max));
}

} // namespace

result<void> check_candidate(const protocol_program& program, std::string_view source,
  std::string_view plan, std::string_view hypothesis, std::string_view language) {
  const auto& rules = program.rules;
  if (std::find(rules.languages.begin(), rules.languages.end(), language) == rules.languages.end())
    return fail(errc::refused,
      fmt::format("the language '{}' is not asked for (candidate.languages){}", language,
        suggestion(language, rules.languages)));
  if (language != "cuda")
    return fail(errc::unsupported,
      fmt::format(
        "no evaluator of this build can run '{}': the candidate is well formed and cannot "
        "be judged; hand in cuda",
        language));
  complaints out;
  if (trim(source).empty())
    out.add("source: empty");
  if (source.size() > rules.source_bytes_max)
    out.add(fmt::format("source: {} bytes, and {} are allowed (candidate.source_bytes_max)",
      source.size(), rules.source_bytes_max));
  if (plan.size() > rules.plan_bytes_max)
    out.add(fmt::format("plan: {} bytes, and {} are allowed (candidate.plan_bytes_max)",
      plan.size(), rules.plan_bytes_max));
  check_hypothesis(rules, hypothesis, out);
  // What is too large is not read any further.
  if (source.size() <= rules.source_bytes_max && plan.size() <= rules.plan_bytes_max) {
    const auto tokens = device_tokens(source);
    check_names(rules, tokens, out);
    check_plan(rules, tokens, plan, out);
  }
  return out.verdict();
}

} // namespace gristmill
