#include "protocol/device_description.hpp"

#include "protocol/strict_json.hpp"

#include <fmt/format.h>
#include <optional>

namespace gristmill {

namespace {

constexpr size_t text_bytes = 4096;
constexpr size_t libraries_max = 16;
constexpr size_t processes_max = 4096;
constexpr size_t devices_max = 4096;
constexpr json_limits line_limits{
  .bytes = size_t{1} << 20, .depth = 4, .keys = 64, .unique_keys = true};

const std::vector<std::string> origins{"modelled", "measured"};

device_library read_library(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  device_library one;
  one.name = object.text("name", text_bytes);
  one.found = object.boolean("found");
  one.detail = object.text("detail", text_bytes);
  return one;
}

/// One line as an object of the kind that its field `line` names.
template <class T, class Read>
result<T> read_line(std::string_view line, const std::string& kind, Read read) {
  auto document = parse_json_object(line, kind, line_limits);
  if (!document)
    return pass(document);
  std::optional<failure> sink;
  T out;
  {
    strict_object object{*document, kind, sink};
    if (object.text("line", text_bytes) != kind)
      object.complain("line", fmt::format("expected `{}`", kind));
    read(object, out);
  }
  if (sink)
    return tl::unexpected<failure>(*sink);
  return out;
}

} // namespace

ordered_json to_json(const device_description& what) {
  auto libraries = ordered_json::array();
  for (const auto& one : what.libraries)
    libraries.push_back({{"name", one.name}, {"found", one.found}, {"detail", one.detail}});
  return {{"line", "device"}, {"device", what.device}, {"model", what.model}, {"title", what.title},
    {"arch", what.arch}, {"sm_count", what.sm_count}, {"shared_per_block", what.shared_per_block},
    {"shared_per_sm", what.shared_per_sm}, {"l2_bytes", what.l2_bytes},
    {"memory_bytes", what.memory_bytes}, {"threads_per_block", what.threads_per_block},
    {"origin", origins[what.origin == time_origin::measured ? 1 : 0]},
    {"time_label", what.time_label}, {"uuid", what.uuid}, {"driver", what.driver},
    {"cuda_version", what.cuda_version}, {"pageable_memory_access", what.pageable_memory_access},
    {"libraries", libraries}};
}

result<device_description> description_from_json(std::string_view line) {
  return read_line<device_description>(line, "device", [](strict_object& object, auto& out) {
    out.device = object.text("device", text_bytes);
    out.model = object.text("model", text_bytes);
    out.title = object.text("title", text_bytes);
    out.arch = object.text("arch", text_bytes);
    out.sm_count = object.natural32("sm_count");
    out.shared_per_block = object.natural("shared_per_block");
    out.shared_per_sm = object.natural("shared_per_sm");
    out.l2_bytes = object.natural("l2_bytes");
    out.memory_bytes = object.natural("memory_bytes");
    out.threads_per_block = object.natural32("threads_per_block");
    out.origin =
      object.choice("origin", origins) == 1 ? time_origin::measured : time_origin::modelled;
    out.time_label = object.text("time_label", text_bytes);
    out.uuid = object.text("uuid", text_bytes);
    out.driver = object.text("driver", text_bytes);
    out.cuda_version = object.natural32("cuda_version");
    out.pageable_memory_access = object.boolean("pageable_memory_access");
    object.each("libraries", libraries_max, [&](const ordered_json& element, std::string where) {
      out.libraries.push_back(read_library(element, std::move(where), object.sink()));
    });
    for (const auto& [key, value] :
      {std::pair{"device", &out.device}, {"model", &out.model}, {"arch", &out.arch}})
      if (value->empty())
        object.complain(key, "is empty");
    if (out.sm_count == 0)
      object.complain("sm_count", "must be at least 1");
  });
}

result<std::vector<device_description>> descriptions_from_text(std::string_view text) {
  std::vector<device_description> all;
  for (size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    auto one = description_from_json(line);
    if (!one)
      return fail(one.error().code, fmt::format("line {}: {}", number, one.error().what));
    if (all.size() == devices_max)
      return fail(errc::invalid_input, fmt::format("more than {} devices", devices_max));
    all.push_back(std::move(*one));
  }
  return all;
}

ordered_json to_json(const health_report& what) {
  auto processes = ordered_json::array();
  for (const auto& one : what.processes)
    processes.push_back({{"pid", one.pid}, {"memory_bytes", one.memory_bytes}});
  return {{"line", "health"}, {"device", what.device}, {"uuid", what.uuid},
    {"processes", processes}, {"memory_used_bytes", what.memory_used_bytes},
    {"memory_total_bytes", what.memory_total_bytes},
    {"uncorrected_errors", what.uncorrected_errors}, {"temperature_c", what.temperature_c},
    {"throttle_bits", what.throttle_bits}};
}

result<health_report> health_from_json(std::string_view line) {
  return read_line<health_report>(line, "health", [](strict_object& object, auto& out) {
    out.device = object.text("device", text_bytes);
    out.uuid = object.text("uuid", text_bytes);
    object.each("processes", processes_max, [&](const ordered_json& element, std::string where) {
      strict_object inner{element, std::move(where), object.sink()};
      device_process one;
      one.pid = inner.natural32("pid");
      one.memory_bytes = inner.natural("memory_bytes");
      out.processes.push_back(one);
    });
    out.memory_used_bytes = object.natural("memory_used_bytes");
    out.memory_total_bytes = object.natural("memory_total_bytes");
    out.uncorrected_errors = object.natural("uncorrected_errors");
    out.temperature_c = object.natural32("temperature_c");
    out.throttle_bits = object.natural("throttle_bits");
  });
}

} // namespace gristmill
