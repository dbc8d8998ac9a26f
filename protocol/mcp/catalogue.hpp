#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gristmill {

/// A tool as clients see it.
struct mcp_tool {
  std::string name;
  std::string title;
  std::string description;
  /// JSON Schema (2020-12) of the arguments: an object with `properties`, `required` and
  /// `additionalProperties: false`. `check_arguments` enforces it.
  ordered_json input_schema;
  /// Of the structured result; null: not told.
  ordered_json output_schema;
  /// It only looks: changes nothing and uses up nothing.
  bool read_only = true;
};

struct mcp_resource {
  std::string uri;
  std::string name;
  std::string description;
  std::string mime_type = "text/plain";
  /// Made when it is read.
  std::function<std::string()> text;
};

struct mcp_prompt_argument {
  std::string name;
  std::string description;
  bool required = true;
};

struct mcp_prompt {
  std::string name;
  std::string description;
  std::vector<mcp_prompt_argument> arguments;
  /// The text of the one message, by the value of the first argument (empty when there is none).
  /// `invalid_input` for a value that does not do.
  std::function<result<std::string>(const std::string&)> text;
};

/// All that a server offers; it does not change while the server runs.
struct mcp_catalogue {
  std::string name = "gristmill";
  std::string version;
  /// How to use the server, for the model at the other end.
  std::string instructions;
  std::vector<mcp_tool> tools;
  std::vector<mcp_resource> resources;
  std::vector<mcp_prompt> prompts;

  const mcp_tool* find_tool(std::string_view name) const;
};

/// Whether the arguments of a call fit the tool's schema: the part of JSON Schema that our tools
/// use (type, enum, items, minimum, maximum, minLength, maxLength, maxItems, required,
/// additionalProperties). `invalid_input` names the argument, and for an unknown one the nearest.
result<void> check_arguments(const mcp_tool& tool, const ordered_json& arguments);

} // namespace gristmill
