#include "cli/device_setup.hpp"

#include "cli/commands.hpp"
#include "cli/flag_choice.hpp"
#include "gpu/mock/profile.hpp"
#include "gpu/toolchain/compiler_process.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sstream>

namespace gristmill {

namespace {

/// Starting the driver on a host with eight devices takes a few seconds.
constexpr std::chrono::milliseconds describe_limit{60'000};
/// Every workload that fits a device's memory is checked as it is.
constexpr uint64_t check_elements_measured = uint64_t{1} << 31;
constexpr uint32_t rounds_measured = 10;
constexpr uint32_t samples_measured = 50;
/// No activity of a GPU known to us is reported as shorter: an empty kernel takes twice as long.
constexpr uint64_t shortest_kernel_ns = 500;

/// Peaks that the vendor's datasheets promise, where a profile has what kernels reach: a floor must
/// not be above what is possible.
struct nominal_rates {
  std::string_view model;
  double dram_tb_per_s;
  double clock_ghz;
};

constexpr std::array<nominal_rates, 6> nominal{{{"h200", 4.8, 1.98}, {"h100", 3.35, 1.98},
  {"b200", 8.0, 1.965}, {"a100", 2.039, 1.41}, {"l4", 0.3, 2.04}, {"rtx4090", 1.008, 2.52}}};

/// What a launch plan may ask: "sm_90a" is 90 there.
uint32_t arch_number(const std::string& arch) {
  return arch.size() < 4 ? 0 : static_cast<uint32_t>(std::strtoul(arch.c_str() + 3, nullptr, 10));
}

/// Of `device_properties` or a `device_description`.
template <class D>
device_facts facts_of(const D& device) {
  device_facts facts;
  facts.sm_count = device.sm_count;
  facts.smem_per_block = static_cast<uint32_t>(device.shared_per_block);
  facts.smem_per_sm = static_cast<uint32_t>(device.shared_per_sm);
  facts.l2_bytes = device.l2_bytes;
  facts.arch = arch_number(device.arch);
  return facts;
}

/// Rates of the floor at this bandwidth and clock.
void take_rates(run_context& context, const gpu_profile& gpu, double tb_per_s, double clock_ghz) {
  context.floor_bytes_per_second = static_cast<uint64_t>(std::llround(tb_per_s * 1e12));
  context.floor_flops_per_second =
    static_cast<uint64_t>(std::llround(2 * 32 * gpu.fp32_rate * gpu.sm_count * clock_ghz * 1e9));
  // Dense 16-bit rate of the profile; the others by the usual halving and doubling, fp4 at the rate
  // of fp8 and fp64 at twice the vector units', so that the floor is never above what is possible.
  const double half = gpu.tensor_flop_per_cycle / 2 * gpu.sm_count * clock_ghz * 1e9;
  const double fp64 = 2 * 32 * gpu.fp64_rate * gpu.sm_count * clock_ghz * 1e9;
  const std::array<double, mac_classes> macs{fp64, half / 2, half, 2 * half, 2 * half, 2 * half};
  for (size_t i = 0; i < mac_classes; ++i)
    context.floor_macs_per_second[i] = static_cast<uint64_t>(std::llround(macs[i]));
}

result<void> take_mock(run_setup& setup, const std::string& model) {
  auto gpu = profile(model);
  if (!gpu)
    return pass(gpu);
  setup.context.facts = facts_of(properties_of(*gpu));
  setup.context.arch = gpu->arch;
  setup.context.device_label = "mock:" + model;
  // A floor must not lie above what is possible.
  take_rates(
    setup.context, *gpu, std::max(gpu->dram_tb_per_s, gpu->dram_write_tb_per_s), gpu->clock_ghz);
  setup.time_note = fmt::format("MODELLED by {} for {}, {}", clock_version, model, bands_of(*gpu));
  setup.baseline_note =
    "T_b: our frozen plain kernels (plain/1, plain/2), not PyTorch; floor: bytes and flops "
    "at the model's rates";
  setup.t_sol_method = fmt::format(
    "the longest of bytes, flops and multiply-adds at the rates of the model of {}: the least "
    "that the traced operators must read, write and compute as one fused kernel, work that cannot "
    "be counted left out",
    model);
  setup.t_b_method = fmt::format(
    "time of our frozen plain kernels (plain/1, plain/2), not PyTorch; MODELLED by {}, {}",
    clock_version, band_of(*gpu));
  return {};
}

/// Rates of the floor of a real device.
result<void> take_peaks(run_setup& setup, const std::string& model, const std::string& title) {
  auto& context = setup.context;
  context.device_label = "cuda:" + model;
  context.measured = true;
  auto gpu = profile(model);
  const auto* rates = std::find_if(
    nominal.begin(), nominal.end(), [&](const nominal_rates& one) { return one.model == model; });
  if ((!gpu || rates == nominal.end()) && setup.settings.bounds.empty())
    return fail(errc::unsupported,
      fmt::format(
        "--gpus {}: the peaks of {} are not known here, so there is no floor to hold times "
        "against; give one with --bounds",
        setup.settings.gpus, title));
  if (gpu && rates != nominal.end()) {
    take_rates(context, *gpu, rates->dram_tb_per_s, rates->clock_ghz);
    context.write_bytes_per_second = static_cast<uint64_t>(std::llround(2e12 * gpu->l2_tb_per_s));
  }
  context.shortest_kernel_ns = shortest_kernel_ns;
  return {};
}

void tell_measured(run_setup& setup, const std::string& title, const std::string& driver) {
  setup.time_note = fmt::format("measured on {}{}", title, driver);
  setup.baseline_note = fmt::format(
    "T_b: our frozen plain kernels (plain/1, plain/2), not PyTorch; floor: bytes and flops at the "
    "peaks of the datasheet of {}",
    title);
  setup.t_sol_method = fmt::format(
    "the longest of bytes, flops and multiply-adds at the peaks of the datasheet of {}: the least "
    "that the traced operators must read, write and compute as one fused kernel, work that cannot "
    "be counted left out, and of the outputs what may stay in L2",
    title);
  setup.t_b_method = fmt::format(
    "time of our frozen plain kernels (plain/1, plain/2), not PyTorch; measured on {}", title);
}

std::string list_of(const std::vector<device_description>& there) {
  std::string out;
  for (const auto& one : there)
    out += fmt::format("{}{} ({}{}{})", out.empty() ? "" : ", ", one.device, one.title,
      one.uuid.empty() ? "" : ", ", one.uuid);
  return out;
}

bool is_named(const device_description& device, const std::string& which) {
  return which == "all" || device.device == "cuda:" + which
    || (which.starts_with("GPU-") && device.uuid.starts_with(which));
}

/// The devices that the groups name, each once, in their order.
result<std::vector<device_description>> chosen(
  const std::vector<device_group>& groups, const std::vector<device_description>& there) {
  std::vector<device_description> out;
  for (const auto& group : groups) {
    bool any = false;
    for (const auto& one : there) {
      if (!is_named(one, group.which))
        continue;
      any = true;
      const auto twice = std::any_of(out.begin(), out.end(),
        [&](const device_description& other) { return other.device == one.device; });
      if (twice)
        return fail(errc::invalid_input,
          fmt::format(
            "--gpus: {} is named twice; two executors cannot share a device", one.device));
      out.push_back(one);
    }
    if (!any)
      return fail(errc::not_found,
        fmt::format(
          "--gpus cuda:{}: there is no such device; there are: {}", group.which, list_of(there)));
  }
  for (const auto& one : out)
    if (one.model != out.front().model)
      return fail(errc::invalid_input,
        fmt::format(
          "--gpus: {} is {}, {} is {}; one model a run, because times of two kinds cannot "
          "be compared",
          out.front().device, out.front().title, one.device, one.title));
  return out;
}

result<void> take_real(run_setup& setup) {
  auto programs = program_folder();
  if (!programs)
    return pass(programs);
  auto there = describe_real_devices(*programs);
  if (!there)
    return fail(there.error().code, "--gpus " + setup.settings.gpus + ": " + there.error().what);
  auto devices = chosen(setup.devices, *there);
  if (!devices)
    return pass(devices);
  const auto& first = devices->front();
  setup.devices.clear();
  for (const auto& one : *devices) {
    device_group group;
    group.what = device_group::kind::cuda;
    group.model = one.model;
    group.which = one.device;
    setup.devices.push_back(group);
  }
  setup.gpu_count = static_cast<uint32_t>(devices->size());
  auto& context = setup.context;
  context.device_model = first.model;
  context.device_title = first.title;
  context.facts = facts_of(first);
  context.arch = first.arch;
  auto rated = take_peaks(setup, first.model, first.title);
  if (rated)
    tell_measured(setup, first.title, first.driver.empty() ? "" : ", driver " + first.driver);
  return rated;
}

/// Devices of nodes, none of which is here yet: what is known of their model. A node whose device
/// is of another architecture is left idle.
result<void> take_real_of_nodes(run_setup& setup, const std::string& model) {
  auto gpu = profile(model);
  if (!gpu)
    return pass(gpu);
  auto& context = setup.context;
  context.device_model = model;
  context.device_title = gpu->title;
  context.facts = facts_of(properties_of(*gpu));
  context.arch = gpu->arch;
  auto rated = take_peaks(setup, model, gpu->title);
  if (rated)
    tell_measured(setup, gpu->title, " of nodes");
  return rated;
}

} // namespace

result<std::vector<device_description>> describe_real_devices(
  const std::filesystem::path& programs) {
  // With an empty environment, as the children of a run have: the numbers must mean the same.
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr)
    spdlog::warn(
      "CUDA_VISIBLE_DEVICES is not heard: --gpus names devices by the driver's own order");
  const auto runner = (programs / "gristmill-runner").string();
  auto ran = run_compiler(runner, {"--describe", "cuda:all"}, "/", describe_limit);
  if (!ran)
    return pass(ran);
  if (ran->timed_out)
    return fail(errc::timed_out,
      fmt::format("the driver did not say within {} s which devices there are",
        describe_limit.count() / 1000));
  std::string lines;
  std::string words;
  std::istringstream all(ran->output);
  for (std::string line; std::getline(all, line);)
    (line.starts_with("{") ? lines : words) += line + "\n";
  if (ran->status != 0) {
    while (!words.empty() && words.back() == '\n')
      words.pop_back();
    return fail(errc::unsupported,
      words.empty() ? fmt::format("gristmill-runner --describe ended with {}", ran->status)
                    : words);
  }
  auto devices = descriptions_from_text(lines);
  if (devices && devices->empty())
    return fail(errc::not_found, "the driver is there, but no device");
  return devices;
}

result<void> load_devices(run_setup& setup) {
  auto devices = parse_run_devices(setup.settings.gpus, known_profiles());
  if (!devices)
    return pass(devices);
  setup.devices = *devices;
  if (devices->front().from_nodes && setup.settings.listen.empty())
    return fail(errc::invalid_input,
      "--gpus " + setup.settings.gpus
        + ": the devices are those of nodes that join, so the run "
          "needs --listen ADDR:PORT");
  const auto& first = setup.devices.front();
  const bool sleep = first.what == device_group::kind::sleep;
  for (const auto& group : setup.devices) {
    setup.gpu_count += group.count;
    if (group.what != first.what || group.model != first.model)
      return fail(errc::invalid_input,
        "--gpus " + setup.settings.gpus
          + ": one kind of device a run, because times of two kinds cannot be compared");
  }
  bool sleep_proposer = setup.settings.proposer == "sleep";
  if (sleep != sleep_proposer)
    return fail(errc::invalid_input,
      sleep ? "--gpus " + setup.settings.gpus
          + ": runs no kernel, so it goes with --proposer sleep only"
            : std::string("--proposer sleep: proposes no kernel, so it goes with --gpus "
                          "sleep:TIME:COUNT only"));
  setup.rehearsal = sleep;
  if (first.what == device_group::kind::cuda && first.from_nodes)
    return take_real_of_nodes(setup, first.model);
  if (first.what == device_group::kind::cuda)
    return take_real(setup);
  setup.context.device_model = sleep ? "sleep" : first.model;
  if (!sleep)
    return take_mock(setup, first.model);
  setup.time_note = "NOT A MEASUREMENT: no kernel runs";
  return {};
}

result<void> apply_measure_settings(run_setup& setup) {
  const auto& s = setup.settings;
  auto& context = setup.context;
  for (auto fine : {check_choice("--promote", s.promote, {"auto", "on", "off"}),
         check_choice("--flush", s.flush, {"official", "clean"})})
    if (!fine)
      return fine;
  const bool real = context.measured;
  if (!real && s.samples != 0)
    return fail(errc::invalid_input,
      "--samples: a modelled time has one sample; samples are taken on real devices only");
  if (setup.rehearsal && s.promote == "on")
    return fail(errc::invalid_input, "--promote on: a rehearsal runs no kernel");
  context.rounds = s.rounds != 0 ? s.rounds : real ? rounds_measured : 1;
  if (real)
    context.check_elements_max = check_elements_measured;
  if (s.check_elements)
    context.check_elements_max = *s.check_elements;
  context.promote = s.promote == "on" || (s.promote == "auto" && real);
  context.samples = !real ? 1 : s.samples != 0 ? s.samples : samples_measured;
  context.flush = s.flush;
  if (real)
    setup.time_note +=
      fmt::format(", {} samples, L2 before each call: {}", context.samples, context.flush);
  return {};
}

} // namespace gristmill
