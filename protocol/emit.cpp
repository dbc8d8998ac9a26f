#include "protocol/emit.hpp"

#include <cmath>
#include <variant>

namespace gristmill {

namespace {

void put_text(ordered_json& out, const char* key, const std::string& value) {
  if (!value.empty())
    out[key] = value;
}

ordered_json axis_to_json(const axis& from) {
  ordered_json out = ordered_json::object();
  switch (from.kind) {
  case axis_kind::constant:
    out["type"] = "const";
    out["value"] = from.value;
    break;
  case axis_kind::variable:
    out["type"] = "var";
    break;
  case axis_kind::expression:
    out["type"] = "expr";
    out["expression"] = from.expression;
    break;
  }
  put_text(out, "description", from.description);
  return out;
}

ordered_json tensor_to_json(const tensor_spec& from) {
  ordered_json out = ordered_json::object();
  out["shape"] = from.is_scalar ? ordered_json{} : ordered_json(from.shape);
  out["dtype"] = std::string{name(from.type)};
  put_text(out, "description", from.description);
  return out;
}

ordered_json input_to_json(const input_spec& from) {
  ordered_json out = ordered_json::object();
  switch (from.kind) {
  case input_kind::random:
    out["type"] = "random";
    break;
  case input_kind::scalar:
    out["type"] = "scalar";
    if (const auto* number = std::get_if<double>(&from.value))
      out["value"] = lenient_number(*number);
    else
      std::visit([&](auto value) { out["value"] = value; }, from.value);
    break;
  case input_kind::safetensors:
    out["type"] = "safetensors";
    out["path"] = from.path;
    out["tensor_key"] = from.tensor_key;
    break;
  case input_kind::custom:
    out["type"] = "custom";
    break;
  }
  return out;
}

template <class Rows, class Write>
ordered_json rows_to_json(const Rows& rows, Write write) {
  ordered_json out = ordered_json::object();
  for (const auto& row : rows)
    out[row.name] = write(row);
  return out;
}

} // namespace

std::string to_json(const definition& given) {
  ordered_json out = ordered_json::object();
  out["name"] = given.name;
  put_text(out, "op_type", given.op_type);
  out["axes"] = rows_to_json(given.axes, axis_to_json);
  put_text(out, "custom_inputs_entrypoint", given.custom_inputs_entrypoint);
  out["inputs"] = rows_to_json(given.inputs, tensor_to_json);
  out["outputs"] = rows_to_json(given.outputs, tensor_to_json);
  out["reference"] = given.reference;
  put_text(out, "description", given.description);
  put_text(out, "hf_id", given.hf_id);
  return dump_json(out, true);
}

ordered_json workload_to_json(const workload& given) {
  ordered_json out = ordered_json::object();
  out["axes"] = ordered_json::object();
  for (const auto& [axis_name, value] : given.axes)
    out["axes"][axis_name] = value;
  out["inputs"] = rows_to_json(given.inputs, input_to_json);
  out["uuid"] = given.uuid;
  auto& allowed = out["tolerance"];
  allowed["max_atol"] = lenient_number(given.allowed.atol);
  allowed["max_rtol"] = lenient_number(given.allowed.rtol);
  allowed["required_matched_ratio"] = lenient_number(given.allowed.matched_ratio);
  allowed["max_error_cap"] =
    given.allowed.error_cap ? lenient_number(*given.allowed.error_cap) : ordered_json{};
  allowed["allow_negative_inf"] = given.allowed.allow_negative_inf;
  return out;
}

std::string to_json(const workload& given) {
  return dump_json(workload_to_json(given), false);
}

ordered_json lenient_number(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  return value;
}

std::string dump_json(const ordered_json& value, bool pretty) {
  const auto replace = ordered_json::error_handler_t::replace;
  return pretty ? value.dump(2, ' ', false, replace) + "\n" : value.dump(-1, ' ', false, replace);
}

} // namespace gristmill
