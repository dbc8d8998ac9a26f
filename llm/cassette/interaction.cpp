#include "llm/cassette/interaction.hpp"

#include "journal/hash.hpp"
#include "protocol/strict_json.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

namespace gristmill {

using std::chrono::microseconds;

namespace {

constexpr uint32_t format_version = 1;
constexpr size_t text_max = size_t{256} << 20;
constexpr size_t events_max = 10'000'000;
constexpr size_t headers_max = 4096;
/// Some hundred days, so that nothing overflows, however slowly it is played.
constexpr uint64_t microseconds_max = 10'000'000'000'000;

// As they stand in the file: never change one.
const std::vector<std::string>& end_names() {
  static const std::vector<std::string> names{"complete", "cancelled", "not_sent",
    "connect_timeout", "first_event_timeout", "idle_timeout", "wall_timeout", "cut_off",
    "too_large"};
  return names;
}

bool is_utf8(const std::string& text) {
  try {
    (void)ordered_json(text).dump();
    return true;
  } catch (const ordered_json::exception&) {
    return false;
  }
}

/// A JSON string where the bytes are one; else an object whose text has a character for each byte.
ordered_json text_value(const std::string& bytes) {
  if (is_utf8(bytes))
    return bytes;
  std::string characters;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      characters += c;
    } else {
      characters += static_cast<char>(0xC0 | (byte >> 6));
      characters += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return {{"latin1", characters}};
}

std::optional<std::string> text_from(const ordered_json& value) {
  if (value.is_string())
    return value.get<std::string>();
  if (!value.is_object() || value.size() != 1 || !value.contains("latin1")
    || !value.at("latin1").is_string())
    return std::nullopt;
  const auto& characters = value.at("latin1").get_ref<const std::string&>();
  std::string out;
  for (size_t i = 0; i < characters.size(); ++i) {
    auto byte = static_cast<unsigned char>(characters[i]);
    if (byte >= 0x80) {
      if ((byte & 0xFC) != 0xC0 || ++i == characters.size())
        return std::nullopt;
      byte = static_cast<unsigned char>(
        (byte & 3) << 6 | (static_cast<unsigned char>(characters[i]) & 0x3F));
    }
    out += static_cast<char>(byte);
  }
  return out;
}

std::string hash_of(const canonical_request& request) {
  return request.json.is_null()
    ? sha256_hex(fmt::format("{}\ntext\n{}", request.url, request.text))
    : sha256_hex(fmt::format("{}\njson\n{}", request.url, request.json.dump()));
}

/// Takes a member out of the document, which may be of any kind.
std::optional<ordered_json> taken(ordered_json& document, const char* key) {
  const auto at = document.find(key);
  if (at == document.end())
    return std::nullopt;
  auto out = std::move(*at);
  document.erase(key);
  return out;
}

/// Says so in the sink when there is none or it is no text.
std::string taken_text(
  ordered_json& document, const char* key, const std::string& where, std::optional<failure>& sink) {
  const auto value = taken(document, key);
  auto text = value ? text_from(*value) : std::nullopt;
  if (!text && !sink)
    sink = failure{
      errc::invalid_input, fmt::format("{}: {}: {}", where, key, value ? "is no text" : "missing")};
  return text.value_or("");
}

void read_answer(strict_object& from, interaction& out) {
  const auto complain = [&](const std::string& path, std::string_view what) {
    if (!from.sink())
      from.sink() = failure{errc::invalid_input, fmt::format("{}: {}", path, what)};
  };
  out.status = from.natural32("status", 999);
  from.each_member("headers", headers_max,
    [&](const std::string& name, const ordered_json& value, const std::string& path) {
      if (auto text = text_from(value))
        out.headers.emplace_back(name, std::move(*text));
      else
        complain(path, "is no text");
    });
  from.each("events", events_max, [&](const ordered_json& value, const std::string& path) {
    const bool shaped = value.is_array() && value.size() == 3 && value[0].is_number_unsigned()
      && value[0].get<uint64_t>() <= microseconds_max;
    auto name = shaped ? text_from(value[1]) : std::nullopt;
    auto data = shaped ? text_from(value[2]) : std::nullopt;
    if (name && data)
      out.events.push_back(
        {microseconds{value[0].get<int64_t>()}, {std::move(*name), std::move(*data)}});
    else
      complain(path, "is not [microseconds, name, data]");
  });
  out.how = static_cast<http_end>(from.choice("end", end_names()));
  out.took = microseconds{static_cast<int64_t>(from.natural("took_us", microseconds_max))};
  from.object("redacted", [&](strict_object& counts) {
    out.redacted.known = counts.natural("known");
    out.redacted.by_form = counts.natural("by_form");
  });
}

} // namespace

std::string write_interaction(const interaction& what) {
  ordered_json line;
  line["cassette"] = format_version;
  line["hash"] = what.request.hash;
  line["ordinal"] = what.ordinal;
  line["url"] = what.request.url;
  if (what.request.json.is_null())
    line["request_text"] = text_value(what.request.text);
  else
    line["request"] = what.request.json;
  line["status"] = what.status;
  // A name that comes twice has one line, as HTTP allows.
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : what.headers)
    headers[name] += (headers[name].empty() ? "" : ", ") + value;
  line["headers"] = ordered_json::object();
  for (const auto& [name, value] : headers)
    line["headers"][name] = text_value(value);
  line["events"] = ordered_json::array();
  for (const auto& each : what.events)
    line["events"].push_back(ordered_json::array(
      {each.at.count(), text_value(each.event.name), text_value(each.event.data)}));
  line["body"] = text_value(what.body);
  line["end"] = end_names()[static_cast<size_t>(what.how)];
  line["why"] = text_value(what.why);
  line["took_us"] = what.took.count();
  line["redacted"] = {{"known", what.redacted.known}, {"by_form", what.redacted.by_form}};
  return line.dump() + "\n";
}

result<interaction> read_interaction(std::string_view line, const std::string& where) {
  json_limits limits;
  limits.bytes = text_max;
  limits.unique_keys = true;
  // A body that could be read when it was recorded stands one level deeper here.
  limits.depth += 8;
  auto document = parse_json_object(line, where, limits);
  if (!document)
    return pass(document);
  interaction out;
  std::optional<failure> sink;
  if (document->contains("request_text"))
    out.request.text = taken_text(*document, "request_text", where, sink);
  else
    out.request.json = taken(*document, "request").value_or(ordered_json());
  out.body = taken_text(*document, "body", where, sink);
  out.why = taken_text(*document, "why", where, sink);
  {
    strict_object from(*document, where, sink);
    if (from.natural("cassette") != format_version)
      from.complain("cassette", fmt::format("this program reads version {}", format_version));
    out.request.hash = from.text("hash", 64);
    out.ordinal = from.natural("ordinal");
    out.request.url = from.text("url", text_max);
    read_answer(from, out);
    if (!sink && hash_of(out.request) != out.request.hash)
      from.complain("hash", "is not that of this request; a cassette cannot be edited by hand");
  }
  if (sink)
    return fail(sink->code, sink->what);
  return out;
}

result<tape> read_tape(std::string_view text, const std::string& file) {
  tape out;
  std::map<std::pair<std::string, uint64_t>, size_t> places;
  for (size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    auto read = read_interaction(line, fmt::format("{}:{}", file, number));
    if (!read && end == std::string_view::npos) {
      out.torn = true;
      break;
    }
    if (!read)
      return pass(read);
    const auto [at, is_new] =
      places.emplace(std::pair(read->request.hash, read->ordinal), out.all.size());
    if (is_new)
      out.all.push_back(std::move(*read));
    else
      out.all[at->second] = std::move(*read);
    const auto used = std::min(line.size() + 1, text.size());
    out.ends_with_line = end != std::string_view::npos;
    out.whole_bytes += used;
    text.remove_prefix(used);
  }
  return out;
}

} // namespace gristmill
