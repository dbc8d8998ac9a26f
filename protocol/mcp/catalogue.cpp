#include "protocol/mcp/catalogue.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

bool has_type(const ordered_json& value, const std::string& type) {
  if (type == "string")
    return value.is_string();
  if (type == "integer")
    return value.is_number_integer();
  if (type == "number")
    return value.is_number();
  if (type == "boolean")
    return value.is_boolean();
  if (type == "array")
    return value.is_array();
  return type == "object" && value.is_object();
}

result<void> check_value(
  const ordered_json& schema, const ordered_json& value, const std::string& where);

result<void> check_object(
  const ordered_json& schema, const ordered_json& value, const std::string& where) {
  const auto none = ordered_json::object();
  const auto& properties = schema.contains("properties") ? schema["properties"] : none;
  auto path = [&](const std::string& name) { return where.empty() ? name : where + "." + name; };
  std::vector<std::string> known;
  for (const auto& entry : properties.items())
    known.push_back(entry.key());
  for (const auto& entry : value.items()) {
    auto property = properties.find(entry.key());
    if (property == properties.end()) {
      if (schema.value("additionalProperties", true))
        continue;
      auto name = entry.key().substr(0, 80);
      return fail(errc::invalid_input, path(name) + ": unknown argument" + suggestion(name, known));
    }
    if (auto fine = check_value(*property, entry.value(), path(entry.key())); !fine)
      return fine;
  }
  if (auto required = schema.find("required"); required != schema.end())
    for (const auto& name : *required)
      if (!value.contains(name.get<std::string>()))
        return fail(errc::invalid_input, path(name.get<std::string>()) + ": missing");
  return {};
}

result<void> check_value(
  const ordered_json& schema, const ordered_json& value, const std::string& where) {
  auto refuse = [&](const std::string& what) -> result<void> {
    return fail(errc::invalid_input, (where.empty() ? "arguments" : where) + ": " + what);
  };
  if (auto type = schema.find("type"); type != schema.end())
    if (!has_type(value, type->get<std::string>()))
      return refuse(
        fmt::format("must be of type {}, not {}", type->get<std::string>(), value.type_name()));
  if (auto choices = schema.find("enum"); choices != schema.end())
    if (std::find(choices->begin(), choices->end(), value) == choices->end()) {
      std::vector<std::string> known;
      for (const auto& choice : *choices)
        if (choice.is_string())
          known.push_back(choice.get<std::string>());
      auto given = value.is_string() ? value.get<std::string>().substr(0, 80) : std::string{"?"};
      return refuse("'" + given + "' is unknown" + suggestion(given, known));
    }
  if (value.is_string()) {
    auto size = value.get_ref<const std::string&>().size();
    if (size > schema.value("maxLength", size))
      return refuse(
        fmt::format("{} bytes, and {} are allowed", size, schema.value("maxLength", size_t{0})));
    if (const auto least = schema.value("minLength", size_t{0}); size < least)
      return refuse(size == 0 ? std::string{"must not be empty"}
                              : fmt::format("{} bytes, and at least {} are needed", size, least));
  }
  if (value.is_number_integer()) {
    auto number = value.get<int64_t>();
    if (number < schema.value("minimum", number) || number > schema.value("maximum", number))
      return refuse(fmt::format("{} is out of range: {} to {}", number,
        schema.value("minimum", INT64_MIN), schema.value("maximum", INT64_MAX)));
  }
  if (value.is_array()) {
    if (value.size() > schema.value("maxItems", value.size()))
      return refuse(fmt::format(
        "{} entries, and {} are allowed", value.size(), schema.value("maxItems", size_t{0})));
    if (auto items = schema.find("items"); items != schema.end())
      for (size_t i = 0; i < value.size(); ++i)
        if (auto fine = check_value(*items, value[i], fmt::format("{}[{}]", where, i)); !fine)
          return fine;
  }
  return value.is_object() ? check_object(schema, value, where) : result<void>{};
}

} // namespace

const mcp_tool* mcp_catalogue::find_tool(std::string_view wanted) const {
  auto found =
    std::find_if(tools.begin(), tools.end(), [&](const mcp_tool& t) { return t.name == wanted; });
  return found == tools.end() ? nullptr : &*found;
}

result<void> check_arguments(const mcp_tool& tool, const ordered_json& arguments) {
  return check_value(tool.input_schema, arguments, "");
}

} // namespace gristmill
