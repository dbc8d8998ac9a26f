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
  {"l2_tb_per_s", &gpu_profile::l2_tb_per_s, rate},
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
  {"convert_rate", &gpu_profile::convert_rate, rate},
  {"fp64_rate", &gpu_profile::fp64_rate, rate},
  {"lsu_rate", &gpu_profile::lsu_rate, rate},
  {"tensor_flop_per_cycle", &gpu_profile::tensor_flop_per_cycle, 1e6},
  {"mma_efficiency", &gpu_profile::mma_efficiency, 1},
  {"alu_latency", &gpu_profile::alu_latency, latency},
  {"sfu_latency", &gpu_profile::sfu_latency, latency},
  {"convert_latency", &gpu_profile::convert_latency, latency},
  {"shared_latency", &gpu_profile::shared_latency, latency},
  {"l1_latency", &gpu_profile::l1_latency, latency},
  {"l2_latency", &gpu_profile::l2_latency, latency},
  {"dram_latency", &gpu_profile::dram_latency, latency},
  {"mma_latency", &gpu_profile::mma_latency, latency},
  {"barrier_latency", &gpu_profile::barrier_latency, latency},
  {"launch_ns", &gpu_profile::launch_ns, 1e9},
};

struct text_field {
  std::string_view name;
  std::string gpu_profile::*member;
};
const text_field texts[] = {
  {"name", &gpu_profile::name}, {"title", &gpu_profile::title}, {"arch", &gpu_profile::arch}};

std::vector<std::string> field_names() {
  std::vector<std::string> names{"schema"};
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
  if (!value.is_object() || value.size() != 2 || !value.contains("value")
    || !value.contains("source"))
    return wrong("expected an object with `value` and `source`");
  const ordered_json& source = value["source"];
  if (source != "datasheet" && source != "measured" && source != "assumed")
    return wrong("`source` must be datasheet, measured or assumed");
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

} // namespace

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
    if (!document->contains(name))
      return wrong(fmt::format("{} is missing", name));
  if ((*document)["schema"] != "gristmill.profile/1")
    return wrong("schema must be \"gristmill.profile/1\"");

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
  seen.time_label = fmt::format("MODELLED {}, {}", clock_version, gpu.name);
  return seen;
}

} // namespace gristmill
