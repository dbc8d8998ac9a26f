#include "protocol/sanitizer_record.hpp"

#include "protocol/strict_json.hpp"

#include <optional>

namespace gristmill {

namespace {

constexpr std::string_view record_schema = "gristmill.sanitizer/1";
constexpr std::string_view calls_schema = "gristmill.sanitized-calls/1";
constexpr size_t text_bytes = 4096;
constexpr size_t list_max = 4096;

std::vector<std::string> tool_names() {
  std::vector<std::string> out;
  for (const auto each : sanitizer_tools())
    out.push_back(to_string(each));
  return out;
}

const std::vector<std::string> end_names{"clean", "found", "did_not_look"};

ordered_json write(const std::vector<sanitizer_finding>& all) {
  auto out = ordered_json::array();
  for (const auto& each : all)
    out.push_back({{"kind", each.kind}, {"kernel", each.kernel}, {"where", each.where},
      {"example", each.example}, {"count", each.count}});
  return out;
}

std::vector<sanitizer_finding> read_findings(strict_object& from) {
  std::vector<sanitizer_finding> out;
  from.each("findings", list_max, [&](const ordered_json& value, std::string path) {
    strict_object one(value, std::move(path), from.sink());
    sanitizer_finding found;
    found.kind = one.text("kind", text_bytes);
    found.kernel = one.text("kernel", text_bytes);
    found.where = one.text("where", text_bytes);
    found.example = one.text("example", text_bytes);
    found.count = one.natural("count");
    out.push_back(std::move(found));
  });
  return out;
}

std::vector<std::string> read_texts(strict_object& from, std::string_view key) {
  std::vector<std::string> out;
  from.each(key, list_max, [&](const ordered_json& value, const std::string& path) {
    if (!value.is_string())
      return from.complain(key, path + " must be a text");
    out.push_back(value.get<std::string>());
  });
  return out;
}

void check_schema(strict_object& object, std::string_view wanted) {
  if (object.text("schema", text_bytes) != wanted && !object.failed())
    object.complain("schema", "must be " + std::string(wanted));
}

std::string line_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

sanitizer_look read_look(strict_object& from) {
  sanitizer_look out;
  out.tool = sanitizer_tools().at(from.choice("tool", tool_names()));
  out.end = static_cast<look_end>(from.choice("end", end_names));
  out.why = from.text("why", text_bytes);
  out.findings = read_findings(from);
  out.left_out = from.natural("left_out");
  out.notes = read_texts(from, "notes");
  return out;
}

} // namespace

std::string to_json(const sanitizer_record& what) {
  auto looks = ordered_json::array();
  for (const auto& look : what.looks)
    looks.push_back({{"tool", to_string(look.tool)},
      {"end", end_names.at(static_cast<size_t>(look.end))}, {"why", look.why},
      {"findings", write(look.findings)}, {"left_out", look.left_out}, {"notes", look.notes}});
  return line_of({{"schema", record_schema}, {"attempt", what.attempt},
    {"candidate", what.candidate}, {"device", what.device}, {"program", what.program},
    {"jail", what.jail}, {"same_code", what.same_code}, {"workloads", what.workloads},
    {"at", what.at}, {"looks", std::move(looks)}});
}

result<sanitizer_record> sanitizer_record_from_json(std::string_view text) {
  auto json = parse_json_object(text, "record", {.bytes = sanitizer_record_bytes_max});
  if (!json)
    return pass(json);
  sanitizer_record out;
  std::optional<failure> sink;
  {
    strict_object object(*json, "", sink);
    check_schema(object, record_schema);
    out.attempt = object.text("attempt", text_bytes);
    out.candidate = object.text("candidate", text_bytes);
    out.device = object.text("device", text_bytes);
    out.program = object.text("program", text_bytes);
    out.jail = object.text("jail", text_bytes);
    out.same_code = object.boolean("same_code");
    out.workloads = read_texts(object, "workloads");
    out.at = object.text("at", text_bytes);
    object.each("looks", list_max, [&](const ordered_json& value, std::string path) {
      strict_object look(value, std::move(path), sink);
      out.looks.push_back(read_look(look));
    });
  }
  if (sink)
    return tl::unexpected<failure>(*sink);
  return out;
}

std::string to_json(const sanitized_calls& what) {
  auto calls = ordered_json::array();
  for (const auto& each : what.calls)
    calls.push_back(
      {{"workload", each.uuid}, {"failed", each.failed}, {"findings", write(each.findings)},
        {"left_out", each.left_out}, {"not_seen", each.not_seen}});
  return line_of({{"schema", calls_schema}, {"calls", std::move(calls)}});
}

result<sanitized_calls> sanitized_calls_from_json(std::string_view text) {
  auto json = parse_json_object(text, sanitized_calls_file, {.bytes = sanitizer_record_bytes_max});
  if (!json)
    return pass(json);
  sanitized_calls out;
  std::optional<failure> sink;
  {
    strict_object object(*json, "", sink);
    check_schema(object, calls_schema);
    object.each("calls", list_max, [&](const ordered_json& value, std::string path) {
      strict_object one(value, std::move(path), sink);
      sanitized_calls::call call;
      call.uuid = one.text("workload", text_bytes);
      call.failed = one.text("failed", text_bytes);
      call.findings = read_findings(one);
      call.left_out = one.natural("left_out");
      call.not_seen = read_texts(one, "not_seen");
      out.calls.push_back(std::move(call));
    });
  }
  if (sink)
    return tl::unexpected<failure>(*sink);
  return out;
}

} // namespace gristmill
