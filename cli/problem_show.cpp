#include "cli/verb.hpp"

#include "cli/checked_path.hpp"
#include "cli/resolved_tensors.hpp"
#include "kernels/builtin.hpp"
#include "protocol/emit.hpp"
#include "protocol/nearest.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <memory>

namespace gristmill {

namespace {

namespace fs = std::filesystem;
using ordered_json = nlohmann::ordered_json;

/// A folder, a file in one, or the name of a built-in problem where no such path exists.
result<problem> find_problem(const std::string& given) {
  std::error_code code;
  if (!fs::exists(given, code)) {
    if (auto built_in = builtin_problem(given))
      return built_in;
    auto why = missing_path(given);
    std::vector<std::string> names;
    for (const auto& each : builtin_problems())
      names.push_back(each.name);
    why.what += "; it is no built-in problem either" + suggestion(given, names);
    return fail(why.code, why.what);
  }
  if (fs::is_directory(given, code))
    return load_problem(given);
  const fs::path file = given;
  if (file.filename() == "definition.json" || file.filename() == "workload.jsonl")
    return load_problem(file.has_parent_path() ? file.parent_path() : fs::path("."));
  return fail(errc::invalid_input,
    given + ": not a problem folder, nor the definition.json or workload.jsonl of one");
}

std::string_view kind_name(axis_kind kind) {
  switch (kind) { // no default: the compiler reports a missing case
  case axis_kind::constant:
    return "const";
  case axis_kind::variable:
    return "var";
  case axis_kind::expression:
    return "expr";
  }
  return "?";
}

std::string declared_shape(const tensor_spec& spec) {
  if (spec.is_scalar)
    return "number";
  std::string out;
  for (const auto& each : spec.shape)
    out += (out.empty() ? "" : ", ") + each;
  return "[" + out + "]";
}

/// Where the values of an input come from.
std::string source_text(const resolved_tensor& tensor) {
  switch (tensor.source.kind) { // no default: the compiler reports a missing case
  case input_kind::random:
    return "random, " + distribution_text(tensor.drawn.value_or(input_distribution{}))
      + (tensor.spec->is_scalar ? ", one draw" : "");
  case input_kind::scalar:
    return "scalar " + number_text(tensor.source.value);
  case input_kind::safetensors:
    return fmt::format("safetensors `{}` in {}", tensor.source.tensor_key, tensor.source.path);
  case input_kind::custom:
    return "custom, made by the entry point";
  }
  return "?";
}

void put(std::string line) {
  while (line.ends_with(' '))
    line.pop_back();
  std::fputs((printable(line) + "\n").c_str(), stdout);
}

/// Bytes with a unit that keeps them readable, and exact up to 9,999.
std::string bytes_text(uint64_t bytes) {
  if (bytes < 10'000)
    return fmt::format("{} B", bytes);
  const char* units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return fmt::format("{:.3g} {}", value, units[unit]);
}

void show_definition(const problem& p) {
  put(p.name + (p.def.name == p.name ? "" : fmt::format("  (definition `{}`)", p.def.name)));
  if (!p.def.description.empty())
    put("  " + p.def.description);
  if (!p.def.op_type.empty())
    put("  op_type " + p.def.op_type);
  if (!p.def.custom_inputs_entrypoint.empty())
    put("  inputs are made by " + p.def.custom_inputs_entrypoint);
  put("axes");
  for (const auto& each : p.def.axes)
    put(fmt::format("  {:<24} {:<5} {}", each.name, kind_name(each.kind),
      each.kind == axis_kind::constant     ? std::to_string(each.value)
        : each.kind == axis_kind::variable ? ""
                                           : each.expression));
  for (const auto* specs : {&p.def.inputs, &p.def.outputs}) {
    put(specs == &p.def.inputs ? "inputs" : "outputs");
    for (const auto& each : *specs)
      put(fmt::format("  {:<24} {:<16} {}", each.name, name(each.type), declared_shape(each)));
  }
}

std::string tolerance_text(const tolerance& allowed) {
  auto out =
    fmt::format("atol {}, rtol {}, matched {}", allowed.atol, allowed.rtol, allowed.matched_ratio);
  if (allowed.error_cap)
    out += fmt::format(", cap {}", *allowed.error_cap);
  if (allowed.allow_negative_inf)
    out += ", -inf allowed";
  return out;
}

void show_workload(const workload& work, const result<resolved_tensors>& resolved) {
  put("workload " + work.uuid);
  put("  tolerance  " + tolerance_text(work.allowed));
  if (!resolved) {
    put("  cannot be resolved: " + resolved.error().what);
    return;
  }
  std::string axes;
  for (const auto& [axis_name, value] : resolved->axes)
    axes += fmt::format(" {}={}", axis_name, value);
  put("  axes      " + axes);
  for (const auto& each : resolved->inputs)
    put(fmt::format("  in  {:<22} {:<20} {:>9}  {}", each.spec->name,
      each.spec->is_scalar ? "number" : shape_text(each.shape),
      each.bytes_problem.empty() ? bytes_text(each.bytes) : "?", source_text(each)));
  for (const auto& each : resolved->outputs)
    put(fmt::format("  out {:<22} {:<20} {:>9}", each.spec->name,
      each.spec->is_scalar ? "number" : shape_text(each.shape),
      each.bytes_problem.empty() ? bytes_text(each.bytes) : "?"));
  put(fmt::format("  total     in {}, out {}", bytes_text(resolved->input_bytes),
    bytes_text(resolved->output_bytes)));
}

ordered_json tensor_to_json(const resolved_tensor& tensor) {
  ordered_json out;
  out["shape"] = tensor.spec->is_scalar ? ordered_json{} : ordered_json(tensor.shape);
  out["dtype"] = name(tensor.spec->type);
  out["bytes"] = tensor.bytes_problem.empty() ? ordered_json(tensor.bytes) : ordered_json{};
  return out;
}

ordered_json scalar_to_json(const python_number& value) {
  if (const auto* flag = std::get_if<bool>(&value))
    return *flag;
  if (const auto* whole = std::get_if<int64_t>(&value))
    return *whole;
  return lenient_number(std::get<double>(value));
}

ordered_json workload_facts(const workload& work, const result<resolved_tensors>& resolved) {
  ordered_json out{{"uuid", work.uuid}, {"tolerance", workload_to_json(work)["tolerance"]}};
  if (!resolved) {
    out["error"] = resolved.error().what;
    return out;
  }
  out["axes"] = ordered_json::object();
  for (const auto& [axis_name, value] : resolved->axes)
    out["axes"][axis_name] = value;
  out["inputs"] = ordered_json::object();
  for (const auto& each : resolved->inputs) {
    auto row = tensor_to_json(each);
    row["kind"] = kind_name(each.source.kind);
    if (each.drawn)
      row["drawn"] = distribution_text(*each.drawn);
    if (each.source.kind == input_kind::scalar)
      row["value"] = scalar_to_json(each.source.value);
    if (each.source.kind == input_kind::safetensors) {
      row["path"] = each.source.path;
      row["tensor_key"] = each.source.tensor_key;
    }
    out["inputs"][each.spec->name] = std::move(row);
  }
  out["outputs"] = ordered_json::object();
  for (const auto& each : resolved->outputs)
    out["outputs"][each.spec->name] = tensor_to_json(each);
  out["input_bytes"] = resolved->input_bytes;
  out["output_bytes"] = resolved->output_bytes;
  return out;
}

ordered_json problem_facts(const problem& p) {
  ordered_json out{{"name", p.name}, {"definition", p.def.name}, {"description", p.def.description},
    {"op_type", p.def.op_type}, {"custom_inputs_entrypoint", p.def.custom_inputs_entrypoint}};
  out["axes"] = ordered_json::object();
  for (const auto& each : p.def.axes) {
    ordered_json row{{"type", kind_name(each.kind)}};
    if (each.kind == axis_kind::constant)
      row["value"] = each.value;
    if (each.kind == axis_kind::expression)
      row["expression"] = each.expression;
    out["axes"][each.name] = std::move(row);
  }
  for (const auto* specs : {&p.def.inputs, &p.def.outputs}) {
    auto& rows = out[specs == &p.def.inputs ? "inputs" : "outputs"];
    rows = ordered_json::object();
    for (const auto& each : *specs)
      rows[each.name] = {{"shape", each.is_scalar ? ordered_json{} : ordered_json(each.shape)},
        {"dtype", name(each.type)}};
  }
  out["workloads"] = ordered_json::array();
  for (const auto& work : p.workloads)
    out["workloads"].push_back(workload_facts(work, resolve_tensors(p.def, work)));
  out["warnings"] = p.warnings;
  return out;
}

exit_code problem_show_command(const std::string& given, bool json) {
  auto found = find_problem(given);
  if (!found)
    return complain(found.error());
  if (json) {
    print_json(problem_facts(*found));
    return exit_code::ok;
  }
  for (const auto& each : found->warnings)
    std::fprintf(stderr, "gristmill: warning: %s\n", printable(each).c_str());
  show_definition(*found);
  for (const auto& work : found->workloads)
    show_workload(work, resolve_tensors(found->def, work));
  return exit_code::ok;
}

} // namespace

void add_problem_show_verb(CLI::App& root, verbs& all) {
  struct flags {
    std::string path;
    bool json = false;
  };
  auto* app = verb_group(root, "problem", "problems")
                .add_subcommand("show", "axes, shapes, sizes and sources of a problem");
  auto given = std::make_shared<flags>();
  app->add_option("path", given->path, "a problem folder or the name of a built-in problem")
    ->required();
  app->add_flag("--json", given->json, "as JSON");
  all.push_back({app, [given] { return problem_show_command(given->path, given->json); }});
}

} // namespace gristmill
