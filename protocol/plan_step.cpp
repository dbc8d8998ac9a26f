#include "protocol/nearest.hpp"
#include "protocol/plan_reader.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

const std::vector<std::string> operations{"launch", "memset", "copy", "read", "repeat"};
const std::vector<std::string> scalar_types{
  "b8", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"};

constexpr size_t arguments_max = 256;
constexpr size_t entry_max = 512;

std::vector<std::string> with_common_keys(std::vector<std::string> keys) {
  keys.insert(keys.end(), {"op", "id", "when", "after"});
  return keys;
}

/// The text goes into C++ source, so it may hold a name, template arguments and arithmetic, and
/// nothing that ends an expression.
bool is_entry(std::string_view text) {
  if (text.empty() || text.size() > entry_max || text.find("//") != std::string_view::npos
    || text.find("/*") != std::string_view::npos)
    return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
      || std::string_view{"_:<>, ()+-*/%.&|=!'"}.find(c) != std::string_view::npos;
  });
}

} // namespace

std::string_view name(plan_step::op op) {
  return operations[static_cast<size_t>(op)];
}

std::vector<plan_step> plan_reader::read_steps(
  const ordered_json& parent, const std::string& path, size_t depth) {
  std::vector<plan_step> out;
  const auto* steps = member(parent, path, "steps", true);
  if (steps == nullptr)
    return out;
  if (!steps->is_array()) {
    refuse(path + ".steps", fmt::format("must be a list, not {}", kind_text(*steps)));
    return out;
  }
  step_count_ += steps->size();
  if (step_count_ > plan_limits::steps) {
    refuse(path + ".steps", fmt::format("more than {} steps in a variant", plan_limits::steps));
    return out;
  }
  for (size_t i = 0; i < steps->size() && !failed_; ++i)
    out.push_back(read_step((*steps)[i], fmt::format("{}.steps.{}", path, i), depth));
  return out;
}

plan_step plan_reader::read_step(const ordered_json& from, const std::string& path, size_t depth) {
  plan_step out;
  if (!is_object(from, path))
    return out;
  const auto op = read_choice(from, path, "op", "", operations);
  if (failed_)
    return out;
  out.what = static_cast<plan_step::op>(
    std::find(operations.begin(), operations.end(), op) - operations.begin());
  if (member(from, path, "id", false) != nullptr)
    out.id = read_text(from, path, "id", "");
  if (!out.id.empty()) {
    check_new_name(path + ".id", out.id);
    if (!step_ids_.insert(out.id).second)
      refuse(path + ".id", fmt::format("{} is the id of an earlier step", excerpt(out.id)));
  }
  out.when = read_expression(from, path, "when", "true");
  if (const auto* after = member(from, path, "after", false)) {
    out.after.emplace();
    if (!after->is_array() || after->size() > plan_limits::steps) {
      refuse(path + ".after", "must be a list of step ids");
      return out;
    }
    for (const auto& each : *after) {
      const auto id = each.is_string() ? each.get<std::string>() : std::string{};
      // Only backwards, so the order of the file is always a right one.
      if (id == out.id || step_ids_.count(id) == 0)
        refuse(path + ".after",
          fmt::format("{} is not the id of an earlier step{}", excerpt(id),
            suggestion(id, {step_ids_.begin(), step_ids_.end()})));
      out.after->push_back(id);
    }
  }
  switch (out.what) {
  case plan_step::op::launch:
    read_launch(from, path, out);
    break;
  case plan_step::op::memset:
    read_memset(from, path, out);
    break;
  case plan_step::op::copy:
    read_copy(from, path, out);
    break;
  case plan_step::op::read:
    read_read(from, path, out);
    break;
  case plan_step::op::repeat:
    read_repeat(from, path, depth, out);
    break;
  }
  return out;
}

void plan_reader::read_launch(const ordered_json& from, const std::string& path, plan_step& out) {
  known_keys(from, path,
    with_common_keys(
      {"entry", "grid", "block", "cluster", "shared", "cooperative", "pdl", "carveout", "args"}));
  out.entry = read_text(from, path, "entry", "");
  if (!failed_ && !is_entry(out.entry))
    refuse(path + ".entry",
      fmt::format("{} is not a C++ name or template-id of at most {} characters",
        excerpt(out.entry), entry_max));
  out.grid = read_triple(from, path, "grid", use::with_occupancy);
  out.block = read_triple(from, path, "block");
  if (const auto* cluster = member(from, path, "cluster", false); cluster && !cluster->is_null())
    out.cluster = read_triple(from, path, "cluster");
  out.shared = read_expression(from, path, "shared", "0");
  out.cooperative = read_flag(from, path, "cooperative", false);
  out.pdl = read_flag(from, path, "pdl", false);
  out.carveout = static_cast<int>(read_int(from, path, "carveout", -1, -1, 100));
  const auto* args = member(from, path, "args", true);
  if (args == nullptr)
    return;
  if (!args->is_array() || args->size() > arguments_max) {
    refuse(path + ".args", fmt::format("must be a list of at most {} arguments", arguments_max));
    return;
  }
  for (size_t i = 0; i < args->size(); ++i)
    out.args.push_back(read_argument((*args)[i], fmt::format("{}.args.{}", path, i), 0));
}

void plan_reader::read_memset(const ordered_json& from, const std::string& path, plan_step& out) {
  known_keys(from, path, with_common_keys({"dst", "offset", "bytes", "width", "value"}));
  out.dst = read_name(from, path, "dst");
  out.dst_offset = read_expression(from, path, "offset", "");
  out.bytes = read_expression(from, path, "bytes", "");
  out.width = static_cast<uint32_t>(read_int(from, path, "width", std::nullopt, 1, 4));
  if (out.width == 3)
    refuse(path + ".width", "must be 1, 2 or 4");
  const int64_t highest = (int64_t{1} << (8 * out.width)) - 1;
  out.value = static_cast<uint32_t>(read_int(from, path, "value", std::nullopt, 0, highest));
}

void plan_reader::read_copy(const ordered_json& from, const std::string& path, plan_step& out) {
  known_keys(from, path, with_common_keys({"dst", "src", "dst_offset", "src_offset", "bytes"}));
  out.dst = read_name(from, path, "dst");
  out.src = read_name(from, path, "src");
  out.dst_offset = read_expression(from, path, "dst_offset", "");
  out.src_offset = read_expression(from, path, "src_offset", "");
  out.bytes = read_expression(from, path, "bytes", "");
}

void plan_reader::read_read(const ordered_json& from, const std::string& path, plan_step& out) {
  known_keys(from, path, with_common_keys({"from", "at", "as"}));
  out.from = read_name(from, path, "from");
  out.at = read_list(from, path, "at", true);
  const auto* as = member(from, path, "as", true);
  if (as == nullptr)
    return;
  if (!as->is_array() || as->empty() || as->size() != out.at.size()) {
    refuse(path + ".as", "must be a list with a name for each place of `at`, 1 to 64");
    return;
  }
  for (const auto& each : *as) {
    const auto text = each.is_string() ? each.get<std::string>() : std::string{};
    check_new_name(path + ".as", text);
    out.as.push_back(text);
  }
}

void plan_reader::read_repeat(
  const ordered_json& from, const std::string& path, size_t depth, plan_step& out) {
  known_keys(from, path, with_common_keys({"var", "count", "steps"}));
  out.variable = read_text(from, path, "var", "");
  check_new_name(path + ".var", out.variable);
  out.count = read_expression(from, path, "count", "");
  if (depth + 1 > plan_limits::repeat_depth)
    refuse(path, fmt::format("repeats nested deeper than {}", plan_limits::repeat_depth));
  else
    out.steps = read_steps(from, path, depth + 1);
}

plan_argument plan_reader::read_argument(
  const ordered_json& from, const std::string& path, size_t depth) {
  plan_argument out;
  out.text = from.is_string() ? from.get<std::string>() : from.dump();
  if (!from.is_object()) {
    read_value_argument(from, path, out);
    return out;
  }
  if (from.contains("ptr")) {
    out.what = plan_argument::form::pointer;
    known_keys(from, path, {"ptr", "offset"});
    out.buffer = read_name(from, path, "ptr");
    out.offset = read_expression(from, path, "offset", "", use::with_occupancy);
  } else if (from.contains("map")) {
    out.what = plan_argument::form::map;
    known_keys(from, path, {"map"});
    out.map = read_text(from, path, "map", "");
  } else if (from.contains("struct")) {
    out.what = plan_argument::form::structure;
    known_keys(from, path, {"struct"});
    const auto& fields = from["struct"];
    if (!fields.is_array() || fields.empty() || fields.size() > arguments_max || depth >= 4) {
      refuse(path + ".struct",
        fmt::format("must be a list of 1 to {} fields, nested at most 4 deep", arguments_max));
      return out;
    }
    for (size_t i = 0; i < fields.size(); ++i)
      out.fields.push_back(
        read_argument(fields[i], fmt::format("{}.struct.{}", path, i), depth + 1));
  } else {
    refuse(path, "an argument object needs one of the keys `ptr`, `map` and `struct`");
  }
  return out;
}

void plan_reader::read_value_argument(
  const ordered_json& from, const std::string& path, plan_argument& out) {
  if (out.text == "null" && from.is_string()) {
    out.what = plan_argument::form::null;
    return;
  }
  if (!from.is_string()) {
    out.value = to_expression(from, path, use::with_occupancy);
    return;
  }
  // The grammar has no colon outside of quotes, so the last one starts the type.
  std::string text = out.text;
  const size_t quote = text.rfind('"');
  if (const size_t colon = text.rfind(':');
      colon != std::string::npos && (quote == std::string::npos || colon > quote)) {
    out.type = text.substr(colon + 1);
    text.resize(colon);
    if (std::find(scalar_types.begin(), scalar_types.end(), out.type) == scalar_types.end())
      refuse(path,
        fmt::format(
          "{} is not an argument type{}", excerpt(out.type), suggestion(out.type, scalar_types)));
  }
  out.value = to_expression(text, path, use::with_occupancy);
}

} // namespace gristmill
