#include "protocol/plan_reader.hpp"

#include "protocol/expression_node.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

bool is_plain_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && text.size() <= 64 && letter(text[0])
    && std::all_of(
      text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool is_reserved(std::string_view text) {
  for (std::string_view word : {"true", "false", "and", "or", "not", "null", "in", "out", "axis",
         "scratch", "occupancy", "sm_count", "smem_per_block", "smem_per_sm", "l2_bytes", "arch"})
    if (text == word)
      return true;
  return std::any_of(expression_functions.begin(), expression_functions.end(),
    [&](const function_row& row) { return row.name == text; });
}

} // namespace

void plan_reader::refuse(std::string_view path, const std::string& why) {
  if (!failed_)
    failed_ = failure{errc::invalid_input,
      path.empty() ? fmt::format("plan: {}", why) : fmt::format("plan: {}: {}", path, why)};
}

bool plan_reader::is_object(const ordered_json& from, std::string_view path) {
  if (from.is_object())
    return true;
  refuse(path, fmt::format("must be an object, not {}", kind_text(from)));
  return false;
}

void plan_reader::known_keys(
  const ordered_json& from, std::string_view path, const std::vector<std::string>& known) {
  for (const auto& [key, value] : from.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse(path, fmt::format("unknown key {}{}", excerpt(key), suggestion(key, known)));
}

const ordered_json* plan_reader::member(
  const ordered_json& from, std::string_view path, const char* key, bool required) {
  const auto found = from.find(key);
  if (found != from.end())
    return &*found;
  if (required)
    refuse(join_path(path, key), "is required");
  return nullptr;
}

expression plan_reader::to_expression(
  const ordered_json& from, const std::string& path, use where) {
  if (!from.is_string() && !from.is_number()) {
    refuse(path,
      fmt::format("must be an expression string or a number, not {}{}", kind_text(from),
        from.is_boolean() ? "; write \"true\" or \"false\" as a string" : ""));
    return {};
  }
  const std::string text = from.is_string() ? from.get<std::string>() : from.dump();
  auto parsed = parse_expression(text, expression_mode::plan);
  if (!parsed) {
    refuse(path, parsed.error().what);
    return {};
  }
  if (where == use::plain && parsed->calls("occupancy"))
    refuse(path, "`occupancy` may stand only in grid, args and scratch shapes");
  return std::move(*parsed);
}

expression plan_reader::read_expression(const ordered_json& from, std::string_view path,
  const char* key, std::string_view fallback, use where) {
  const auto at = join_path(path, key);
  if (const auto* found = member(from, path, key, fallback.empty()))
    return to_expression(*found, at, where);
  return fallback.empty() ? expression{} : to_expression(std::string{fallback}, at, where);
}

std::vector<expression> plan_reader::read_list(
  const ordered_json& from, std::string_view path, const char* key, bool required, use where) {
  std::vector<expression> out;
  const auto* found = member(from, path, key, required);
  if (found == nullptr)
    return out;
  const auto at = join_path(path, key);
  if (!found->is_array()) {
    refuse(at, fmt::format("must be a list, not {}", kind_text(*found)));
    return out;
  }
  if (found->size() > 64) {
    refuse(at, "a list of more than 64 entries");
    return out;
  }
  for (size_t i = 0; i < found->size(); ++i)
    out.push_back(to_expression((*found)[i], fmt::format("{}.{}", at, i), where));
  return out;
}

std::array<expression, 3> plan_reader::read_triple(
  const ordered_json& from, std::string_view path, const char* key, use where) {
  const auto list = read_list(from, path, key, true, where);
  if (list.size() == 3)
    return {list[0], list[1], list[2]};
  refuse(join_path(path, key), fmt::format("must have three entries, not {}", list.size()));
  return {};
}

std::string plan_reader::read_text(
  const ordered_json& from, std::string_view path, const char* key, std::string_view fallback) {
  const auto* found = member(from, path, key, fallback.empty());
  if (found == nullptr)
    return std::string{fallback};
  if (found->is_string() && !found->get_ref<const std::string&>().empty())
    return found->get<std::string>();
  refuse(join_path(path, key), "must be a non-empty string");
  return {};
}

std::string plan_reader::read_choice(const ordered_json& from, std::string_view path,
  const char* key, std::string_view fallback, const std::vector<std::string>& choices) {
  auto text = read_text(from, path, key, fallback);
  if (!text.empty() && std::find(choices.begin(), choices.end(), text) == choices.end())
    refuse(join_path(path, key),
      fmt::format("{} is not a choice{}", excerpt(text), suggestion(text, choices)));
  return text;
}

bool plan_reader::read_flag(
  const ordered_json& from, std::string_view path, const char* key, bool fallback) {
  const auto* found = member(from, path, key, false);
  if (found == nullptr)
    return fallback;
  if (found->is_boolean())
    return found->get<bool>();
  refuse(join_path(path, key), fmt::format("must be true or false, not {}", kind_text(*found)));
  return fallback;
}

int64_t plan_reader::read_int(const ordered_json& from, std::string_view path, const char* key,
  std::optional<int64_t> fallback, int64_t lowest, int64_t highest) {
  const auto* found = member(from, path, key, !fallback);
  if (found == nullptr)
    return fallback.value_or(lowest);
  if (found->is_number_integer()) {
    const auto value = lenient_int(*found);
    if (value && *value >= lowest && *value <= highest)
      return *value;
  }
  refuse(join_path(path, key), fmt::format("must be an integer from {} to {}", lowest, highest));
  return lowest;
}

expression_name plan_reader::read_name(
  const ordered_json& from, std::string_view path, const char* key) {
  const auto text = read_text(from, path, key, "");
  if (failed_)
    return {};
  auto parsed = parse_expression(text, expression_mode::plan);
  if (parsed)
    if (auto found = parsed->as_name())
      return std::move(*found);
  refuse(join_path(path, key), fmt::format("{} is not the name of a tensor", excerpt(text)));
  return {};
}

void plan_reader::check_new_name(std::string_view path, const std::string& name) {
  if (!is_plain_name(name))
    refuse(
      path, fmt::format("{} is not a name (letters, digits and _, at most 64)", excerpt(name)));
  else if (is_reserved(name))
    refuse(path, fmt::format("{} is a word of the plan language", excerpt(name)));
}

} // namespace gristmill
