#include "protocol/device_name.hpp"

#include "protocol/duration_text.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace gristmill {

namespace {

constexpr uint32_t devices_max = 4096;

std::vector<std::string> split(std::string_view text, char mark) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = std::min(text.find(mark), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size())
      return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<uint32_t> read_count(std::string_view text) {
  uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value == 0 || value > devices_max)
    return std::nullopt;
  return value;
}

bool is_ordinal(std::string_view text) {
  return !text.empty() && text.size() <= 4
    && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

result<device_group> parse_group(
  const std::string& text, const std::vector<std::string>& known_models) {
  const auto refuse = [&](const std::string& why) {
    return fail(errc::invalid_input, fmt::format("--gpus {}: {}", excerpt(text), why));
  };
  const auto parts = split(text, ':');
  device_group out;
  if (parts[0] == "cuda") {
    const bool named = parts.size() == 2
      && (parts[1] == "all" || is_ordinal(parts[1])
        || (parts[1].starts_with("GPU-") && parts[1].size() > 8));
    if (!named)
      return refuse("write cuda:0, cuda:all or cuda:GPU-UUID");
    out.what = device_group::kind::cuda;
    out.which = parts[1];
    return out;
  }
  if (parts[0] != "mock" && parts[0] != "sleep")
    return refuse(fmt::format("there is no kind of device {}{}", excerpt(parts[0]),
      suggestion(parts[0], {"mock", "sleep", "cuda"})));
  if (parts.size() < 2 || parts.size() > 3)
    return refuse("write mock:MODEL, mock:MODEL:COUNT or sleep:DURATION:COUNT");
  if (parts[0] == "mock") {
    out.model = parts[1];
    if (std::find(known_models.begin(), known_models.end(), out.model) == known_models.end())
      return refuse(fmt::format(
        "there is no mock device {}{}", excerpt(out.model), suggestion(out.model, known_models)));
  } else {
    out.what = device_group::kind::sleep;
    const auto duration = parse_duration_ns(parts[1]);
    if (!duration || *duration == 0)
      return refuse(fmt::format("{} is not a duration such as 100ms or 2s", excerpt(parts[1])));
    out.sleep_ns = *duration;
  }
  if (parts.size() == 3) {
    const auto count = read_count(parts[2]);
    if (!count)
      return refuse(
        fmt::format("{} is not a number of devices from 1 to {}", excerpt(parts[2]), devices_max));
    out.count = *count;
  }
  return out;
}

} // namespace

result<std::vector<device_group>> parse_devices(
  std::string_view text, const std::vector<std::string>& known_models) {
  std::vector<device_group> out;
  uint64_t total = 0;
  for (const auto& each : split(text, ',')) {
    auto group = parse_group(each, known_models);
    if (!group)
      return pass(group);
    total += group->count;
    if (total > devices_max)
      return fail(errc::invalid_input,
        fmt::format("--gpus {}: more than {} devices", excerpt(text), devices_max));
    out.push_back(std::move(*group));
  }
  return out;
}

result<std::vector<device_group>> parse_run_devices(
  std::string_view text, const std::vector<std::string>& known_models) {
  constexpr std::string_view prefix = "nodes:";
  if (!text.starts_with(prefix)) {
    if (text.find(",nodes:") != std::string_view::npos)
      return fail(errc::invalid_input,
        fmt::format("--gpus {}: nodes:… stands alone; devices of nodes join those that are here by "
                    "themselves where they are of the same kind",
          excerpt(text)));
    return parse_devices(text, known_models);
  }
  const auto rest = text.substr(prefix.size());
  const auto parts = split(rest, ':');
  const auto refuse = [&](const std::string& why) {
    return fail(errc::invalid_input, fmt::format("--gpus {}: {}", excerpt(text), why));
  };
  if (parts.size() != 2 || rest.find(',') != std::string_view::npos)
    return refuse("write nodes:mock:MODEL, nodes:cuda:MODEL or nodes:sleep:TIME, alone and without "
                  "a number: nodes say how many they have");
  device_group out;
  if (parts[0] == "cuda") {
    out.what = device_group::kind::cuda;
    out.model = parts[1];
    if (std::find(known_models.begin(), known_models.end(), out.model) == known_models.end())
      return refuse(fmt::format("the peaks of a {} are not known here{}", excerpt(out.model),
        suggestion(out.model, known_models)));
  } else {
    auto group = parse_group(std::string(rest), known_models);
    if (!group)
      return refuse(group.error().what);
    out = std::move(*group);
  }
  out.count = 0;
  out.from_nodes = true;
  return std::vector<device_group>{out};
}

} // namespace gristmill
