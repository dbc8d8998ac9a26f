#include "protocol/workload_reader.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace gristmill {

namespace {

using need = field_reader::need;

constexpr size_t failed_lines_max = 20;
constexpr size_t warnings_max = 200;

std::optional<python_number> read_number(const ordered_json& from) {
  if (from.is_boolean())
    return python_number{from.get<bool>()};
  if (from.is_number_float())
    return python_number{from.get<double>()};
  // In this order, so that "1" and "1.0" are integers and "t" is a bool.
  if (const auto whole = lenient_int(from))
    return python_number{*whole};
  if (is_oversized_int(from)) // Not silently a float.
    return std::nullopt;
  if (const auto number = lenient_float(from))
    return python_number{*number};
  if (const auto flag = lenient_bool(from))
    return python_number{*flag};
  return std::nullopt;
}

bool has_text(const ordered_json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_string() && !found->get_ref<const std::string&>().empty();
}

/// What an input without a type is: the first kind whose required fields are all there.
std::string undeclared_kind(const ordered_json& from) {
  if (has_text(from, "path") && has_text(from, "tensor_key"))
    return "safetensors";
  const auto value = from.find("value");
  // One beyond 64 bits is refused as a scalar instead of becoming random unseen.
  if (value != from.end() && (read_number(*value) || is_oversized_int(*value)))
    return "scalar";
  return "random";
}

input_spec read_input(const std::string& input_name, const ordered_json& from,
  const std::string& path, field_reader& fields) {
  input_spec out;
  out.name = input_name;
  if (!from.is_object()) {
    fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
    return out;
  }
  const auto type = from.find("type");
  std::string kind;
  if (type == from.end()) {
    kind = undeclared_kind(from);
  } else if (type->is_string()) {
    kind = type->get<std::string>();
  } else {
    fields.error(path + ".type", fmt::format("must be a string, not {}", kind_text(*type)));
    return out;
  }
  if (kind == "random" || kind == "custom") {
    out.kind = kind == "random" ? input_kind::random : input_kind::custom;
    fields.ignore_others(from, path, {"type"});
  } else if (kind == "scalar") {
    out.kind = input_kind::scalar;
    const auto value = from.find("value");
    const auto number = value == from.end() ? std::nullopt : read_number(*value);
    if (!number)
      fields.error(path + ".value", "a scalar input needs a number or a bool");
    out.value = number.value_or(python_number{int64_t{0}});
    fields.ignore_others(from, path, {"type", "value"});
  } else if (kind == "safetensors") {
    out.kind = input_kind::safetensors;
    out.path = fields.text(from, path, "path", need::required);
    out.tensor_key = fields.text(from, path, "tensor_key", need::required);
    fields.ignore_others(from, path, {"type", "path", "tensor_key"});
  } else {
    fields.error(path + ".type",
      fmt::format("unknown input type {}{}", excerpt(kind),
        suggestion(kind, {"random", "scalar", "safetensors", "custom"})));
  }
  return out;
}

tolerance read_tolerance(
  const ordered_json& document, std::string_view path, field_reader& fields) {
  tolerance out;
  if (document.find("tolerance") == document.end())
    return out;
  const auto* from = fields.object(document, path, "tolerance");
  if (from == nullptr)
    return out;
  const auto at = join_path(path, "tolerance");
  out.atol = fields.number(*from, at, "max_atol", out.atol);
  out.rtol = fields.number(*from, at, "max_rtol", out.rtol);
  out.matched_ratio = fields.number(*from, at, "required_matched_ratio", out.matched_ratio);
  if (const auto cap = from->find("max_error_cap"); cap != from->end() && !cap->is_null())
    out.error_cap = fields.number(*from, at, "max_error_cap", 0);
  out.allow_negative_inf = fields.boolean(*from, at, "allow_negative_inf", false);
  fields.ignore_others(*from, at,
    {"max_atol", "max_rtol", "required_matched_ratio", "max_error_cap", "allow_negative_inf"});
  return out;
}

axis_values read_axes(const ordered_json& document, std::string_view path, field_reader& fields) {
  axis_values out;
  const auto* from = fields.object(document, path, "axes");
  if (from == nullptr)
    return out;
  for (const auto& [axis_name, value] : from->items()) {
    const auto number = lenient_int(value);
    if (number && *number >= 0)
      out.emplace_back(axis_name, *number);
    else
      fields.error(join_path(join_path(path, "axes"), axis_name),
        fmt::format("must be an integer of 0 or more, not {}",
          number ? std::to_string(*number) : std::string{kind_text(value)}));
  }
  return out;
}

} // namespace

workload read_workload(const ordered_json& document, std::string_view path, field_reader& fields,
  std::string_view text) {
  workload out;
  const size_t errors_before = fields.error_count();
  if (document.contains("workload") && !document.contains("uuid")) {
    fields.error(join_path(path, "workload"),
      "the line is wrapped in a trace, the form of FlashInfer-Bench; `gristmill convert` makes a "
      "workload file of it");
    return out;
  }
  out.uuid = fields.text(document, path, "uuid", need::required);
  out.axes = read_axes(document, path, fields);
  if (const auto* inputs = fields.object(document, path, "inputs")) {
    const auto at = join_path(path, "inputs");
    for (const auto& [input_name, value] : inputs->items()) {
      out.inputs.push_back(read_input(input_name, value, join_path(at, input_name), fields));
      const auto& last = out.inputs.back();
      const auto* real = std::get_if<double>(&last.value);
      if (last.kind == input_kind::scalar && real != nullptr && has_oversized_literal(text, *real))
        fields.error(join_path(join_path(at, input_name), "value"),
          "an integer beyond 64 bits; write it with an exponent if a float is meant");
    }
  }
  out.allowed = read_tolerance(document, path, fields);
  fields.ignore_others(document, path, {"uuid", "axes", "inputs", "tolerance", "checks"});
  if (document.contains("checks"))
    fields.warn(join_path(path, "checks"),
      "ignored key `checks`: another dialect's tolerance; the one under `tolerance`, or "
      "its default, applies");
  if (fields.error_count() > errors_before)
    return out;
  const auto is_custom = [](const input_spec& each) { return each.kind == input_kind::custom; };
  if (std::any_of(out.inputs.begin(), out.inputs.end(), is_custom)
    && !std::all_of(out.inputs.begin(), out.inputs.end(), is_custom))
    fields.error(join_path(path, "inputs"), "custom inputs do not mix with other kinds");
  return out;
}

result<void> for_each_line(std::string_view text, const std::string& file_name,
  std::vector<std::string>* warnings,
  const std::function<result<void>(std::string_view, size_t, std::vector<std::string>&)>& read) {
  struct occurrence {
    size_t first_line = 0;
    size_t more = 0;
  };
  std::string errors;
  size_t failed = 0;
  std::map<std::string, occurrence> repeated;
  size_t line = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (content.find_first_not_of(" \t\r\f\v") == std::string_view::npos)
      continue;
    std::vector<std::string> own;
    if (auto fine = read(content, line, own); !fine && ++failed <= failed_lines_max)
      errors += (errors.empty() ? "" : "\n") + fine.error().what;
    for (const auto& each : own) {
      if (const auto seen = repeated.find(each); seen != repeated.end())
        ++seen->second.more;
      else if (repeated.size() < warnings_max)
        repeated.emplace(each, occurrence{line, 0});
    }
  }
  if (warnings != nullptr)
    for (const auto& [what, seen] : repeated)
      warnings->push_back(fmt::format("{}:{}: {}{}", file_name, seen.first_line, what,
        seen.more == 0 ? "" : fmt::format(" (and on {} more lines)", seen.more)));
  if (failed > failed_lines_max)
    errors += fmt::format("\n{}: {} more lines are wrong", file_name, failed - failed_lines_max);
  if (failed > 0)
    return fail(errc::invalid_input, errors);
  return {};
}

} // namespace gristmill
