#include "protocol/definition.hpp"

#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"
#include "protocol/python_scan.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <unordered_set>

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

/// The zeros of the other scripts of Unicode 14.0.0; the other nine digits follow each of them.
constexpr std::array<char32_t, 65> zeros{0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66,
  0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946,
  0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0,
  0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450,
  0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0,
  0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0};

/// The character that begins here and its bytes. The parser took only proper UTF-8.
std::pair<char32_t, size_t> character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> char32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const char32_t first = byte(at);
  const size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  char32_t out = size == 1 ? first : first & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i)
    out = out << 6 | (byte(at + i) & 0x3f);
  return {out, size};
}

/// A literal is made of digits only, of any script, as Python reads them; this writes it with the
/// digits of ASCII. Everything else stays as it is.
std::string plain_digits(const std::string& entry) {
  std::string out;
  for (size_t at = 0; at < entry.size();) {
    const auto [c, size] = character_at(entry, at);
    at += size;
    if (c < 0x80) {
      out += static_cast<char>(c);
      continue;
    }
    const auto after = std::upper_bound(zeros.begin(), zeros.end(), c);
    if (after == zeros.begin() || c - *(after - 1) > 9)
      return entry;
    out += static_cast<char>('0' + (c - *(after - 1)));
  }
  return is_digits(out) ? out : entry;
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
    // The other keys decide. Of a value and an expression that both fit the value wins, unless it
    // had to be converted. A value beyond 64 bits is refused below.
    const auto value = from.find("value");
    const bool exact = value != from.end() && value->is_number_integer();
    const bool has_value = axis_value(from) || (value != from.end() && is_oversized_int(*value));
    kind = has_value && (exact || !has_expression(from)) ? "const"
      : has_expression(from)                             ? "expr"
                                                         : "var";
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
        out.shape.push_back(plain_digits(entry.get<std::string>()));
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

/// Rules 1 to 4: what the reference must look like. Stops at the first error.
void check_reference(const definition& def, field_reader& fields) {
  auto outline = scan_python(def.reference);
  if (!outline)
    return fields.error("reference", outline.error().what);
  const auto* run = outline->find("run");
  if (run == nullptr)
    return fields.error("reference",
      "no top-level `def run` (an `async def`, a class or a nested one does not count)");
  if (run->parameters != names_of(def.inputs))
    return fields.error("reference",
      fmt::format("the parameters of `run` are {}, but the inputs are {}", listed(run->parameters),
        listed(names_of(def.inputs))));
  const auto& entrypoint = def.custom_inputs_entrypoint;
  if (entrypoint.empty())
    return;
  if (!is_python_name(entrypoint))
    return fields.error(
      "custom_inputs_entrypoint", fmt::format("{} is not a name", excerpt(entrypoint)));
  if (outline->find(entrypoint) == nullptr)
    fields.error("custom_inputs_entrypoint",
      fmt::format("the reference has no top-level `def {}`{}", entrypoint,
        suggestion(entrypoint, names_of(outline->functions))));
}

using name_set = std::unordered_set<std::string_view>;

name_set set_of(const auto& rows) {
  name_set out;
  for (const auto& row : rows)
    out.insert(row.name);
  return out;
}

/// Rules 5 to 7: what the names must not do. Stops at the first error.
void check_names(const definition& def, field_reader& fields) {
  const auto axes = set_of(def.axes);
  for (const auto& input : def.inputs)
    if (axes.contains(input.name))
      return fields.error(join_path("inputs", input.name), "an axis has the same name");
  const auto inputs = set_of(def.inputs);
  for (const auto& output : def.outputs)
    if (inputs.contains(output.name))
      return fields.error(join_path("outputs", output.name), "an input has the same name");
  for (const auto* specs : {&def.inputs, &def.outputs}) {
    for (const auto& spec : *specs) {
      for (size_t i = 0; i < spec.shape.size(); ++i) {
        const auto& entry = spec.shape[i];
        if (is_digits(entry) || axes.contains(entry))
          continue;
        return fields.error(
          fmt::format("{}.{}.shape.{}", specs == &def.inputs ? "inputs" : "outputs", spec.name, i),
          fmt::format(
            "there is no axis {}{}", excerpt(entry), suggestion(entry, names_of(def.axes))));
      }
    }
  }
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
  json_limits limits;
  limits.python_numbers = true;
  auto document = parse_json_object(text, file_name, limits);
  if (!document)
    return pass(document);
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
    fields.warn("hf_id", "hf_id: \"\" is read as null");
  def.axes = read_rows<axis>(*document, "axes", fields, read_axis);
  def.inputs = read_rows<tensor_spec>(*document, "inputs", fields, read_tensor);
  def.outputs = read_rows<tensor_spec>(*document, "outputs", fields, read_tensor);
  fields.ignore_others(*document, "",
    {"name", "op_type", "axes", "custom_inputs_entrypoint", "inputs", "outputs", "reference",
      "description", "hf_id", "constraints"});
  if (document->contains("constraints"))
    fields.warn(
      "constraints", "ignored key `constraints`: the format has none, so nothing checks them");
  for (const auto check : {check_reference, check_names})
    if (!fields.failed())
      check(def, fields);
  fields.give_warnings(file_name, text, warnings);
  if (fields.failed())
    return tl::unexpected(fields.collected(file_name, text));
  return def;
}

} // namespace gristmill
