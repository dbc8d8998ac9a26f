#include "protocol/mcp/session.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr int parse_error = -32700;
constexpr int invalid_request = -32600;
constexpr int method_not_found = -32601;
constexpr int invalid_params = -32602;
constexpr int unsupported_version = -32022;

constexpr const char* version_key = "io.modelcontextprotocol/protocolVersion";
constexpr const char* capabilities_key = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* server_key = "io.modelcontextprotocol/serverInfo";

/// The catalogue never changes, and the next process may have another.
constexpr int64_t list_ttl_ms = 3'600'000;

std::string line_of(const ordered_json& message) {
  return message.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// JSON-RPC wants null for an id that could not be read.
std::string error_line(
  const ordered_json& id, int code, const std::string& what, ordered_json data = nullptr) {
  ordered_json error{{"code", code}, {"message", what}};
  if (!data.is_null())
    error["data"] = std::move(data);
  return line_of({{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}});
}

/// How deep brackets stand in brackets, counted without a parser.
size_t depth_of(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (c == '}' || c == ']') && depth > 0)
      --depth;
  }
  return deepest;
}

const std::string* text_at(const ordered_json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get_ptr<const std::string*>()
                                                     : nullptr;
}

ordered_json text_content(const std::string& text) {
  return ordered_json::array({{{"type", "text"}, {"text", text}}});
}

} // namespace

const std::vector<std::string>& mcp_versions() {
  static const std::vector<std::string> all{
    "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
  return all;
}

mcp_session::mcp_session(mcp_catalogue catalogue, mcp_limits limits)
  : catalogue_(std::move(catalogue)), limits_(limits) {}

mcp_step mcp_session::on_too_long() {
  return {{error_line(nullptr, invalid_request,
            fmt::format("the message is longer than {} bytes", limits_.message_bytes))},
    {}, {}};
}

mcp_step mcp_session::on_line(std::string_view line) {
  mcp_step out;
  if (line.find_first_not_of(" \t\r") == std::string_view::npos)
    return out;
  if (line.size() > limits_.message_bytes)
    return on_too_long();
  auto refuse = [&](const ordered_json& id, int code, const std::string& what) {
    out.lines.push_back(error_line(id, code, what));
    return out;
  };
  if (depth_of(line) > limits_.depth)
    return refuse(nullptr, invalid_request,
      fmt::format("the message is nested deeper than {} levels", limits_.depth));
  auto message = ordered_json::parse(line, nullptr, false);
  if (message.is_discarded())
    return refuse(nullptr, parse_error, "the message is not JSON");
  if (message.is_array())
    return refuse(nullptr, invalid_request, "batches are not taken: one message a line");
  if (!message.is_object())
    return refuse(nullptr, invalid_request, "the message is not an object");
  if (!message.contains("method") && (message.contains("result") || message.contains("error")))
    return out; // We ask nothing, so nothing is answered.
  auto id = message.find("id");
  request asked;
  if (id != message.end()) {
    bool sound = id->is_number_integer()
      || (id->is_string() && id->get_ref<const std::string&>().size() <= limits_.id_bytes);
    if (!sound)
      return refuse(nullptr, invalid_request,
        fmt::format("id: must be a whole number or a text of at most {} bytes", limits_.id_bytes));
    asked.id = *id;
  }
  if (const auto* rpc = text_at(message, "jsonrpc"); !rpc || *rpc != "2.0")
    return refuse(asked.id, invalid_request, "jsonrpc: must be \"2.0\"");
  const auto* method = text_at(message, "method");
  if (!method)
    return refuse(asked.id, invalid_request, "method: must be a text");
  asked.method = *method;
  if (auto params = message.find("params"); params != message.end()) {
    if (!params->is_object()) {
      if (id == message.end())
        return out; // A notification is never answered.
      return refuse(asked.id, invalid_params, "params: must be an object");
    }
    asked.params = *params;
  }
  if (id == message.end()) {
    notified(asked.method, asked.params, out);
    return out;
  }
  if (is_in_flight(asked.id))
    return refuse(asked.id, invalid_request, "id: a request of this id is in flight");
  if (read_envelope(asked, out))
    serve(asked, out);
  return out;
}

bool mcp_session::read_envelope(request& asked, mcp_step& out) {
  auto refuse = [&](int code, const std::string& what, ordered_json data = nullptr) {
    out.lines.push_back(error_line(asked.id, code, what, std::move(data)));
    return false;
  };
  auto meta = asked.params.find("_meta");
  if (meta != asked.params.end() && !meta->is_object())
    return refuse(invalid_params, "_meta: must be an object");
  const bool has_version = meta != asked.params.end() && meta->contains(version_key);
  if (asked.method == "server/discover" && !has_version)
    return refuse(invalid_params, std::string("_meta.") + version_key + ": missing");
  if (has_version) {
    const auto* version = text_at(*meta, version_key);
    if (!version)
      return refuse(invalid_params, std::string("_meta.") + version_key + ": must be a text");
    // A revision with a handshake cannot be had this way.
    if (*version != mcp_versions().front())
      return refuse(unsupported_version, "Unsupported protocol version",
        {{"supported", mcp_versions()}, {"requested", version->substr(0, limits_.id_bytes)}});
    auto can = meta->find(capabilities_key);
    if (can == meta->end() || !can->is_object())
      return refuse(
        invalid_params, std::string("_meta.") + capabilities_key + ": must be an object");
    asked.modern = true;
    return true;
  }
  if (!initialized_ && asked.method != "initialize" && asked.method != "ping")
    return refuse(invalid_request,
      fmt::format("{}: comes before initialize and names no revision in _meta",
        asked.method.substr(0, limits_.id_bytes)));
  return true;
}

std::string mcp_session::reply(const ordered_json& id, ordered_json body, bool modern) const {
  if (modern) {
    body["resultType"] = "complete";
    body["_meta"][server_key] = {{"name", catalogue_.name}, {"version", catalogue_.version}};
  }
  return line_of({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(body)}});
}

bool mcp_session::is_in_flight(const ordered_json& id) const {
  return std::any_of(
    open_.begin(), open_.end(), [&](const auto& entry) { return entry.second.id == id; });
}

ordered_json mcp_session::capabilities() const {
  ordered_json out{{"tools", ordered_json::object()}};
  if (!catalogue_.resources.empty())
    out["resources"] = ordered_json::object();
  if (!catalogue_.prompts.empty())
    out["prompts"] = ordered_json::object();
  return out;
}

void mcp_session::initialize(const request& asked, mcp_step& out) {
  const auto* wanted = text_at(asked.params, "protocolVersion");
  if (!wanted) {
    out.lines.push_back(error_line(asked.id, invalid_params, "protocolVersion: must be a text"));
    return;
  }
  if (initialized_) {
    out.lines.push_back(error_line(asked.id, invalid_request, "initialize came before"));
    return;
  }
  initialized_ = true;
  // The newest revision with a handshake, when the client's is none of ours.
  const auto& all = mcp_versions();
  auto agreed = std::find(all.begin() + 1, all.end(), *wanted);
  out.lines.push_back(reply(asked.id,
    {{"protocolVersion", agreed == all.end() ? all[1] : *agreed}, {"capabilities", capabilities()},
      {"serverInfo", {{"name", catalogue_.name}, {"version", catalogue_.version}}},
      {"instructions", catalogue_.instructions}},
    false));
}

ordered_json mcp_session::tool_list() const {
  auto list = ordered_json::array();
  for (const auto& tool : catalogue_.tools) {
    ordered_json one{{"name", tool.name}, {"title", tool.title}, {"description", tool.description},
      {"inputSchema", tool.input_schema}};
    if (!tool.output_schema.is_null())
      one["outputSchema"] = tool.output_schema;
    one["annotations"] = {
      {"readOnlyHint", tool.read_only}, {"destructiveHint", false}, {"openWorldHint", false}};
    list.push_back(std::move(one));
  }
  return {{"tools", std::move(list)}};
}

ordered_json mcp_session::resource_list() const {
  auto list = ordered_json::array();
  for (const auto& r : catalogue_.resources)
    list.push_back({{"uri", r.uri}, {"name", r.name}, {"description", r.description},
      {"mimeType", r.mime_type}});
  return {{"resources", std::move(list)}};
}

ordered_json mcp_session::prompt_list() const {
  auto list = ordered_json::array();
  for (const auto& p : catalogue_.prompts) {
    auto arguments = ordered_json::array();
    for (const auto& a : p.arguments)
      arguments.push_back(
        {{"name", a.name}, {"description", a.description}, {"required", a.required}});
    list.push_back(
      {{"name", p.name}, {"description", p.description}, {"arguments", std::move(arguments)}});
  }
  return {{"prompts", std::move(list)}};
}

void mcp_session::serve(const request& asked, mcp_step& out) {
  const auto& method = asked.method;
  const auto& params = asked.params;
  auto refuse = [&](int code, const std::string& what) {
    out.lines.push_back(error_line(asked.id, code, what));
  };
  auto answer = [&](ordered_json body, bool cacheable = false) {
    if (asked.modern && cacheable) {
      body["ttlMs"] = list_ttl_ms;
      body["cacheScope"] = "private";
    }
    out.lines.push_back(reply(asked.id, std::move(body), asked.modern));
  };
  if (params.contains("cursor") && method.ends_with("/list"))
    return refuse(invalid_params, "cursor: unknown; every list comes whole");
  if (method == "initialize" && !asked.modern)
    return initialize(asked, out);
  if (method == "ping" && !asked.modern)
    return answer(ordered_json::object());
  if (method == "server/discover" && asked.modern)
    return answer({{"supportedVersions", mcp_versions()}, {"capabilities", capabilities()},
                    {"instructions", catalogue_.instructions}},
      true);
  if (method == "tools/list")
    return answer(tool_list(), true);
  if (method == "tools/call")
    return call_tool(asked, out);
  if (method == "resources/list")
    return answer(resource_list(), true);
  if (method == "resources/templates/list")
    return answer({{"resourceTemplates", ordered_json::array()}}, true);
  if (method == "prompts/list")
    return answer(prompt_list(), true);
  if (method == "resources/read") {
    const auto* uri = text_at(params, "uri");
    if (!uri)
      return refuse(invalid_params, "uri: must be a text");
    std::vector<std::string> known;
    for (const auto& r : catalogue_.resources) {
      known.push_back(r.uri);
      if (r.uri == *uri)
        return answer({{"contents",
                        ordered_json::array(
                          {{{"uri", r.uri}, {"mimeType", r.mime_type}, {"text", r.text()}}})}},
          true);
    }
    return refuse(asked.modern ? invalid_params : -32002,
      "uri: no such resource" + suggestion(uri->substr(0, limits_.id_bytes), known));
  }
  if (method == "prompts/get") {
    const auto* name = text_at(params, "name");
    if (!name)
      return refuse(invalid_params, "name: must be a text");
    std::vector<std::string> known;
    for (const auto& p : catalogue_.prompts) {
      known.push_back(p.name);
      if (p.name != *name)
        continue;
      std::string value;
      auto given = params.find("arguments");
      if (given != params.end() && !given->is_object())
        return refuse(invalid_params, "arguments: must be an object");
      if (!p.arguments.empty()) {
        const auto& wanted = p.arguments.front();
        const auto* text = given == params.end() ? nullptr : text_at(*given, wanted.name.c_str());
        if (!text && wanted.required)
          return refuse(invalid_params, "arguments." + wanted.name + ": missing");
        value = text ? *text : "";
      }
      auto text = p.text(value);
      if (!text)
        return refuse(invalid_params, "arguments: " + text.error().what);
      return answer({{"description", p.description},
        {"messages",
          ordered_json::array(
            {{{"role", "user"}, {"content", {{"type", "text"}, {"text", *text}}}}})}});
    }
    return refuse(invalid_params,
      "name: no such prompt" + suggestion(name->substr(0, limits_.id_bytes), known));
  }
  refuse(method_not_found, "no such method: " + method.substr(0, limits_.id_bytes));
}

void mcp_session::call_tool(const request& asked, mcp_step& out) {
  auto refuse = [&](const std::string& what) {
    out.lines.push_back(error_line(asked.id, invalid_params, what));
  };
  const auto* name = text_at(asked.params, "name");
  if (!name)
    return refuse("name: must be a text");
  const auto* tool = catalogue_.find_tool(*name);
  if (!tool) {
    std::vector<std::string> known;
    for (const auto& t : catalogue_.tools)
      known.push_back(t.name);
    auto given = name->substr(0, limits_.id_bytes);
    return refuse("name: unknown tool '" + given + "'" + suggestion(given, known));
  }
  auto given = asked.params.find("arguments");
  auto arguments = given == asked.params.end() ? ordered_json::object() : *given;
  if (!arguments.is_object())
    return refuse("arguments: must be an object");
  open_call call{asked.id, asked.modern, nullptr, -1};
  if (auto meta = asked.params.find("_meta"); meta != asked.params.end())
    if (auto token = meta->find("progressToken"); token != meta->end()) {
      if (!token->is_string() && !token->is_number_integer())
        return refuse("_meta.progressToken: must be a text or a whole number");
      call.progress_token = *token;
    }
  auto number = next_call_++;
  const bool full = open_.size() >= limits_.calls_in_flight;
  auto fits = check_arguments(*tool, arguments);
  mcp_call start{number, *name, std::move(arguments), !call.progress_token.is_null()};
  open_.emplace(number, std::move(call));
  if (full)
    out.lines = on_outcome(number,
      {fmt::format("{} calls are in flight; wait for one of them", limits_.calls_in_flight),
        nullptr, true});
  else if (!fits)
    out.lines = on_outcome(number, {fits.error().what, nullptr, true});
  else
    out.calls.push_back(std::move(start));
}

void mcp_session::notified(const std::string& method, const ordered_json& params, mcp_step& out) {
  if (method != "notifications/cancelled")
    return;
  auto id = params.find("requestId");
  if (id == params.end())
    return;
  for (auto it = open_.begin(); it != open_.end(); ++it)
    if (it->second.id == *id) {
      out.cancelled.push_back(it->first);
      open_.erase(it);
      return;
    }
}

std::vector<std::string> mcp_session::on_outcome(uint64_t call, const mcp_outcome& what) {
  auto found = open_.find(call);
  if (found == open_.end())
    return {};
  ordered_json body{{"content", text_content(what.text)}};
  if (!what.structured.is_null())
    body["structuredContent"] = what.structured;
  body["isError"] = what.is_error;
  auto line = reply(found->second.id, std::move(body), found->second.modern);
  open_.erase(found);
  return {std::move(line)};
}

std::vector<std::string> mcp_session::on_progress(
  uint64_t call, double done, const std::string& message) {
  auto found = open_.find(call);
  if (found == open_.end() || found->second.progress_token.is_null()
    || done <= found->second.progress)
    return {};
  found->second.progress = done;
  ordered_json params{{"progressToken", found->second.progress_token}, {"progress", done}};
  if (!message.empty())
    params["message"] = message;
  return {line_of(
    {{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", std::move(params)}})};
}

} // namespace gristmill
