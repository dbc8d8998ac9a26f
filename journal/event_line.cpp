#include "journal/event_line.hpp"

#include "journal/hash.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace gristmill {

namespace {

using json = nlohmann::json;

constexpr int depth_max = 64;

// What the outside says may hold any bytes; a journal line is UTF-8 whatever it says.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Deepest nesting of brackets outside strings. The library's printer recurses, so it is checked
// before anything is built.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > depth_max)
        return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

result<json> parse_object(std::string_view text, const char* what) {
  if (text.size() > event_line_bytes_max)
    return fail(errc::invalid_input,
      fmt::format(
        "{} has {} bytes; at most {} are allowed", what, text.size(), event_line_bytes_max));
  if (too_deep(text))
    return fail(
      errc::invalid_input, fmt::format("{} is nested deeper than {} levels", what, depth_max));
  auto value = json::parse(text, nullptr, false);
  if (!value.is_object())
    return fail(
      errc::invalid_input, fmt::format("{} is not a JSON object: {}", what, text.substr(0, 120)));
  return value;
}

template <class T>
result<void> read_integer(const json& object, const char* key, T& to) {
  auto it = object.find(key);
  if (it == object.end())
    return fail(errc::invalid_input, fmt::format("event: the field '{}' is missing", key));
  bool fits = false;
  if (it->is_number_unsigned()) {
    auto value = it->get<uint64_t>();
    fits = value <= static_cast<uint64_t>(std::numeric_limits<T>::max());
    to = static_cast<T>(value);
  } else if (it->is_number_integer() && std::numeric_limits<T>::is_signed) {
    auto value = it->get<int64_t>();
    fits = value >= static_cast<int64_t>(std::numeric_limits<T>::min());
    to = static_cast<T>(value);
  }
  if (!fits)
    return fail(errc::invalid_input,
      fmt::format("event: the field '{}' is not an integer that fits: {}", key, dump(*it)));
  return {};
}

result<void> read_text(const json& object, const char* key, std::string& to) {
  auto it = object.find(key);
  if (it == object.end())
    return fail(errc::invalid_input, fmt::format("event: the field '{}' is missing", key));
  if (!it->is_string())
    return fail(errc::invalid_input,
      fmt::format("event: the field '{}' is not a string: {}", key, dump(*it).substr(0, 120)));
  to = it->get<std::string>();
  return {};
}

void remove_keys(json& value) {
  if (value.is_object())
    for (auto key : wall_clock_keys)
      value.erase(std::string{key});
  if (value.is_structured())
    for (auto& part : value)
      remove_keys(part);
}

std::string json_text(const std::string& text) {
  return dump(json(text));
}

std::string_view data_of(const event& e) {
  return e.data.empty() ? std::string_view{"{}"} : std::string_view{e.data};
}

} // namespace

result<std::string> canonical_data(std::string_view text) {
  auto value = parse_object(text, "the data of an event");
  if (!value)
    return pass(value);
  return dump(*value);
}

std::string canonical_line(const event& e) {
  return fmt::format(
    R"({{"seq":{},"v":{},"incarnation":{},"t":{},"wall":{},"kind":{},"problem":{},"attempt":{},)"
    R"("candidate":{},"gpu":{},"token":{},"reason":{},"data":{}}})",
    e.seq, e.v, e.incarnation, e.t.count(), e.wall, json_text(e.kind), json_text(e.problem),
    json_text(e.attempt), json_text(e.candidate), json_text(e.gpu), e.token, json_text(e.reason),
    data_of(e));
}

result<event> parse_line(std::string_view line) {
  auto object = parse_object(line, "an event");
  if (!object)
    return pass(object);
  event e;
  if (auto ok = read_integer(*object, "v", e.v); !ok)
    return pass(ok);
  if (e.v != event_schema_version)
    return fail(errc::unsupported,
      fmt::format(
        "event: this program reads schema {}, the line has v {}", event_schema_version, e.v));
  static constexpr std::string_view known[] = {"attempt", "candidate", "data", "gpu", "incarnation",
    "kind", "problem", "reason", "seq", "t", "token", "v", "wall"};
  for (const auto& [key, value] : object->items())
    if (std::find(std::begin(known), std::end(known), key) == std::end(known))
      return fail(errc::invalid_input, fmt::format("event: the field '{}' is unknown", key));
  int64_t t = 0;
  for (auto ok : {read_integer(*object, "seq", e.seq),
         read_integer(*object, "incarnation", e.incarnation), read_integer(*object, "t", t),
         read_integer(*object, "wall", e.wall), read_text(*object, "kind", e.kind),
         read_text(*object, "problem", e.problem), read_text(*object, "attempt", e.attempt),
         read_text(*object, "candidate", e.candidate), read_text(*object, "gpu", e.gpu),
         read_integer(*object, "token", e.token), read_text(*object, "reason", e.reason)})
    if (!ok)
      return pass(ok);
  e.t = std::chrono::nanoseconds{t};
  auto data = object->find("data");
  if (data == object->end() || !data->is_object())
    return fail(errc::invalid_input, "event: the field 'data' is missing or not an object");
  e.data = dump(*data);
  return e;
}

std::string digest_line(const event& e) {
  std::string data{data_of(e)};
  if (auto value = parse_object(data, "data"); value) {
    remove_keys(*value);
    data = dump(*value);
  } else {
    data = json_text(data);
  }
  return fmt::format(
    R"({{"v":{},"kind":{},"problem":{},"attempt":{},"candidate":{},"reason":{},"data":{}}})", e.v,
    json_text(e.kind), json_text(e.problem), json_text(e.attempt), json_text(e.candidate),
    json_text(e.reason), data);
}

std::string digest(std::span<const event> events) {
  std::vector<std::string> lines;
  for (const auto& e : events)
    if (std::find(kinds_outside_digest.begin(), kinds_outside_digest.end(), e.kind)
      == kinds_outside_digest.end())
      lines.push_back(digest_line(e));
  std::sort(lines.begin(), lines.end());
  sha256_stream stream;
  for (const auto& line : lines) {
    stream.update(line);
    stream.update("\n");
  }
  return stream.finish_hex();
}

} // namespace gristmill
