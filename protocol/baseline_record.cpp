#include "protocol/baseline_record.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

using need = field_reader::need;

void refuse_others(const ordered_json& object, const std::string& path,
  const std::vector<std::string>& known, field_reader& fields) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fields.error(join_path(path, key), "unknown key" + suggestion(key, known));
}

bool is_object(const ordered_json& from, const std::string& path, field_reader& fields) {
  if (from.is_object())
    return true;
  fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
  return false;
}

ordered_json summary_json(const time_summary& times) {
  return {{"median", times.median}, {"mad", times.mad}, {"min", times.min}, {"max", times.max},
    {"samples", times.samples}};
}

std::optional<time_summary> read_times(
  const ordered_json& from, const std::string& path, const char* key, field_reader& fields) {
  const auto found = from.find(key);
  if (found == from.end())
    return std::nullopt;
  return read_summary(*found, join_path(path, key), fields);
}

baseline_mode read_mode(const ordered_json& from, const std::string& path, field_reader& fields) {
  baseline_mode mode;
  if (!is_object(from, path, fields))
    return mode;
  refuse_others(
    from, path, {"mode", "reason", "choice", "device_ns", "span_ns", "activity_ns"}, fields);
  mode.name = fields.text(from, path, "mode", need::required);
  mode.reason = fields.text(from, path, "reason", need::optional);
  mode.choice = fields.text(from, path, "choice", need::optional);
  mode.device = read_times(from, path, "device_ns", fields);
  mode.span = read_times(from, path, "span_ns", fields);
  mode.activity = read_times(from, path, "activity_ns", fields);
  if (mode.reason.empty() != mode.device.has_value())
    fields.error(path, "a mode has either times (`device_ns`) or a `reason` why it has none");
  return mode;
}

} // namespace

const baseline_mode* baseline_record::find(std::string_view mode) const {
  const auto found = std::find_if(
    modes.begin(), modes.end(), [&](const baseline_mode& each) { return each.name == mode; });
  return found == modes.end() ? nullptr : &*found;
}

time_summary read_summary(const ordered_json& from, const std::string& path, field_reader& fields) {
  time_summary out;
  if (!is_object(from, path, fields))
    return out;
  refuse_others(from, path, {"median", "mad", "min", "max", "samples"}, fields);
  const std::array<std::pair<const char*, double*>, 4> numbers{
    {{"median", &out.median}, {"mad", &out.mad}, {"min", &out.min}, {"max", &out.max}}};
  for (const auto& [key, to] : numbers) {
    const auto found = from.find(key);
    const bool may_be_zero = std::string_view(key) == "mad";
    if (found == from.end() || !found->is_number() || !std::isfinite(found->get<double>())
      || found->get<double>() < 0 || (!may_be_zero && found->get<double>() == 0))
      fields.error(join_path(path, key), "a positive number of nanoseconds is required");
    else
      *to = found->get<double>();
  }
  const auto samples = from.find("samples");
  if (samples == from.end() || !samples->is_number_integer() || samples->get<int64_t>() < 1)
    fields.error(join_path(path, "samples"), "a positive whole number is required");
  else
    out.samples = samples->get<int64_t>();
  if (!fields.failed() && (out.median < out.min || out.median > out.max))
    fields.error(path, "the median does not lie between `min` and `max`");
  return out;
}

baseline_record read_baseline(
  const ordered_json& from, const std::string& path, field_reader& fields) {
  baseline_record out;
  if (!is_object(from, path, fields))
    return out;
  refuse_others(from, path, {"winner", "modes", "copy_ns", "copy_bytes"}, fields);
  out.winner = fields.text(from, path, "winner", need::required);
  const auto modes = from.find("modes");
  if (modes == from.end() || !modes->is_array())
    fields.error(join_path(path, "modes"), "a list is required");
  else
    for (size_t i = 0; i < modes->size(); ++i)
      out.modes.push_back(
        read_mode((*modes)[i], fmt::format("{}[{}]", join_path(path, "modes"), i), fields));
  out.copy = read_times(from, path, "copy_ns", fields);
  if (out.copy)
    out.copy_bytes = fields.integer(from, path, "copy_bytes", 0);
  if (out.copy && out.copy_bytes < 1)
    fields.error(join_path(path, "copy_bytes"), "is needed beside `copy_ns`: bytes that it moved");
  std::vector<std::string> timed;
  for (const auto& mode : out.modes)
    if (mode.device)
      timed.push_back(mode.name);
  if (!out.winner.empty() && std::find(timed.begin(), timed.end(), out.winner) == timed.end())
    fields.error(join_path(path, "winner"),
      fmt::format("{} was not timed{}", excerpt(out.winner), suggestion(out.winner, timed)));
  return out;
}

ordered_json to_json(const baseline_record& record) {
  ordered_json out{{"winner", record.winner}, {"modes", ordered_json::array()}};
  for (const auto& mode : record.modes) {
    ordered_json one{{"mode", mode.name}};
    if (!mode.reason.empty())
      one["reason"] = mode.reason;
    if (!mode.choice.empty())
      one["choice"] = mode.choice;
    if (mode.device)
      one["device_ns"] = summary_json(*mode.device);
    if (mode.span)
      one["span_ns"] = summary_json(*mode.span);
    if (mode.activity)
      one["activity_ns"] = summary_json(*mode.activity);
    out["modes"].push_back(std::move(one));
  }
  if (record.copy) {
    out["copy_ns"] = summary_json(*record.copy);
    out["copy_bytes"] = record.copy_bytes;
  }
  return out;
}

} // namespace gristmill
