#include "protocol/definition.hpp"

#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"
#include "protocol/python_scan.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

using need = field_reader::need;

template <class Rows>
auto find_by_name(const Rows& rows, std::string_view wanted) {
  const auto found =
    std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == wanted; });
  return found == rows.end() ? nullptr : &*found;
}

bool is_digits(std::string_view text) {
  return !text.empty()
    && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The value of a constant, if it is there and fits.
std::optional<int64_t> axis_value(const ordered_json& from) {
  const auto found = from.find("value");
  if (found == from.end())
    return std::nullopt;
  const auto value = lenient_int(*found);
  return value && *value >= 0 ? value : std::nullopt;
}

bool has_expression(const ordered_json& from) {
  const auto found = from.find("expression");
  return found != from.end() && found->is_string() && !found->get_ref<const std::string&>().empty();
}

axis read_axis(const std::string& axis_name, const ordered_json& from, const std::string& path,
  field_reader& fields) {
  axis out;
  out.name = axis_name;
  if (!from.is_object()) {
    fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
    return out;
  }
  out.description = fields.text(from, path, "description", need::free);
  const auto type = from.find("type");
  std::string kind;
  if (type == from.end()) {
    // The other keys decide; the first that fits wins.
    kind = axis_value(from) ? "const" : has_expression(from) ? "expr" : "var";
  } else if (type->is_string()) {
    kind = type->get<std::string>();
  } else {
    fields.error(path + ".type", fmt::format("must be a string, not {}", kind_text(*type)));
    return out;
  }
  if (kind == "const") {
    out.kind = axis_kind::constant;
    const auto value = axis_value(from);
    if (!value)
      fields.error(path + ".value", "a constant axis needs an integer of 0 or more");
    out.value = value.value_or(0);
    fields.ignore_others(from, path, {"type", "value", "description"});
  } else if (kind == "expr") {
    out.kind = axis_kind::expression;
    out.expression = fields.text(from, path, "expression", need::required);
    fields.ignore_others(from, path, {"type", "expression", "description"});
  } else if (kind == "var") {
    out.kind = axis_kind::variable;
    fields.ignore_others(from, path, {"type", "description"});
  } else {
    fields.error(path + ".type",
      fmt::format(
        "unknown axis type {}{}", excerpt(kind), suggestion(kind, {"const", "var", "expr"})));
  }
  return out;
}

tensor_spec read_tensor(const std::string& tensor_name, const ordered_json& from,
  const std::string& path, field_reader& fields) {
  tensor_spec out;
  out.name = tensor_name;
  if (!from.is_object()) {
    fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
    return out;
  }
  out.description = fields.text(from, path, "description", need::free);
  if (const auto shape = from.find("shape"); shape == from.end()) {
    fields.error(path + ".shape", "is required (null for a Python number)");
  } else if (shape->is_null()) {
    out.is_scalar = true;
  } else if (!shape->is_array()) {
    fields.error(path + ".shape",
      fmt::format("must be a list of axis names or null, not {}", kind_text(*shape)));
  } else {
    for (size_t i = 0; i < shape->size(); ++i) {
      const auto& entry = (*shape)[i];
      if (entry.is_string() && !entry.get_ref<const std::string&>().empty())
        out.shape.push_back(entry.get<std::string>());
      else
        fields.error(fmt::format("{}.shape.{}", path, i),
          "must be an axis name or a literal such as \"128\", as a non-empty string");
    }
  }
  const auto type_text = fields.text(from, path, "dtype", need::required);
  if (const auto type = parse_dtype(type_text))
    out.type = *type;
  else if (!type_text.empty())
    fields.error(path + ".dtype",
      fmt::format("unknown dtype {}{}", excerpt(type_text), suggestion(type_text, dtype_names())));
  fields.ignore_others(from, path, {"shape", "dtype", "description"});
  return out;
}

template <class Row, class Read>
std::vector<Row> read_rows(
  const ordered_json& document, const char* key, field_reader& fields, Read read) {
  std::vector<Row> rows;
  const auto* object = fields.object(document, "", key);
  if (object == nullptr)
    return rows;
  for (const auto& [row_name, value] : object->items()) {
    if (row_name.empty())
      fields.error(key, "a name must not be empty");
    rows.push_back(read(row_name, value, join_path(key, row_name), fields));
  }
  return rows;
}

std::vector<std::string> names_of(const auto& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    names.push_back(row.name);
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& each : names)
    out += (out.empty() ? "" : ", ") + each;
  return "(" + out + ")";
}

/// Rules 1 to 4: what the reference must look like.
result<void> check_reference(const definition& def) {
  auto outline = scan_python(def.reference);
  if (!outline)
    return fail(errc::invalid_input, "reference: " + outline.error().what);
  const auto* run = outline->find("run");
  if (run == nullptr)
    return fail(errc::invalid_input,
      "reference: no top-level `def run` (an `async def`, a class or a nested one does not count)");
  if (run->parameters != names_of(def.inputs))
    return fail(errc::invalid_input,
      fmt::format("reference: the parameters of `run` are {}, but the inputs are {}",
        listed(run->parameters), listed(names_of(def.inputs))));
  const auto& entrypoint = def.custom_inputs_entrypoint;
  if (entrypoint.empty())
    return {};
  if (!is_python_name(entrypoint))
    return fail(errc::invalid_input,
      fmt::format("custom_inputs_entrypoint: {} is not a name", excerpt(entrypoint)));
  if (outline->find(entrypoint) == nullptr)
    return fail(errc::invalid_input,
      fmt::format("custom_inputs_entrypoint: the reference has no top-level `def {}`{}", entrypoint,
        suggestion(entrypoint, names_of(outline->functions))));
  return {};
}

/// Rules 5 to 7: what the names must not do.
result<void> check_names(const definition& def) {
  for (const auto& input : def.inputs)
    if (def.find_axis(input.name) != nullptr)
      return fail(
        errc::invalid_input, fmt::format("inputs.{}: an axis has the same name", input.name));
  for (const auto& output : def.outputs)
    if (def.find_input(output.name) != nullptr)
      return fail(
        errc::invalid_input, fmt::format("outputs.{}: an input has the same name", output.name));
  for (const auto* specs : {&def.inputs, &def.outputs}) {
    for (const auto& spec : *specs) {
      for (const auto& entry : spec.shape) {
        if (is_digits(entry) || def.find_axis(entry) != nullptr)
          continue;
        return fail(errc::invalid_input,
          fmt::format("{}.{}.shape: there is no axis {}{}",
            specs == &def.inputs ? "inputs" : "outputs", spec.name, excerpt(entry),
            suggestion(entry, names_of(def.axes))));
      }
    }
  }
  return {};
}

} // namespace

const axis* definition::find_axis(std::string_view axis_name) const {
  return find_by_name(axes, axis_name);
}

const tensor_spec* definition::find_input(std::string_view input_name) const {
  return find_by_name(inputs, input_name);
}

const tensor_spec* definition::find_output(std::string_view output_name) const {
  return find_by_name(outputs, output_name);
}

result<definition> parse_definition(
  std::string_view text, const std::string& file_name, std::vector<std::string>* warnings) {
  auto document = parse_json(text, file_name);
  if (!document)
    return pass(document);
  if (!document->is_object())
    return fail(errc::invalid_input,
      fmt::format("{}: must be an object, not {}", file_name, kind_text(*document)));
  field_reader fields;
  definition def;
  def.name = fields.text(*document, "", "name", need::required);
  def.op_type = fields.text(*document, "", "op_type", need::optional);
  def.custom_inputs_entrypoint =
    fields.text(*document, "", "custom_inputs_entrypoint", need::optional);
  def.reference = fields.text(*document, "", "reference", need::required);
  def.description = fields.text(*document, "", "description", need::free);
  // The published data has "" in 26 problems, which the official model rejects.
  def.hf_id = fields.text(*document, "", "hf_id", need::free);
  if (const auto id = document->find("hf_id"); id != document->end() && *id == "")
    fields.warn("hf_id: \"\" is read as null");
  def.axes = read_rows<axis>(*document, "axes", fields, read_axis);
  def.inputs = read_rows<tensor_spec>(*document, "inputs", fields, read_tensor);
  def.outputs = read_rows<tensor_spec>(*document, "outputs", fields, read_tensor);
  fields.ignore_others(*document, "",
    {"name", "op_type", "axes", "custom_inputs_entrypoint", "inputs", "outputs", "reference",
      "description", "hf_id"});
  if (warnings != nullptr)
    for (const auto& each : fields.warnings())
      warnings->push_back(fmt::format("{}: {}", file_name, each));
  if (fields.failed())
    return tl::unexpected(fields.collected(file_name));
  for (const auto check : {check_reference, check_names})
    if (auto fine = check(def); !fine)
      return fail(fine.error().code, fmt::format("{}: {}", file_name, fine.error().what));
  return def;
}

} // namespace gristmill
