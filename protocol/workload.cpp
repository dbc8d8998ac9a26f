#include "protocol/workload.hpp"

#include "protocol/expression.hpp"
#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>

namespace gristmill {

namespace {

using need = field_reader::need;

constexpr size_t failed_lines_max = 20;

std::optional<python_number> read_number(const ordered_json& from) {
  if (from.is_boolean())
    return python_number{from.get<bool>()};
  if (from.is_number_float())
    return python_number{from.get<double>()};
  // In this order, so that "1" is an integer and "t" a bool.
  if (const auto whole = lenient_int(from)) {
    const bool has_fraction =
      from.is_string() && from.get_ref<const std::string&>().find('.') != std::string::npos;
    return has_fraction ? python_number{static_cast<double>(*whole)} : python_number{*whole};
  }
  if (from.is_number()) // An integer beyond 64 bits.
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
  if (const auto value = from.find("value"); value != from.end() && read_number(*value))
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

void read_float(const ordered_json& from, const char* key, field_reader& fields, double& out) {
  const auto found = from.find(key);
  if (found == from.end())
    return;
  const auto number = lenient_float(*found);
  // A NaN is a number for the format, but nothing would ever exceed it.
  if (number && !std::isnan(*number))
    out = *number;
  else
    fields.error(join_path("tolerance", key),
      fmt::format("must be a number, not {}", number ? "NaN" : kind_text(*found)));
}

tolerance read_tolerance(const ordered_json& document, field_reader& fields) {
  tolerance out;
  if (document.find("tolerance") == document.end())
    return out;
  const auto* from = fields.object(document, "", "tolerance");
  if (from == nullptr)
    return out;
  read_float(*from, "max_atol", fields, out.atol);
  read_float(*from, "max_rtol", fields, out.rtol);
  read_float(*from, "required_matched_ratio", fields, out.matched_ratio);
  if (const auto cap = from->find("max_error_cap"); cap != from->end() && !cap->is_null()) {
    double value = 0;
    read_float(*from, "max_error_cap", fields, value);
    out.error_cap = value;
  }
  if (const auto allow = from->find("allow_negative_inf"); allow != from->end()) {
    const auto flag = lenient_bool(*allow);
    if (!flag)
      fields.error(
        "tolerance.allow_negative_inf", fmt::format("must be a bool, not {}", kind_text(*allow)));
    out.allow_negative_inf = flag.value_or(false);
  }
  fields.ignore_others(*from, "tolerance",
    {"max_atol", "max_rtol", "required_matched_ratio", "max_error_cap", "allow_negative_inf"});
  return out;
}

axis_values read_axes(const ordered_json& document, field_reader& fields) {
  axis_values out;
  const auto* from = fields.object(document, "", "axes");
  if (from == nullptr)
    return out;
  for (const auto& [axis_name, value] : from->items()) {
    const auto number = lenient_int(value);
    if (number && *number >= 0)
      out.emplace_back(axis_name, *number);
    else
      fields.error(join_path("axes", axis_name), "must be an integer of 0 or more");
  }
  return out;
}

/// A line with its own warnings, which do not name file and line.
result<workload> read_line(
  std::string_view json_line, const std::string& where, std::vector<std::string>& warnings) {
  auto document = parse_json(json_line, where);
  if (!document)
    return pass(document);
  if (!document->is_object())
    return fail(errc::invalid_input,
      fmt::format("{}: must be an object, not {}", where, kind_text(*document)));
  field_reader fields;
  workload out;
  out.uuid = fields.text(*document, "", "uuid", need::required);
  out.axes = read_axes(*document, fields);
  if (const auto* inputs = fields.object(*document, "", "inputs"))
    for (const auto& [input_name, value] : inputs->items())
      out.inputs.push_back(read_input(input_name, value, join_path("inputs", input_name), fields));
  out.allowed = read_tolerance(*document, fields);
  fields.ignore_others(*document, "", {"uuid", "axes", "inputs", "tolerance", "checks"});
  if (document->contains("checks"))
    fields.warn("ignored key `checks`: another dialect's tolerance; the one under `tolerance`, or "
                "its default, applies");
  warnings = fields.warnings();
  if (fields.failed())
    return tl::unexpected(fields.collected(where));
  const auto is_custom = [](const input_spec& each) { return each.kind == input_kind::custom; };
  if (std::any_of(out.inputs.begin(), out.inputs.end(), is_custom)
    && !std::all_of(out.inputs.begin(), out.inputs.end(), is_custom))
    return fail(errc::invalid_input,
      fmt::format("{}: inputs: custom inputs do not mix with other kinds", where));
  return out;
}

void set_axis(axis_values& axes, const std::string& axis_name, int64_t value) {
  for (auto& [known, old] : axes) {
    if (known == axis_name) {
      old = value;
      return;
    }
  }
  axes.emplace_back(axis_name, value);
}

} // namespace

const input_spec* workload::find_input(std::string_view input_name) const {
  for (const auto& each : inputs)
    if (each.name == input_name)
      return &each;
  return nullptr;
}

result<workload> parse_workload(std::string_view json_line, const std::string& file_name,
  size_t line, std::vector<std::string>* warnings) {
  const auto where = fmt::format("{}:{}", file_name, line);
  std::vector<std::string> own;
  auto out = read_line(json_line, where, own);
  if (warnings != nullptr)
    for (const auto& each : own)
      warnings->push_back(fmt::format("{}: {}", where, each));
  return out;
}

result<std::vector<workload>> parse_workloads(
  std::string_view text, const std::string& file_name, std::vector<std::string>* warnings) {
  struct occurrence {
    size_t first_line = 0;
    size_t more = 0;
  };
  std::vector<workload> out;
  std::string errors;
  size_t failed = 0;
  std::map<std::string, occurrence> repeated;
  std::set<std::string> uuids;
  size_t line = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (content.find_first_not_of(" \t\r\f\v") == std::string_view::npos)
      continue;
    std::vector<std::string> own;
    auto next = read_line(content, fmt::format("{}:{}", file_name, line), own);
    if (next && !uuids.insert(next->uuid).second)
      own.push_back(fmt::format("the uuid {} stands on an earlier line too", excerpt(next->uuid)));
    for (const auto& each : own) {
      auto& seen = repeated[each];
      if (seen.first_line == 0)
        seen.first_line = line;
      else
        ++seen.more;
    }
    if (next)
      out.push_back(std::move(*next));
    else if (++failed <= failed_lines_max)
      errors += (errors.empty() ? "" : "\n") + next.error().what;
  }
  if (warnings != nullptr)
    for (const auto& [what, seen] : repeated)
      warnings->push_back(fmt::format("{}:{}: {}{}", file_name, seen.first_line, what,
        seen.more == 0 ? "" : fmt::format(" (and on {} more lines)", seen.more)));
  if (failed > failed_lines_max)
    errors += fmt::format("\n{}: {} more lines are wrong", file_name, failed - failed_lines_max);
  if (failed > 0)
    return fail(errc::invalid_input, errors);
  return out;
}

result<axis_values> resolve_axes(const definition& def, const axis_values& workload_axes) {
  axis_values out;
  for (const auto& each : def.axes)
    if (each.kind == axis_kind::constant)
      out.emplace_back(each.name, each.value);
  for (const auto& [axis_name, value] : workload_axes)
    set_axis(out, axis_name, value);
  for (const auto& each : def.axes) {
    if (each.kind != axis_kind::expression)
      continue;
    auto value = evaluate_axis(each.expression, out);
    if (!value)
      return fail(
        value.error().code, fmt::format("axes.{}.expression: {}", each.name, value.error().what));
    set_axis(out, each.name, *value);
  }
  return out;
}

result<std::vector<int64_t>> resolve_shape(const tensor_spec& spec, const axis_values& axes) {
  std::vector<int64_t> out;
  for (const auto& entry : spec.shape) {
    const bool digits =
      std::all_of(entry.begin(), entry.end(), [](char c) { return c >= '0' && c <= '9'; });
    int64_t value = 0;
    if (digits && !entry.empty()) {
      const auto read = std::from_chars(entry.data(), entry.data() + entry.size(), value);
      if (read.ec != std::errc{})
        return fail(
          errc::invalid_input, fmt::format("{}.shape: {} is too big", spec.name, excerpt(entry)));
    } else if (const auto* known = find_axis_value(axes, entry)) {
      value = *known;
    } else {
      return fail(errc::invalid_input,
        fmt::format("{}.shape: the workload gives axis {} no value", spec.name, excerpt(entry)));
    }
    if (value < 0)
      return fail(errc::invalid_input,
        fmt::format("{}.shape: axis {} is negative ({})", spec.name, excerpt(entry), value));
    out.push_back(value);
  }
  return out;
}

const int64_t* find_axis_value(const axis_values& axes, std::string_view axis_name) {
  for (const auto& [known, value] : axes)
    if (known == axis_name)
      return &value;
  return nullptr;
}

} // namespace gristmill
