#include "gpu/children/runner_devices.hpp"

#include "gpu/cuda/cuda_facts.hpp"
#include "gpu/cuda/device_health.hpp"
#include "gpu/mock/mock_device.hpp"
#include "protocol/device_name.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// What the printf of kernels may add to this child's log, of which 64 KiB are kept.
constexpr uint64_t printed_bytes_max = uint64_t{32} << 10;

/// Writes what device code prints to our standard output, which is the log of this child.
class printer {
public:
  void operator()(const ptx::entry_info& entry, const ptx::launch&, const ptx::outcome& run) {
    if (run.printed.empty() || left_ == 0)
      return;
    const std::string_view text = std::string_view(run.printed).substr(0, left_);
    left_ -= text.size();
    fmt::print("printed by {}:\n{}{}", entry.name, text, text.ends_with('\n') ? "" : "\n");
    if (left_ == 0 || run.printed_left_out > 0)
      fmt::print("(more was printed, which is not kept)\n");
    std::fflush(stdout);
  }

private:
  uint64_t left_ = printed_bytes_max;
};

/// Before the driver starts. Devices are numbered as NVML numbers them, and a module is loaded when
/// it is asked for, so that no first launch of a kernel loads code within a timed call.
void set_driver_environment() {
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  // Assembled code is checked for what it is; nothing of an earlier process may take its place.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
}

result<opened_device> open_mock(const std::string& name, uint64_t instruction_limit) {
  auto groups = parse_devices(name, known_profiles());
  if (!groups)
    return pass(groups);
  if (groups->size() != 1 || groups->front().what != device_group::kind::mock)
    return fail(errc::unsupported,
      fmt::format("{}: the runner opens one mock (mock:h200) or one GPU (cuda:0)", name));
  auto model = profile(groups->front().model);
  if (!model)
    return pass(model);
  mock_device_config config;
  config.profile = std::move(*model);
  config.instruction_limit = instruction_limit;
  config.printed_bytes_max = printed_bytes_max;
  config.executed = printer{};
  opened_device out;
  out.owner = make_mock_device(std::move(config));
  out.use.any = out.owner.get();
  return out;
}

device_description describe(const std::string& name, const device_properties& p) {
  device_description out;
  out.device = name;
  out.model = p.model;
  out.title = p.title;
  out.arch = p.arch;
  out.sm_count = p.sm_count;
  out.shared_per_block = p.shared_per_block;
  out.shared_per_sm = p.shared_per_sm;
  out.l2_bytes = p.l2_bytes;
  out.memory_bytes = p.memory_bytes;
  out.threads_per_block = p.threads_per_block;
  out.origin = p.origin;
  out.time_label = p.time_label;
  return out;
}

result<device_description> describe_cuda(int ordinal) {
  auto facts = read_cuda_facts(ordinal);
  if (!facts)
    return pass(facts);
  auto gpu = open_cuda_device(ordinal, {.library_folders = {}, .trace = false, .watch = false});
  if (!gpu)
    return pass(gpu);
  auto out = describe(fmt::format("cuda:{}", ordinal), (*gpu)->properties());
  out.uuid = (*gpu)->uuid();
  out.cuda_version = static_cast<uint32_t>(facts->driver_api);
  out.pageable_memory_access = facts->pageable_memory_access;
  for (const auto& one : facts->libraries)
    out.libraries.push_back({one.name, one.found, one.detail});
  if (auto health = read_device_health(out.uuid))
    out.driver = health->driver;
  return out;
}

} // namespace

std::optional<int> cuda_ordinal(std::string_view name) {
  constexpr std::string_view prefix = "cuda:";
  if (!name.starts_with(prefix))
    return std::nullopt;
  name.remove_prefix(prefix.size());
  int ordinal = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
  if (name.empty() || error != std::errc{} || end != name.data() + name.size() || ordinal < 0)
    return std::nullopt;
  return ordinal;
}

result<opened_device> open_device(const std::string& name, const opening& how) {
  if (!name.starts_with("cuda:"))
    return open_mock(name, how.instruction_limit);
  const auto ordinal = cuda_ordinal(name);
  if (!ordinal)
    return fail(errc::invalid_input, fmt::format("{}: a GPU is cuda:N, with a number", name));
  set_driver_environment();
  auto gpu = open_cuda_device(*ordinal,
    {.library_folders = {},
      .trace = how.trace,
      .watch = how.measure,
      .plain_memory = how.sanitized});
  if (!gpu)
    return pass(gpu);
  opened_device out;
  out.use.real = gpu->get();
  out.use.any = gpu->get();
  out.owner = std::move(*gpu);
  return out;
}

result<std::vector<device_description>> describe_devices(const std::string& name) {
  if (!name.starts_with("cuda:")) {
    auto mock = open_mock(name, opening{}.instruction_limit);
    if (!mock)
      return pass(mock);
    return std::vector{describe(name, mock->use.any->properties())};
  }
  set_driver_environment();
  const bool all = name == "cuda:all";
  const auto one = cuda_ordinal(name);
  if (!all && !one)
    return fail(
      errc::invalid_input, fmt::format("{}: a GPU is cuda:N, with a number, or cuda:all", name));
  int count = 0;
  if (all) {
    auto counted = cuda_device_count();
    if (!counted)
      return pass(counted);
    if (*counted == 0)
      return fail(errc::not_found, "this machine has no GPU");
    count = *counted;
  }
  std::vector<device_description> out;
  for (int i = all ? 0 : *one; i < (all ? count : *one + 1); ++i) {
    auto described = describe_cuda(i);
    if (!described)
      return pass(described);
    out.push_back(std::move(*described));
  }
  return out;
}

result<health_report> look_at_device(const std::string& name) {
  const auto ordinal = cuda_ordinal(name);
  if (!ordinal)
    return fail(errc::unsupported,
      fmt::format("{}: only a GPU (cuda:0) can be looked at from outside", name));
  // The jail leaves no CUDA_VISIBLE_DEVICES, and `open_device` asks for the order of PCI: NVML's
  // numbers are CUDA's.
  auto seen = read_device_health(std::to_string(*ordinal));
  if (!seen)
    return pass(seen);
  health_report out;
  out.device = name;
  out.uuid = seen->uuid;
  for (const auto pid : seen->processes)
    out.processes.push_back({pid, 0});
  out.memory_used_bytes = seen->memory_used;
  out.memory_total_bytes = seen->memory_total;
  out.uncorrected_errors = seen->ecc_uncorrected + seen->remapped_uncorrected;
  out.temperature_c = seen->temperature_c;
  out.throttle_bits = seen->throttle_bits;
  return out;
}

} // namespace gristmill
