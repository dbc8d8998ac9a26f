#include "protocol/proposer_text.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::array named_kinds{proposer_kind::template_search, proposer_kind::random,
  proposer_kind::exhaustive, proposer_kind::scripted, proposer_kind::sleep, proposer_kind::llm,
  proposer_kind::replay};
constexpr uint32_t share_max = 1000;

std::string_view trimmed(std::string_view text) {
  const auto* blanks = " \t\n";
  auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The parts between commas that stand outside quotes. Nothing for a quote that is left open.
result<std::vector<std::string_view>> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  char quote = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if (c == '\'' || c == '"')
      quote = c;
    else if (c == ',') {
      out.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (quote != 0)
    return fail(errc::invalid_input, fmt::format("a quotation mark ({}) is left open", quote));
  out.push_back(trimmed(text.substr(begin)));
  return out;
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"')
    && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

result<proposer_choice> one_choice(std::string_view text) {
  proposer_choice out;
  constexpr std::string_view command = "command:";
  if (text.starts_with(command)) {
    out.kind = proposer_kind::command;
    out.command = trimmed(text.substr(command.size()));
    if (out.command.empty())
      return fail(errc::invalid_input, "command: names no command; write 'command: CMD'");
    return out;
  }
  std::vector<std::string> known;
  for (auto kind : named_kinds) {
    known.push_back(to_string(kind));
    if (known.back() == text) {
      out.kind = kind;
      return out;
    }
  }
  known.emplace_back("command: CMD");
  known.emplace_back("mixed(llm=3, template=1)");
  return fail(errc::invalid_input, fmt::format("'{}' is unknown{}", text, suggestion(text, known)));
}

/// "llm=3"
result<proposer_choice> share_of(std::string_view part) {
  auto equals = part.rfind('=');
  if (equals == std::string_view::npos)
    return fail(
      errc::invalid_input, fmt::format("'{}' has no share; write NAME=COUNT, such as llm=3", part));
  auto choice = one_choice(unquoted(trimmed(part.substr(0, equals))));
  if (!choice)
    return choice;
  auto count = trimmed(part.substr(equals + 1));
  auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), choice->share);
  if (error != std::errc{} || end != count.data() + count.size() || choice->share == 0
    || choice->share > share_max)
    return fail(errc::invalid_input,
      fmt::format("'{}': a share is a whole number from 1 to {}", part, share_max));
  if (choice->kind == proposer_kind::scripted || choice->kind == proposer_kind::sleep)
    return fail(errc::invalid_input,
      fmt::format("{} is for a whole run and does not mix", to_string(choice->kind)));
  return choice;
}

} // namespace

std::string to_string(proposer_kind kind) {
  switch (kind) { // no default: the compiler reports a missing case
  case proposer_kind::template_search:
    return "template";
  case proposer_kind::random:
    return "random";
  case proposer_kind::exhaustive:
    return "exhaustive";
  case proposer_kind::scripted:
    return "scripted";
  case proposer_kind::sleep:
    return "sleep";
  case proposer_kind::llm:
    return "llm";
  case proposer_kind::replay:
    return "replay";
  case proposer_kind::command:
    return "command";
  }
  return "unknown";
}

result<std::vector<proposer_choice>> parse_proposer(std::string_view text) {
  text = trimmed(text);
  constexpr std::string_view mixed = "mixed(";
  if (!text.starts_with(mixed)) {
    auto one = one_choice(text);
    if (!one)
      return pass(one);
    return std::vector{std::move(*one)};
  }
  if (text.back() != ')')
    return fail(errc::invalid_input, fmt::format("'{}': the bracket is left open", text));
  auto parts = parts_of(text.substr(mixed.size(), text.size() - mixed.size() - 1));
  if (!parts)
    return pass(parts);
  std::vector<proposer_choice> out;
  for (auto part : *parts) {
    auto choice = share_of(part);
    if (!choice)
      return pass(choice);
    for (const auto& other : out)
      if (other.kind == choice->kind && other.command == choice->command)
        return fail(errc::invalid_input, fmt::format("{} is named twice", to_string(choice->kind)));
    out.push_back(std::move(*choice));
  }
  return out;
}

const proposer_choice& proposer_of_worker(
  const std::vector<proposer_choice>& mix, uint32_t worker) {
  // Each worker in turn goes to whoever is furthest behind its share.
  uint64_t sum = 0;
  for (const auto& choice : mix)
    sum += choice.share;
  std::vector<uint64_t> given(mix.size());
  size_t chosen = 0;
  for (uint64_t i = 0; i <= worker % sum; ++i) {
    auto owed = [&](size_t k) {
      return static_cast<int64_t>(mix[k].share * (i + 1)) - static_cast<int64_t>(given[k] * sum);
    };
    chosen = 0;
    for (size_t k = 1; k < mix.size(); ++k)
      if (owed(k) > owed(chosen))
        chosen = k;
    ++given[chosen];
  }
  return mix[chosen];
}

bool asks_models(const std::vector<proposer_choice>& mix) {
  return std::any_of(
    mix.begin(), mix.end(), [](const proposer_choice& c) { return c.asks_models(); });
}

} // namespace gristmill
