#include "protocol/workload.hpp"

#include "protocol/expression.hpp"
#include "protocol/workload_reader.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

/// A line with its own warnings, which do not name file and line.
result<workload> read_line(
  std::string_view json_line, const std::string& where, std::vector<std::string>& warnings) {
  json_limits limits;
  limits.python_numbers = true;
  auto document = parse_json_object(json_line, where, limits);
  if (!document)
    return pass(document);
  field_reader fields;
  auto out = read_workload(*document, "", fields, json_line);
  warnings = fields.warnings();
  if (fields.failed())
    return tl::unexpected(fields.collected(where));
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
  std::vector<workload> out;
  std::set<std::string> uuids;
  const auto read = [&](std::string_view content, size_t line,
                      std::vector<std::string>& own) -> result<void> {
    auto next = read_line(content, fmt::format("{}:{}", file_name, line), own);
    if (!next)
      return pass(next);
    if (!uuids.insert(next->uuid).second)
      own.push_back(fmt::format("the uuid {} stands on an earlier line too", excerpt(next->uuid)));
    out.push_back(std::move(*next));
    return {};
  };
  if (auto fine = for_each_line(text, file_name, warnings, read); !fine)
    return pass(fine);
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
