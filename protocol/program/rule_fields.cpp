#include "protocol/program/rule_fields.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

std::string told(uint32_t value) {
  return std::to_string(value);
}
std::string told(double value) {
  return fmt::format("{}", value);
}
std::string told(bool value) {
  return value ? "yes" : "no";
}
std::string told(const std::vector<std::string>& values) {
  std::string out;
  for (const auto& each : values)
    out += (out.empty() ? "`" : ", `") + each + "`";
  return out.empty() ? "none" : out;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

} // namespace

const std::vector<std::string>& known_tools() {
  static const std::vector<std::string> names{"compile", "emulate", "docs"};
  return names;
}

std::vector<std::string> rule_names() {
  std::vector<std::string> out;
  program_rules rules;
  each_rule(rules, [&](const char* name, auto&, rule_range) {
    if (std::string_view(name) == "prompt.history_rows")
      for (const auto& tool : known_tools())
        out.push_back("tools." + tool);
    out.emplace_back(name);
  });
  return out;
}

std::optional<std::string> rule_value(const program_rules& rules, std::string_view name) {
  for (const auto& tool : known_tools())
    if (name == "tools." + tool) {
      const auto* limit = rules.find_tool(tool);
      return told(limit == nullptr ? uint32_t{0} : limit->calls_max);
    }
  std::optional<std::string> out;
  each_rule(rules, [&](const char* each, const auto& member, rule_range) {
    if (name == each)
      out = told(member);
  });
  return out;
}

std::vector<rule_mention> rule_mentions(std::string_view text) {
  static const std::vector<std::string_view> tables{
    "candidate", "turn", "tools", "prompt", "search", "stop"};
  std::vector<rule_mention> out;
  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    size_t dot = at + 1;
    while (dot < text.size() && is_word(text[dot]))
      ++dot;
    if (dot >= text.size() || text[dot] != '.'
      || std::find(tables.begin(), tables.end(), text.substr(at + 1, dot - at - 1)) == tables.end())
      continue;
    size_t end = dot + 1;
    while (end < text.size() && is_word(text[end]))
      ++end;
    if (end >= text.size() || text[end] != '}')
      continue;
    out.push_back({at, end + 1, std::string(text.substr(at + 1, end - at - 1))});
  }
  return out;
}

std::string fill_mentions(std::string_view text, const program_rules& rules) {
  std::string out;
  size_t from = 0;
  for (const auto& mention : rule_mentions(text)) {
    out += text.substr(from, mention.first - from);
    const auto value = rule_value(rules, mention.name);
    out += value ? *value : std::string(text.substr(mention.first, mention.end - mention.first));
    from = mention.end;
  }
  return out += text.substr(from);
}

} // namespace gristmill
