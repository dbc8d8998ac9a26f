#include "gpu/mock/profile.hpp"

#include "messages/embedded_file.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <variant>

namespace gristmill {

/// The files of `gpu/mock/profiles`.
std::span<const embedded_file> embedded_profiles();

namespace {

using number_member =
  std::variant<double gpu_profile::*, uint32_t gpu_profile::*, uint64_t gpu_profile::*>;

struct number_field {
  std::string_view name;
  number_member member;
  double most;
};

// Bounds far above any GPU: they catch a unit that was mistaken, not a bold design.
constexpr double rate = 1e3, bytes = 1e15, latency = 1e5;
const number_field fields[] = {
  {"sm_count", &gpu_profile::sm_count, 1e4},
  {"clock_ghz", &gpu_profile::clock_ghz, 20},
  {"dram_tb_per_s", &gpu_profile::dram_tb_per_s, rate},
  {"dram_write_tb_per_s", &gpu_profile::dram_write_tb_per_s, rate},
  {"dram_mix_cost", &gpu_profile::dram_mix_cost, 1},
  {"dram_walk_mix_cost", &gpu_profile::dram_walk_mix_cost, 1},
  {"dram_lone_cost", &gpu_profile::dram_lone_cost, 8},
  {"l2_tb_per_s", &gpu_profile::l2_tb_per_s, rate},
  {"l2_read_requests_per_ns", &gpu_profile::l2_read_requests_per_ns, 1e5},
  {"l2_write_requests_per_ns", &gpu_profile::l2_write_requests_per_ns, 1e5},
  {"atomic_ns", &gpu_profile::atomic_ns, rate},
  {"atomic_float_ns", &gpu_profile::atomic_float_ns, rate},
  {"atomics_per_ns", &gpu_profile::atomics_per_ns, 1e5},
  {"memory_bytes", &gpu_profile::memory_bytes, bytes},
  {"l2_bytes", &gpu_profile::l2_bytes, 1e12},
  {"l1_and_shared_bytes", &gpu_profile::l1_and_shared_bytes, 1e9},
  {"shared_per_sm", &gpu_profile::shared_per_sm, 1e9},
  {"shared_per_block", &gpu_profile::shared_per_block, 1e9},
  {"warps_per_sm", &gpu_profile::warps_per_sm, rate},
  {"blocks_per_sm", &gpu_profile::blocks_per_sm, rate},
  {"registers_per_sm", &gpu_profile::registers_per_sm, 1e7},
  {"issue_rate", &gpu_profile::issue_rate, rate},
  {"fp32_rate", &gpu_profile::fp32_rate, rate},
  {"integer_rate", &gpu_profile::integer_rate, rate},
  {"sfu_rate", &gpu_profile::sfu_rate, rate},
  {"fp64_rate", &gpu_profile::fp64_rate, rate},
  {"lsu_rate", &gpu_profile::lsu_rate, rate},
  {"tensor_flop_per_cycle", &gpu_profile::tensor_flop_per_cycle, 1e6},
  {"mma_efficiency", &gpu_profile::mma_efficiency, 1},
  {"wgmma_efficiency", &gpu_profile::wgmma_efficiency, 1},
  {"alu_latency", &gpu_profile::alu_latency, latency},
  {"half_latency", &gpu_profile::half_latency, latency},
  {"sfu_latency", &gpu_profile::sfu_latency, latency},
  {"convert_latency", &gpu_profile::convert_latency, latency},
  {"shared_latency", &gpu_profile::shared_latency, latency},
  {"l1_latency", &gpu_profile::l1_latency, latency},
  {"l2_latency", &gpu_profile::l2_latency, latency},
  {"dram_latency", &gpu_profile::dram_latency, latency},
  {"mma_latency", &gpu_profile::mma_latency, latency},
  {"barrier_latency", &gpu_profile::barrier_latency, latency},
  {"barrier_warp_latency", &gpu_profile::barrier_warp_latency, latency},
  {"block_start_ns", &gpu_profile::block_start_ns, rate},
  {"block_turnover_cycles", &gpu_profile::block_turnover_cycles, latency},
  {"launch_ns", &gpu_profile::launch_ns, 1e9},
  {"event_ns", &gpu_profile::event_ns, 1e9},
};

struct text_field {
  std::string_view name;
  std::string gpu_profile::*member;
};
const text_field texts[] = {
  {"name", &gpu_profile::name}, {"title", &gpu_profile::title}, {"arch", &gpu_profile::arch}};

std::vector<std::string> field_names() {
  std::vector<std::string> names{"schema", "errors"};
  for (const auto& field : texts)
    names.emplace_back(field.name);
  for (const auto& field : fields)
    names.emplace_back(field.name);
  return names;
}

result<void> read_number(
  gpu_profile& gpu, const number_field& field, const ordered_json& value, std::string_view file) {
  const auto wrong = [&](std::string_view why) {
    return fail(errc::invalid_input, fmt::format("{}: {}: {}", file, field.name, why));
  };
  if (!value.is_object() || !value.contains("value") || !value.contains("source")
    || value.size() != (value.contains("probe") ? 3U : 2U))
    return wrong("expected an object with `value` and `source`, and `probe` if it was measured");
  const ordered_json& source = value["source"];
  if (source != "datasheet" && source != "measured" && source != "assumed")
    return wrong("`source` must be datasheet, measured or assumed");
  if (value.contains("probe")) {
    if (source != "measured" || !value["probe"].is_string())
      return wrong("`probe` is a text, and goes with the source measured");
    gpu.probes[std::string(field.name)] = value["probe"].get<std::string>();
  }
  if (!value["value"].is_number())
    return wrong("`value` must be a number");
  const double number = value["value"].get<double>();
  // Also refuses a NaN.
  if (!(number > 0 && number <= field.most))
    return wrong(fmt::format("{} lies outside of (0, {}]", number, field.most));
  gpu.sources[std::string(field.name)] = source.get<std::string>();
  if (const auto* real = std::get_if<double gpu_profile::*>(&field.member)) {
    gpu.** real = number;
    return {};
  }
  if (number != std::floor(number))
    return wrong(fmt::format("{} is not an integer", number));
  if (const auto* narrow = std::get_if<uint32_t gpu_profile::*>(&field.member))
    gpu.** narrow = static_cast<uint32_t>(number);
  else
    gpu.*std::get<uint64_t gpu_profile::*>(field.member) = static_cast<uint64_t>(number);
  return {};
}

result<void> read_errors(gpu_profile& gpu, const ordered_json& errors, std::string_view file) {
  const auto wrong = [&](std::string_view why) {
    return fail(errc::invalid_input, fmt::format("{}: errors: {}", file, why));
  };
  if (!errors.is_array() || errors.size() > 32)
    return wrong("expected a list of at most 32 objects");
  for (const ordered_json& one : errors) {
    if (!one.is_object() || one.size() != 3 || !one.contains("class") || !one["class"].is_string()
      || !one.contains("factor") || !one["factor"].is_number() || !one.contains("kernels")
      || !one["kernels"].is_number_unsigned())
      return wrong("expected objects with `class`, `factor` and `kernels`");
    model_error error{
      one["class"].get<std::string>(), one["factor"].get<double>(), one["kernels"].get<uint32_t>()};
    if (!(error.factor >= 1 && error.factor <= 1e3) || error.kernels == 0)
      return wrong("a factor lies between 1 and 1000, and stands for a kernel at least");
    gpu.errors.push_back(std::move(error));
  }
  if (!gpu.errors.empty() && gpu.errors.front().kind != "all")
    return wrong("the first class is `all`");
  return {};
}

std::string percent_of(const model_error& error) {
  return fmt::format("{:.0f} %", (error.factor - 1) * 100);
}

} // namespace

std::string band_of(const gpu_profile& gpu) {
  if (gpu.errors.empty())
    return "uncalibrated";
  const model_error& all = gpu.errors.front();
  return fmt::format("off by {} on average ({} kernels)", percent_of(all), all.kernels);
}

std::string bands_of(const gpu_profile& gpu) {
  if (gpu.errors.size() < 2)
    return band_of(gpu);
  std::string classes;
  for (size_t i = 1; i < gpu.errors.size(); ++i)
    classes +=
      fmt::format("{}{} {}", i > 1 ? ", " : "", gpu.errors[i].kind, percent_of(gpu.errors[i]));
  const model_error& all = gpu.errors.front();
  return fmt::format(
    "off by {} on average ({} kernels; {})", percent_of(all), all.kernels, classes);
}

result<gpu_profile> parse_profile(std::string_view json, std::string_view file_name) {
  const auto document = parse_json(json, std::string(file_name), {.bytes = 65536, .depth = 8});
  if (!document)
    return pass(document);
  const auto wrong = [&](std::string why) {
    return fail(errc::invalid_input, fmt::format("{}: {}", file_name, why));
  };
  if (!document->is_object())
    return wrong("expected an object");
  const auto known = field_names();
  for (const auto& [key, value] : document->items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return wrong(fmt::format("unknown field {}{}", excerpt(key), suggestion(key, known)));
  for (const auto& name : known)
    if (!document->contains(name) && name != "errors")
      return wrong(fmt::format("{} is missing", name));
  if ((*document)["schema"] != "gristmill.profile/2")
    return wrong("schema must be \"gristmill.profile/2\"");

  gpu_profile gpu;
  for (const auto& field : texts) {
    const ordered_json& value = (*document)[std::string(field.name)];
    if (!value.is_string() || value.get<std::string>().empty())
      return wrong(fmt::format("{} must be a text", field.name));
    gpu.*field.member = value.get<std::string>();
  }
  for (const auto& field : fields)
    if (auto read = read_number(gpu, field, (*document)[std::string(field.name)], file_name); !read)
      return pass(read);
  if (document->contains("errors"))
    if (auto read = read_errors(gpu, (*document)["errors"], file_name); !read)
      return pass(read);
  return gpu;
}

std::vector<std::string> known_profiles() {
  std::vector<std::string> names;
  for (const embedded_file& file : embedded_profiles())
    names.emplace_back(file.path.substr(0, file.path.rfind('.')));
  std::sort(names.begin(), names.end());
  return names;
}

result<gpu_profile> profile(std::string_view name) {
  for (const embedded_file& file : embedded_profiles())
    if (file.path.substr(0, file.path.rfind('.')) == name)
      return parse_profile(file.content, file.path);
  return fail(errc::not_found,
    fmt::format("there is no GPU profile {}{}", excerpt(name), suggestion(name, known_profiles())));
}

device_properties properties_of(const gpu_profile& gpu) {
  device_properties seen;
  seen.model = gpu.name;
  seen.title = gpu.title + " (modelled)";
  seen.arch = gpu.arch;
  seen.sm_count = gpu.sm_count;
  seen.shared_per_block = gpu.shared_per_block;
  seen.shared_per_sm = gpu.shared_per_sm;
  seen.l2_bytes = gpu.l2_bytes;
  seen.memory_bytes = gpu.memory_bytes;
  seen.origin = time_origin::modelled;
  seen.time_label = fmt::format("MODELLED {}, {}, {}", clock_version, gpu.name, band_of(gpu));
  return seen;
}

} // namespace gristmill
