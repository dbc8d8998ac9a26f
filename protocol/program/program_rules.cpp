#include "protocol/program/program_rules.hpp"

#include "protocol/nearest.hpp"
#include "protocol/program/rule_fields.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <toml++/toml.h>

namespace gristmill {

namespace {

constexpr const char* schema = "gristmill.program/1";

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool is_identifier_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// "printf", "cooperative_groups::this_grid", "cub*" or "##".
bool is_pattern(std::string_view text) {
  if (text == "##")
    return true;
  if (text.ends_with('*'))
    text.remove_suffix(1);
  if (text.empty() || text.size() > 100)
    return false;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find("::", at), text.size());
    const auto word = text.substr(at, end - at);
    if (word.empty() || std::isdigit(static_cast<unsigned char>(word.front())) != 0
      || !std::all_of(word.begin(), word.end(), is_identifier_char))
      return false;
    at = end + 2;
    if (end == text.size())
      break;
  }
  return true;
}

bool is_header(std::string_view text) {
  return !text.empty() && text.size() <= 100 && text.front() != '/'
    && text.find("..") == std::string_view::npos
    && std::all_of(text.begin(), text.end(),
      [](char c) { return is_identifier_char(c) || c == '.' || c == '/' || c == '-'; });
}

/// Reads the tables of a file and keeps every error with its line.
class rule_reader {
public:
  rule_reader(const toml::table& root, std::string file, size_t first_line)
    : root_(root), file_(std::move(file)), first_line_(first_line) {}

  void wrong(const std::string& field, const std::string& why) {
    auto found = lines_.find(field);
    const size_t line = found == lines_.end() ? first_line_ : found->second;
    errors_.emplace_back(line, fmt::format("{}:{}: {}: {}", file_, line, field, why));
  }

  void read(program_rules& rules, std::string& name) {
    note_lines();
    read_head(name);
    each_rule(rules, [&](const char* field, auto& member, rule_range range) {
      if (const auto* node = take(field); node != nullptr)
        read_value(*node, field, member, range);
    });
    read_tools(rules);
    refuse_unknown();
  }

  bool failed() const { return !errors_.empty(); }

  failure collected() {
    std::stable_sort(errors_.begin(), errors_.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string out;
    for (const auto& [line, text] : errors_)
      out += (out.empty() ? "" : "\n") + text;
    return {errc::invalid_input, out};
  }

private:
  size_t line_of(const toml::node& node) const {
    return first_line_ + static_cast<size_t>(node.source().begin.line) - 1;
  }

  void note_lines() {
    for (const auto& [table_name, node] : root_) {
      const std::string table(table_name.str());
      lines_[table] = line_of(node);
      if (const auto* table_node = node.as_table())
        for (const auto& [key, value] : *table_node)
          lines_[table + "." + std::string(key.str())] = line_of(value);
    }
  }

  const toml::node* take(const std::string& field) {
    asked_.push_back(field);
    const size_t dot = field.find('.');
    const auto* table = root_[field.substr(0, dot)].as_table();
    return table == nullptr ? nullptr : table->get(field.substr(dot + 1));
  }

  void read_head(std::string& name) {
    const auto* node = take("program.schema");
    if (node == nullptr)
      wrong("program.schema", fmt::format("missing; write schema = \"{}\"", schema));
    else if (node->value_exact<std::string>() != schema)
      wrong("program.schema", fmt::format("must be \"{}\"", schema));
    if (const auto* given = take("program.name"); given != nullptr) {
      const auto text = given->value_exact<std::string>();
      if (!text || text->empty() || text->size() > 80)
        wrong("program.name", "must be a text of 1 to 80 bytes");
      else
        name = *text;
    } else {
      wrong("program.name", "missing; name the protocol, such as name = \"default\"");
    }
  }

  void read_value(
    const toml::node& node, const std::string& field, uint32_t& to, rule_range range) {
    const auto value = node.value_exact<int64_t>();
    if (!value || static_cast<double>(*value) < range.least
      || static_cast<double>(*value) > range.most)
      return wrong(field,
        fmt::format("must be a whole number from {:.0f} to {:.0f}", range.least, range.most));
    to = static_cast<uint32_t>(*value);
  }
  void read_value(const toml::node& node, const std::string& field, double& to, rule_range range) {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    // Written so that NaN is refused.
    if (!value || !(*value >= range.least && *value <= range.most))
      return wrong(field, fmt::format("must be a number from {} to {}", range.least, range.most));
    to = *value;
  }
  void read_value(const toml::node& node, const std::string& field, bool& to, rule_range) {
    const auto value = node.value_exact<bool>();
    if (!value)
      return wrong(field, "must be true or false");
    to = *value;
  }
  void read_value(const toml::node& node, const std::string& field, std::vector<std::string>& to,
    rule_range range) {
    const auto* list = node.as_array();
    if (list == nullptr || static_cast<double>(list->size()) < range.least
      || static_cast<double>(list->size()) > range.most)
      return wrong(
        field, fmt::format("must be a list of {:.0f} to {:.0f} strings", range.least, range.most));
    std::vector<std::string> out;
    for (const auto& item : *list) {
      const auto text = item.value_exact<std::string>();
      if (!text)
        return wrong(field, "must be a list of strings");
      if (contains(out, *text))
        return wrong(field, fmt::format("'{}' stands there twice; delete one", *text));
      out.push_back(*text);
    }
    to = std::move(out);
  }

  void read_tools(program_rules& rules) {
    std::vector<std::string> forbidden;
    if (const auto* node = take("tools.forbidden"); node != nullptr)
      read_value(*node, "tools.forbidden", forbidden, {0, 10});
    for (const auto& each : forbidden)
      if (!contains(known_tools(), each))
        wrong("tools.forbidden",
          fmt::format("no tool is called '{}'{}", each, suggestion(each, known_tools())));
    for (const auto& tool : known_tools()) {
      const std::string field = "tools." + tool;
      const auto* node = take(field);
      if (node == nullptr)
        continue;
      uint32_t calls = 0;
      const size_t before = errors_.size();
      read_value(*node, field, calls, {1, 100});
      if (errors_.size() != before)
        continue;
      if (contains(forbidden, tool))
        wrong(field,
          fmt::format("{} is allowed here and stands in tools.forbidden too; delete one", tool));
      rules.tools.push_back({tool, calls});
    }
  }

  void refuse_unknown() {
    std::vector<std::string> tables;
    for (const auto& field : asked_)
      if (const auto table = field.substr(0, field.find('.')); !contains(tables, table))
        tables.push_back(table);
    for (const auto& [table_name, node] : root_) {
      const std::string table(table_name.str());
      const auto* keys = node.as_table();
      if (keys == nullptr || !contains(tables, table)) {
        wrong(table,
          keys == nullptr ? "every rule stands in a table, such as [candidate]"
                          : "unknown table" + suggestion(table, tables));
        continue;
      }
      std::vector<std::string> known;
      for (const auto& field : asked_)
        if (field.starts_with(table + "."))
          known.push_back(field.substr(table.size() + 1));
      for (const auto& [key, value] : *keys)
        if (const std::string name(key.str()); !contains(known, name))
          wrong(table + "." + name, "unknown rule" + suggestion(name, known));
    }
  }

  const toml::table& root_;
  std::string file_;
  size_t first_line_;
  std::map<std::string, size_t> lines_;
  std::vector<std::string> asked_;
  std::vector<std::pair<size_t, std::string>> errors_;
};

void check_words(const program_rules& r, rule_reader& to) {
  static const std::vector<std::string> languages{"cuda", "cute_dsl"};
  for (const auto& each : r.languages)
    if (!contains(languages, each))
      to.wrong("candidate.languages",
        fmt::format("'{}' is no language{}", each, suggestion(each, languages)));
  for (const auto& each : r.forbidden) {
    if (!is_pattern(each))
      to.wrong("candidate.forbidden",
        fmt::format(
          "'{}' is no identifier; write a name, a::name, a name with * at its end, or ##", each));
    if (r.inline_ptx && (each == "asm" || each == "__asm__"))
      to.wrong("candidate.forbidden",
        fmt::format("'{}' is forbidden while candidate.inline_ptx = true allows it; delete it here "
                    "or set inline_ptx = false",
          each));
  }
  for (const auto& each : r.allowed_headers)
    if (!is_header(each))
      to.wrong("candidate.allowed_headers",
        fmt::format("'{}' is no name of a header, such as \"cuda_bf16.h\"", each));
}

/// Rules that contradict each other, and rules that never matter because another comes first.
void check_together(const program_rules& r, rule_reader& to) {
  if (r.hypothesis_bytes_min > r.hypothesis_bytes_max)
    to.wrong("candidate.hypothesis_bytes_min",
      fmt::format("{} is more than hypothesis_bytes_max = {}, so that no hypothesis fits; lower it",
        r.hypothesis_bytes_min, r.hypothesis_bytes_max));
  if (r.section_bytes < r.source_bytes_max)
    to.wrong("prompt.section_bytes",
      fmt::format("{} would cut a source of candidate.source_bytes_max = {} bytes, which an agent "
                  "has to hand back whole; make it at least as large",
        r.section_bytes, r.source_bytes_max));
  if (r.section_bytes < r.plan_bytes_max)
    to.wrong("prompt.section_bytes",
      fmt::format("{} would cut a plan of candidate.plan_bytes_max = {} bytes; make it at least as "
                  "large",
        r.section_bytes, r.plan_bytes_max));
  if (r.temperature_min > r.temperature_max)
    to.wrong("turn.temperature_min",
      fmt::format(
        "{} is more than temperature_max = {}; swap them", r.temperature_min, r.temperature_max));
  if (r.reflect_every > 0 && r.insight_lines == 0)
    to.wrong("search.reflect_every",
      "a reflection would write nothing, because prompt.insight_lines = 0; set it to 0 or allow "
      "lines");
  if (r.reflect_every == 0 && r.insight_lines > 0)
    to.wrong("prompt.insight_lines",
      "nobody writes insights, because search.reflect_every = 0; set it to 0 or let agents "
      "reflect");
  if (r.handoff_attempts == 0)
    return;
  const auto never = [&](const char* field, uint64_t needs, const std::string& why) {
    to.wrong(field,
      fmt::format(
        "can never matter: {}, and a worker leaves after stop.handoff_attempts = {}; lower it "
        "or let a worker have {} attempts",
        why, r.handoff_attempts, needs));
  };
  const uint64_t plateau = uint64_t{r.plateau_attempts} + 1;
  const uint64_t last = uint64_t{r.plateau_attempts} * r.handoff_plateaus + 1;
  if (plateau > r.handoff_attempts)
    never("search.plateau_attempts", plateau,
      fmt::format("a plateau is {} attempts after one that passed", r.plateau_attempts));
  else if (r.handoff_plateaus > 0 && last > r.handoff_attempts)
    never("stop.handoff_plateaus", last,
      fmt::format("{} plateaus of {} attempts after one that passed are {} attempts",
        r.handoff_plateaus, r.plateau_attempts, last));
  if (r.reflect_every >= r.handoff_attempts)
    never("search.reflect_every", uint64_t{r.reflect_every} + 1,
      fmt::format("a reflection comes after {} attempts", r.reflect_every));
  if (r.same_strategy_max >= r.handoff_attempts)
    never("search.same_strategy_max", uint64_t{r.same_strategy_max} + 1,
      fmt::format("{} attempts of one strategy may follow each other", r.same_strategy_max));
}

} // namespace

const tool_limit* program_rules::find_tool(std::string_view name) const {
  const auto found =
    std::find_if(tools.begin(), tools.end(), [&](const auto& each) { return each.name == name; });
  return found == tools.end() ? nullptr : &*found;
}

result<program_rules> parse_rules(
  std::string_view text, const std::string& file_name, size_t first_line, std::string& name) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return fail(errc::invalid_input,
      fmt::format("{}:{}: front matter: {}", file_name,
        first_line + static_cast<size_t>(error.source().begin.line) - 1, error.description()));
  }
  program_rules out;
  out.tools.clear();
  rule_reader reader(root, file_name, first_line);
  reader.read(out, name);
  if (!reader.failed()) {
    check_words(out, reader);
    check_together(out, reader);
  }
  if (reader.failed())
    return tl::unexpected<failure>(reader.collected());
  return out;
}

} // namespace gristmill
