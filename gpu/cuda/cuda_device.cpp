#include "gpu/cuda/cuda_device.hpp"

#include "gpu/cuda/activity_tracer.hpp"
#include "gpu/cuda/call_enqueuer.hpp"
#include "gpu/cuda/call_meter.hpp"
#include "gpu/cuda/call_timer.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/device_properties.hpp"
#include "gpu/cuda/driver_table.hpp"
#include "gpu/cuda/measuring_kernels.hpp"
#include "gpu/cuda/module_table.hpp"
#include "gpu/cuda/weather_station.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <unistd.h>

namespace gristmill {

namespace {

using cuda::address;
using cuda::driver_ptr;
using cuda::fault_word;
using cuda::status;
using cuda::success;

class real_device final : public cuda_device {
public:
  static result<std::unique_ptr<cuda_device>> open(int ordinal, const cuda_options& how);
  ~real_device() override;

  const device_properties& properties() const override { return properties_; }
  result<device_pointer> allocate(uint64_t bytes, std::string name) override {
    return memory_.allocate(bytes, std::move(name));
  }
  result<device_pointer> map_input(std::span<const std::byte> host, std::string name) override;
  result<device_pointer> map_repeated(const std::string& path, uint64_t pattern_bytes,
    uint64_t total_bytes, std::string name) override;
  result<void> free(device_pointer base) override { return memory_.free(base); }
  void reset() override;

  result<void> copy_in(device_pointer to, std::span<const std::byte> from) override;
  result<void> copy_out(std::span<std::byte> to, device_pointer from) override;
  result<void> copy(device_pointer to, device_pointer from, uint64_t bytes) override {
    return calls_.copy(to, from, bytes, stream_);
  }
  result<void> memset(device_pointer to, uint64_t bytes, uint32_t width, uint32_t value) override {
    return calls_.memset(to, bytes, width, value, stream_);
  }
  result<std::array<uint8_t, tensor_map_bytes>> encode_tensor_map(
    device_pointer base, const tensor_map_spec& spec) override;

  result<module_handle> load_module(std::string_view code) override { return modules_.load(code); }
  result<void> unload_module(module_handle module) override { return modules_.unload(module); }
  result<function_handle> find_function(module_handle module, std::string_view name) override {
    return modules_.find(module, name);
  }
  result<function_properties> describe(function_handle function) const override;
  result<uint32_t> occupancy(
    function_handle function, uint32_t threads, uint32_t dynamic_shared) const override;
  result<std::vector<uint8_t>> globals(module_handle module) const override;
  result<void> restore_globals(module_handle module, const std::vector<uint8_t>& bytes) override {
    return modules_.restore_globals(module, bytes);
  }

  result<launch_report> launch(function_handle function, const launch_shape& shape,
    std::span<const uint8_t> parameters) override {
    return calls_.launch(function, shape, parameters);
  }
  result<launch_report> synchronise() override;
  result<void> begin_timing() override;
  result<call_time> end_timing() override;

  result<void> enqueue_call(std::span<const call_step> steps) override {
    return calls_.enqueue(steps);
  }
  result<measured_call> measure(const call_script& call, const timing_protocol& how) override;
  result<uint64_t> digest(device_pointer from, uint64_t bytes, uint64_t seed) override;
  result<void> fill(device_pointer to, uint64_t bytes, uint64_t seed) override;
  result<range_difference> difference(device_pointer a, device_pointer b, uint64_t bytes) override;
  result<void> park(device_pointer base) override;
  result<device_pointer> move(device_pointer base, uint64_t draw) override;
  result<void> touch(device_pointer from, uint64_t bytes) override;
  result<uint32_t> canary_khz() override;
  result<std::string> assembled_by(module_handle module) const override {
    return modules_.assembled_by(module);
  }
  std::string uuid() const override { return uuid_; }

private:
  real_device(
    driver_ptr api, cuda::device_id number, cuda::device_memory memory, cuda::stream_handle stream)
    : api_(std::move(api)), device_(number), stream_(stream), memory_(std::move(memory)),
      modules_(api_), calls_(api_, stream_, modules_, memory_) {}

  const cuda::driver_table& t() const { return **api_; }
  result<void> checked(const std::string& during, status bad) const;
  result<void> idle() const {
    return checked("waiting for the device", t().stream_synchronise(stream_));
  }
  /// Loads our own kernels and the timer when they are first asked for.
  result<void> prepare_measuring();
  result<void> check_words(device_pointer at, uint64_t bytes) const;

  driver_ptr api_;
  cuda::device_id device_ = 0;
  cuda::stream_handle stream_ = nullptr;
  cuda::device_memory memory_;
  cuda::module_table modules_;
  cuda::call_enqueuer calls_;
  device_properties properties_;
  std::string uuid_;
  std::optional<cuda::event_pair> timing_;
  bool is_timing_ = false;
  std::unique_ptr<cuda::measuring_kernels> kernels_;
  std::unique_ptr<cuda::call_timer> timer_;
  /// One for the process; null where nothing is traced.
  cuda::activity_tracer* tracer_ = nullptr;
  std::string why_no_tracer_ = "the device was not opened for tracing";
  std::unique_ptr<cuda::weather_station> weather_;
};

result<void> real_device::checked(const std::string& during, status bad) const {
  if (bad != success)
    return cuda::failure_of(*api_, during, bad);
  return {};
}

result<std::unique_ptr<cuda_device>> real_device::open(int ordinal, const cuda_options& how) {
  auto api = cuda::driver::load();
  if (!api)
    return pass(api);
  auto found = cuda::find_device(**api, ordinal);
  if (!found)
    return pass(found);
  const auto& t = ***api;
  const auto id = found->id;
  auto refuse = [&](const char* what, status bad) {
    return fail(
      errc::io_failed, fmt::format("cuda:{}: {}: {}", ordinal, what, (*api)->describe(bad)));
  };

  // Both want to be there before the context: the tracer so as to miss nothing, the other to see
  // which process comes with it.
  std::unique_ptr<cuda::weather_station> weather;
  if (how.watch)
    if (auto made = cuda::weather_station::make(
          how.library_folders, found->uuid, found->pci, static_cast<uint32_t>(getpid())))
      weather = std::move(*made);
  result<cuda::activity_tracer*> tracer =
    fail(errc::unsupported, "the device was not opened for tracing");
  if (how.trace)
    tracer = cuda::activity_tracer::start(how.library_folders);

  cuda::context_handle context = nullptr;
  if (auto bad = t.primary_retain(&context, id); bad != success)
    return refuse("no context", bad);
  if (auto bad = t.set_current(context); bad != success) {
    t.primary_release(id);
    return refuse("no context", bad);
  }
  auto memory = cuda::device_memory::make(
    *api, id, how.plain_memory ? cuda::memory_kind::plain : cuda::memory_kind::guarded);
  cuda::stream_handle stream = nullptr;
  const auto bad = t.stream_create(&stream, cuda::stream_non_blocking);
  if (!memory || bad != success) {
    t.primary_release(id);
    return memory ? refuse("no stream", bad) : pass(memory);
  }
  std::unique_ptr<real_device> out(new real_device(*api, id, std::move(*memory), stream));
  if (weather)
    weather->has_context();
  out->weather_ = std::move(weather);
  if (tracer)
    out->tracer_ = *tracer;
  else
    out->why_no_tracer_ = tracer.error().what;
  if (out->tracer_ != nullptr)
    out->tracer_->pause();
  out->uuid_ = found->uuid;
  out->properties_ = cuda::read_device_properties(**api, id);
  return std::unique_ptr<cuda_device>(std::move(out));
}

real_device::~real_device() {
  weather_.reset();
  timer_.reset();
  kernels_.reset();
  timing_.reset();
  calls_.release();
  reset();
  if (stream_ != nullptr)
    t().stream_destroy(stream_);
  t().primary_release(device_);
}

void real_device::reset() {
  is_timing_ = false;
  (void)t().synchronise();
  modules_.unload_all();
  memory_.free_all();
}

result<device_pointer> real_device::map_input(std::span<const std::byte> host, std::string name) {
  auto base = memory_.allocate(host.size(), std::move(name));
  if (!base)
    return base;
  if (auto done = checked("an input", copy_in_and_wait(t(), *base, host.data(), host.size()));
      !done)
    return pass(done);
  if (auto done = memory_.make_read_only(*base); !done)
    return pass(done);
  return base;
}

result<device_pointer> real_device::map_repeated(
  const std::string& path, uint64_t pattern_bytes, uint64_t total_bytes, std::string name) {
  const uint64_t first = std::min(pattern_bytes, total_bytes);
  std::vector<char> pattern(first);
  std::ifstream in(path, std::ios::binary);
  if (first == 0 || !in.read(pattern.data(), static_cast<std::streamsize>(first)))
    return fail(errc::io_failed, fmt::format("{}: {} bytes cannot be read", path, first));
  auto base = memory_.allocate(total_bytes, std::move(name));
  if (!base)
    return base;
  if (auto done = checked("an input", copy_in_and_wait(t(), *base, pattern.data(), first)); !done)
    return pass(done);
  // Each copy doubles what is there; whole patterns only, so that they stay in step.
  for (uint64_t filled = first; filled < total_bytes;) {
    const uint64_t more = std::min(filled, total_bytes - filled);
    if (auto done = checked("an input", t().copy(*base + filled, *base, more, stream_)); !done)
      return pass(done);
    filled += more;
  }
  if (auto done = checked("an input", t().stream_synchronise(stream_)); !done)
    return pass(done);
  if (auto done = memory_.make_read_only(*base); !done)
    return pass(done);
  return base;
}

result<void> real_device::copy_in(device_pointer to, std::span<const std::byte> from) {
  if (auto fits = memory_.check(to, from.size()); !fits)
    return fits;
  if (auto done = checked("a copy", t().stream_synchronise(stream_)); !done)
    return done;
  return checked("a copy to the device", copy_in_and_wait(t(), to, from.data(), from.size()));
}

result<void> real_device::copy_out(std::span<std::byte> to, device_pointer from) {
  if (auto fits = memory_.check(from, to.size()); !fits)
    return fits;
  if (auto done = checked("a copy", t().stream_synchronise(stream_)); !done)
    return done;
  return checked("a copy from the device", t().copy_out(to.data(), from, to.size()));
}

result<std::array<uint8_t, tensor_map_bytes>> real_device::encode_tensor_map(
  device_pointer base, const tensor_map_spec& spec) {
  if (auto broken = broken_rule(spec, base); !broken.empty())
    return fail(errc::invalid_input, broken);
  if (auto fits = memory_.check(base, reach_of(spec)); !fits)
    return pass(fits);
  struct alignas(64) encoded_map {
    std::array<uint8_t, tensor_map_bytes> bytes{};
  } map;
  // The enumerations have the driver's order; there the swizzles count 0, 1, 2, 3 as well.
  auto bad = t().encode_tiled(&map, static_cast<int>(spec.type),
    static_cast<unsigned>(spec.dims.size()), reinterpret_cast<void*>(base), spec.dims.data(),
    spec.strides.data(), spec.box.data(), spec.element_strides.data(), 0,
    static_cast<int>(spec.swizzle), static_cast<int>(spec.l2), spec.oob_nan ? 1 : 0);
  if (bad != success)
    return fail(errc::invalid_input,
      "the driver refuses a tensor map that breaks none of our rules: " + api_->describe(bad));
  return map.bytes;
}

result<function_properties> real_device::describe(function_handle function) const {
  auto f = modules_.at(function);
  if (!f)
    return pass(f);
  return (*f)->properties;
}

result<uint32_t> real_device::occupancy(
  function_handle function, uint32_t threads, uint32_t dynamic_shared) const {
  auto f = modules_.at(function);
  if (!f)
    return pass(f);
  // The limit is raised first, as a launch would.
  if (dynamic_shared > 0)
    if (auto bad = t().function_set(
          (*f)->handle, cuda::function_dynamic_shared_max, static_cast<int>(dynamic_shared));
        bad != success)
      return 0U;
  int blocks = 0;
  if (auto done = checked("occupancy",
        t().occupancy(&blocks, (*f)->handle, static_cast<int>(threads), dynamic_shared));
      !done)
    return pass(done);
  return static_cast<uint32_t>(std::max(blocks, 0));
}

result<std::vector<uint8_t>> real_device::globals(module_handle module) const {
  if (auto done = idle(); !done)
    return pass(done);
  return modules_.globals(module);
}

result<launch_report> real_device::synchronise() {
  auto bad = t().stream_synchronise(stream_);
  if (bad == success)
    return launch_report{};
  if (auto word = fault_word(bad)) {
    launch_report report;
    report.fault = device_fault{*word,
      fmt::format("{} (buffers: {})", api_->describe(bad), memory_.describe_buffers()), 0, false};
    return report;
  }
  return cuda::failure_of(*api_, "waiting for the device", bad);
}

result<void> real_device::begin_timing() {
  if (!timing_) {
    auto made = cuda::event_pair::make(api_);
    if (!made)
      return pass(made);
    timing_.emplace(std::move(*made));
  }
  if (auto done = checked("timing", timing_->begin(stream_)); !done)
    return done;
  is_timing_ = true;
  return {};
}

result<call_time> real_device::end_timing() {
  if (!is_timing_)
    return fail(errc::refused, "there was nothing to time");
  is_timing_ = false;
  call_time out;
  auto bad = timing_->end(stream_);
  if (bad == success)
    bad = timing_->read(out.ns);
  if (bad != success)
    return cuda::failure_of(*api_, "timing", bad);
  return out;
}

result<void> real_device::prepare_measuring() {
  if (!kernels_) {
    auto made = cuda::measuring_kernels::make(api_, device_, stream_, properties_);
    if (!made)
      return pass(made);
    kernels_ = std::move(*made);
  }
  if (!timer_) {
    auto made = cuda::call_timer::make(api_, device_, stream_, properties_.l2_bytes, *kernels_);
    if (!made)
      return pass(made);
    timer_ = std::move(*made);
  }
  return {};
}

result<measured_call> real_device::measure(const call_script& call, const timing_protocol& how) {
  if (auto ready = prepare_measuring(); !ready)
    return pass(ready);
  cuda::meter_parts parts{calls_, *timer_, *kernels_, tracer_, why_no_tracer_, weather_.get()};
  auto out = cuda::call_meter(std::move(parts), call, how).run();
  if (!out && out.error().code == errc::device_fault)
    out.error().what += fmt::format(" (buffers: {})", memory_.describe_buffers());
  return out;
}

result<void> real_device::check_words(device_pointer at, uint64_t bytes) const {
  if (at % 8 != 0)
    return fail(errc::invalid_input, fmt::format("{:#x} is no multiple of 8", at));
  return bytes == 0 ? result<void>{} : memory_.check(at, bytes);
}

result<uint64_t> real_device::digest(device_pointer from, uint64_t bytes, uint64_t seed) {
  if (auto fits = check_words(from, bytes); !fits)
    return pass(fits);
  if (auto ready = prepare_measuring(); !ready)
    return pass(ready);
  return kernels_->digest(from, bytes, seed);
}

result<void> real_device::fill(device_pointer to, uint64_t bytes, uint64_t seed) {
  if (auto fits = check_words(to, bytes); !fits)
    return fits;
  if (auto ready = prepare_measuring(); !ready)
    return ready;
  return kernels_->fill(to, bytes, seed);
}

result<range_difference> real_device::difference(
  device_pointer a, device_pointer b, uint64_t bytes) {
  for (auto at : {a, b})
    if (auto fits = check_words(at, bytes); !fits)
      return pass(fits);
  if (auto ready = prepare_measuring(); !ready)
    return pass(ready);
  return kernels_->difference(a, b, bytes);
}

result<void> real_device::park(device_pointer base) {
  if (auto done = idle(); !done)
    return done;
  return memory_.park(base);
}

result<device_pointer> real_device::move(device_pointer base, uint64_t draw) {
  if (auto done = idle(); !done)
    return pass(done);
  return memory_.move(base, draw);
}

result<void> real_device::touch(device_pointer from, uint64_t bytes) {
  if (auto fits = check_words(from, bytes); !fits)
    return fits;
  if (auto ready = prepare_measuring(); !ready)
    return ready;
  return kernels_->touch(from, bytes);
}

result<uint32_t> real_device::canary_khz() {
  if (auto ready = prepare_measuring(); !ready)
    return pass(ready);
  return kernels_->canary();
}

} // namespace

result<std::unique_ptr<cuda_device>> open_cuda_device(int ordinal, const cuda_options& how) {
  return real_device::open(ordinal, how);
}

result<int> cuda_device_count() {
  auto api = cuda::driver::load();
  if (!api)
    return pass(api);
  return cuda::count_devices(**api);
}

} // namespace gristmill
