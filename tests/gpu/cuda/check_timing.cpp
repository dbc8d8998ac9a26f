#include "gpu/cuda/device_health.hpp"
#include "tests/gpu/cuda/check_support.hpp"

#include <algorithm>
#include <cmath>
#include <span>

// How far times can be relied on: tracer against events against repeats, again and again, with
// buffers that move, and with somebody else on the device.

namespace gristmill::device_check {

namespace {

struct subject {
  std::string name;
  call_step step;
  /// The flush that leaves L2 as the kernel itself does: dirty lines behind one that writes.
  flush_kind flush = flush_kind::official;
};

struct bench {
  std::unique_ptr<cuda_device> gpu;
  device_pointer a = 0, b = 0, c = 0;
  std::vector<subject> subjects;
};

constexpr uint64_t elements = uint64_t{1} << 26, room = 2 * elements;

bench set_up(bool trace) {
  bench all;
  all.gpu = must(open_cuda_device(0, options(trace)), "open");
  auto& gpu = *all.gpu;
  for (auto* to : {&all.a, &all.b, &all.c}) {
    *to = must(gpu.allocate(room * 4, "buffer"), "allocate");
    must(gpu.memset(*to, room * 4, 4, 0x3f800000), "memset");
  }
  auto module = must(gpu.load_module(kernels_ptx), "load_module");
  auto find = [&](const char* name) { return must(gpu.find_function(module, name), name); };
  const auto blocks = static_cast<uint32_t>(elements / 256);
  all.subjects = {
    {"scale 2^26 floats",
      launch_step(find("scale"), blocks, 256,
        parameters(all.a, all.b, static_cast<uint32_t>(elements), 1.5F))},
    {"add 2^26 floats", launch_step(find("add"), blocks, 256, parameters(all.a, all.b, all.c))},
    {"store 2^27 floats", launch_step(find("store"), blocks / 2, 256, parameters(all.c, 2.0F))},
    {"load 2^27 floats", launch_step(find("load"), blocks / 2, 256, parameters(all.a, all.c)),
      flush_kind::clean},
    {"work, 1,056 blocks",
      launch_step(find("work"), 1056, 256, parameters(all.c, uint32_t{20'000})), flush_kind::clean},
  };
  return all;
}

/// Where a buffer begins that has `shift_room` bytes more than it needs: a multiple of 256.
device_pointer shifted(device_pointer base, uint64_t draw) {
  return base + draw % (shift_room / 256 + 1) * 256;
}

/// Time of one of many repeats: 2N of them less N of them.
double by_repeats(cuda_device& gpu, const call_step& step, uint32_t n) {
  std::array<double, 2> taken{};
  for (const uint32_t times : {n, 2 * n}) {
    std::vector<call_step> steps(times, step);
    for (uint32_t i = 1; i < times; ++i)
      steps[i].after = {i - 1};
    timing_protocol how;
    how.warm_up = std::chrono::milliseconds{100};
    how.samples = 10;
    how.trace = false;
    taken[times == n ? 0 : 1] = median(measure(gpu, steps, how).samples_ns);
  }
  return (taken[1] - taken[0]) / n;
}

} // namespace

void check_agreement() {
  auto all = set_up(true);
  auto& gpu = *all.gpu;
  fmt::print("\n      {:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>6}\n", "kernel, us",
    "tracer", "overlap", "events", "span", "repeats", "scatter", "tr/rep", "ov/rep", "again");
  bool tracer_agrees = true, events_agree = true, traced = true, long_enough = true;
  for (const auto& one : all.subjects) {
    timing_protocol how;
    how.flush = one.flush;
    const auto out = measure(gpu, {one.step}, how);
    auto overlapping = how;
    overlapping.trace_overlapping = true;
    const double overlap = median(measure(gpu, {one.step}, overlapping).samples_ns);
    const double repeats = by_repeats(gpu, one.step, 40);
    const double tracer = median(out.samples_ns), events = median(out.record.device_ns);
    fmt::print("      {:<20} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>7.2f}% {:>7.2f}% "
               "{:>7.2f}% {:>6}\n",
      one.name, tracer / 1e3, overlap / 1e3, events / 1e3, median(out.record.span_ns) / 1e3,
      repeats / 1e3, 100 * scatter(out.samples_ns) / tracer, 100 * (tracer / repeats - 1),
      100 * (overlap / repeats - 1), out.record.taken_again);
    traced = traced && out.record.method == "cupti";
    if (!out.record.fallback.empty())
      fmt::print("      fallback: {}\n", out.record.fallback);
    for (const auto& found : out.findings)
      fmt::print("      finding {}: {}\n", found.rule, found.detail);
    long_enough = long_enough && repeats > 100e3;
    tracer_agrees = tracer_agrees && std::abs(tracer / repeats - 1) < 0.02;
    events_agree = events_agree && std::abs(events / repeats - 1) < 0.03;
    if (&one == &all.subjects.front()) {
      const auto& w = out.record.weather;
      fmt::print("      weather: {} readings, SM {} to {} MHz, memory {} to {} MHz, {} W, {} C, "
                 "throttle {:#x}, {} foreign; canary {} and {} kHz, stable {}; {} warm-up calls\n",
        w.readings, w.sm_mhz_min, w.sm_mhz_max, w.memory_mhz_min, w.memory_mhz_max,
        w.power_mw_max / 1000, w.temperature_c_max, w.throttle_bits, w.foreign_processes,
        out.record.canary_khz_before, out.record.canary_khz_after, out.canary_stable,
        out.record.warm_up_calls);
      check("NVML is read while samples are taken", w.readings > 0 && w.sm_mhz_max > 0);
      check("the canary is stable within 1 %", out.canary_stable);
    }
  }
  // What tracing costs short kernels and chains of them; nothing is promised here.
  auto small = all.subjects[0].step;
  small.shape.grid[0] = 4096;
  small.parameters = parameters(all.a, all.b, uint32_t{1} << 20, 1.5F);
  for (const uint32_t times : {1U, 8U}) {
    std::vector<call_step> steps(times, small);
    for (uint32_t i = 1; i < times; ++i)
      steps[i].after = {i - 1};
    auto how = timing_protocol{};
    const auto serial = measure(gpu, steps, how);
    how.trace_overlapping = true;
    const auto overlapping = measure(gpu, steps, how);
    fmt::print(
      "      {} of scale 2^20 floats: {:.2f} us traced, {:.2f} us traced as if overlapping, "
      "{:.2f} us by events, {:.2f} us span\n",
      times, median(serial.samples_ns) / 1e3, median(overlapping.samples_ns) / 1e3,
      median(serial.record.device_ns) / 1e3, median(serial.record.span_ns) / 1e3);
  }
  check("all five are traced", traced);
  check("all five take 100 us or more", long_enough);
  check("tracer and repeats agree within 2 % on all five", tracer_agrees);
  check("events and repeats agree within 3 % on all five", events_agree);

  std::vector<double> medians;
  for (int i = 0; i < 20; ++i) {
    timing_protocol how;
    how.warm_up = std::chrono::milliseconds{100};
    how.samples = 20;
    medians.push_back(median(measure(gpu, {all.subjects[0].step}, how).samples_ns));
  }
  auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  check("twenty repeats of one kernel spread under 2 %", *most / *least < 1.02,
    fmt::format(
      "{:.2f} to {:.2f} us, {:.2f} %", *least / 1e3, *most / 1e3, 100 * (*most / *least - 1)));
}

void check_moving() {
  auto gpu = must(open_cuda_device(0, options(true)), "open");
  auto module = must(gpu->load_module(kernels_ptx), "load_module");
  auto scale = must(gpu->find_function(module, "scale"), "find_function");
  fmt::print(
    "\n      {:<34} {:>14} {:>14}\n", "scale, us, flush official", "2^20 floats", "2^26 floats");
  enum class way { fixed, shifted_copy, mapped, mapped_touched };
  std::array<std::array<double, 2>, 4> table{};
  for (size_t size = 0; size < 2; ++size) {
    const uint64_t n = size == 0 ? uint64_t{1} << 20 : elements;
    const uint64_t bytes = n * 4;
    auto pristine = must(gpu->allocate(bytes, "pristine"), "allocate");
    must(gpu->fill(pristine, bytes, 1), "fill");
    auto in = must(gpu->allocate(bytes + shift_room, "in"), "allocate");
    auto out = must(gpu->allocate(bytes + shift_room, "out"), "allocate");
    for (size_t w = 0; w < table.size(); ++w) {
      std::vector<call_step> steps(1);
      call_script script;
      script.prepare = [&](uint32_t number, call_use) -> result<std::span<const call_step>> {
        auto from = in, to = out;
        const uint64_t draw = number * 0x9E3779B97F4A7C15ULL >> 20;
        if (static_cast<way>(w) == way::shifted_copy) {
          from = shifted(in, draw);
          to = shifted(out, draw >> 10);
        } else if (static_cast<way>(w) != way::fixed) {
          in = must(gpu->move(in, draw), "move");
          out = must(gpu->move(out, draw >> 10), "move");
          from = in, to = out;
        }
        if (static_cast<way>(w) == way::mapped_touched) {
          must(gpu->touch(from, bytes), "touch");
          must(gpu->touch(to, bytes), "touch");
        } else if (static_cast<way>(w) == way::shifted_copy) {
          must(gpu->copy(from, pristine, bytes), "copy");
          must(gpu->fill(to, bytes, number), "fill");
        }
        steps[0] = launch_step(scale, static_cast<uint32_t>(n / 256), 256,
          parameters(from, to, static_cast<uint32_t>(n), 1.5F));
        return std::span<const call_step>(steps);
      };
      timing_protocol how;
      how.samples = 30;
      table[w][size] = median(must(gpu->measure(script, how), "measure").samples_ns) / 1e3;
    }
    for (auto one : {pristine, in, out})
      must(gpu->free(one), "free");
  }
  const std::array<const char*, 4> names{"at one place", "shifted, copied, poisoned",
    "mapped anew for each call", "mapped anew and touched"};
  for (size_t w = 0; w < table.size(); ++w)
    fmt::print("      {:<34} {:>14.2f} {:>14.2f}\n", names[w], table[w][0], table[w][1]);
  check("buffers that are shifted within their range cost the large call less than 2 %",
    std::abs(table[1][1] / table[0][1] - 1) < 0.02);
  check("and the small one less than 10 %", std::abs(table[1][0] / table[0][0] - 1) < 0.10);
}

void check_foreign() {
  auto all = set_up(true);
  timing_protocol how;
  how.warm_up = std::chrono::milliseconds{50};
  const auto out = measure(*all.gpu, {all.subjects[0].step}, how);
  const auto& weather = out.record.weather;
  const auto health =
    must(read_device_health(all.gpu->uuid(), options(false).library_folders), "read_device_health");
  fmt::print("      NVML shows {} processes on {} ({}), {} MiB used of {}; ECC {}/{}, rows {}/{}\n",
    health.processes.size(), health.uuid, health.pci, health.memory_used >> 20,
    health.memory_total >> 20, health.ecc_corrected, health.ecc_uncorrected,
    health.remapped_corrected, health.remapped_uncorrected);
  for (const auto& what : health.not_told)
    fmt::print("      NVML does not tell: {}\n", what);
  check("NVML and CUDA speak of the same device", health.uuid == all.gpu->uuid(), health.uuid);
  fmt::print("foreign {}\n", weather.foreign_processes);
}

void measure_once() {
  auto all = set_up(true);
  const auto out = measure(*all.gpu, {all.subjects[0].step}, {});
  fmt::print("median_ns {}\n", static_cast<uint64_t>(median(out.samples_ns)));
}

void fault_illegal(bool write_input) {
  auto gpu = must(open_cuda_device(0, options(true)), "open");
  std::vector<float> values(1000, 1.0F);
  const auto bytes = std::as_bytes(std::span(values));
  auto in = must(gpu->map_input(bytes, "in"), "map_input");
  auto out = must(gpu->allocate(bytes.size(), "out"), "allocate");
  auto module = must(gpu->load_module(kernels_ptx), "load_module");
  auto scale = must(gpu->find_function(module, "scale"), "find_function");
  // More elements than there is room for; or the input as the output.
  const uint32_t n = write_input ? 1000 : 1 << 22;
  const std::vector<call_step> steps{
    launch_step(scale, (n + 255) / 256, 256, parameters(in, write_input ? in : out, n, 2.0F))};
  call_script script;
  script.prepare = [&](uint32_t, call_use) -> result<std::span<const call_step>> {
    return std::span<const call_step>(steps);
  };
  auto done = gpu->measure(script, {});
  fmt::print("said {}\n",
    done                                        ? "nothing"
      : done.error().code == errc::device_fault ? "fault: " + done.error().what
                                                : "other: " + done.error().what);
}

void fault_endless() {
  auto gpu = must(open_cuda_device(0, options(true)), "open");
  auto flag = must(gpu->allocate(256, "flag"), "allocate");
  must(gpu->memset(flag, 256, 4, 0), "memset");
  auto module = must(gpu->load_module(kernels_ptx), "load_module");
  auto spin = must(gpu->find_function(module, "spin"), "find_function");
  fmt::print("begun\n");
  std::fflush(stdout);
  (void)gpu->launch(spin, {}, parameters(flag));
  (void)gpu->synchronise();
  fmt::print("ended\n");
}

void fault_memory() {
  auto gpu = must(open_cuda_device(0, options(false)), "open");
  auto too_much = gpu->allocate(gpu->properties().memory_bytes + (uint64_t{1} << 30), "too much");
  std::string said = too_much ? "given" : to_string(too_much.error().code);
  // And piece by piece, until nothing is left.
  uint64_t pieces = 0;
  while (pieces < 4096 && gpu->allocate(uint64_t{1} << 30, "piece"))
    ++pieces;
  fmt::print("said {} after {} GiB\n", said, pieces);
}

void work_for_ever() {
  auto all = set_up(true);
  fmt::print("begun\n");
  std::fflush(stdout);
  while (true)
    (void)measure(*all.gpu, {all.subjects[0].step}, {});
}

} // namespace gristmill::device_check
