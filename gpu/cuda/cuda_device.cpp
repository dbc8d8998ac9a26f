#include "gpu/cuda/cuda_device.hpp"

#include "gpu/cuda/call_timer.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/driver_table.hpp"
#include "gpu/cuda/module_globals.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <map>
#include <optional>

namespace gristmill {

std::string to_string(flush_kind kind) {
  switch (kind) {
  case flush_kind::official:
    return "official";
  case flush_kind::clean:
    return "clean";
  }
  return "unknown";
}

namespace {

using cuda::address;
using cuda::driver_ptr;
using cuda::status;
using cuda::success;

/// What a kernel did wrong, where the driver tells it; nothing for every other error.
std::optional<std::string> fault_word(status error) {
  switch (error) {
  case cuda::error_illegal_address:
    return "illegal address";
  case cuda::error_misaligned_address:
    return "misaligned";
  case cuda::error_assert:
    return "assertion";
  case cuda::error_illegal_instruction:
    return "trap";
  case cuda::error_hardware_stack:
    return "stack";
  case cuda::error_invalid_address_space:
    return "address space";
  case cuda::error_invalid_pc:
    return "program counter";
  case cuda::error_launch_failed:
    return "launch failed";
  default:
    return std::nullopt;
  }
}

/// "NVIDIA H200" -> "h200".
std::string model_of(std::string_view title) {
  std::string out;
  for (char c : title.substr(title.rfind(' ') == title.npos ? 0 : title.rfind(' ') + 1))
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct loaded_function {
  cuda::function_handle handle = nullptr;
  function_properties properties;
};

struct loaded_module {
  cuda::module_handle handle = nullptr;
  std::vector<std::string> globals;
  std::vector<loaded_function> functions;
};

class real_device final : public cuda_device {
public:
  static result<std::unique_ptr<cuda_device>> open(int ordinal);
  ~real_device() override;

  const device_properties& properties() const override { return properties_; }
  result<device_pointer> allocate(uint64_t bytes, std::string name) override;
  result<device_pointer> map_input(std::span<const std::byte> host, std::string name) override;
  result<device_pointer> map_repeated(const std::string& path, uint64_t pattern_bytes,
    uint64_t total_bytes, std::string name) override;
  result<void> free(device_pointer base) override { return memory_.free(base); }
  void reset() override;

  result<void> copy_in(device_pointer to, std::span<const std::byte> from) override;
  result<void> copy_out(std::span<std::byte> to, device_pointer from) override;
  result<void> copy(device_pointer to, device_pointer from, uint64_t bytes) override;
  result<void> memset(device_pointer to, uint64_t bytes, uint32_t width, uint32_t value) override;
  result<std::array<uint8_t, tensor_map_bytes>> encode_tensor_map(
    device_pointer base, const tensor_map_spec& spec) override;

  result<module_handle> load_module(std::string_view code) override;
  result<void> unload_module(module_handle module) override;
  result<function_handle> find_function(module_handle module, std::string_view name) override;
  result<function_properties> describe(function_handle function) const override;
  result<uint32_t> occupancy(
    function_handle function, uint32_t threads, uint32_t dynamic_shared) const override;
  result<std::vector<uint8_t>> globals(module_handle module) const override;
  result<void> restore_globals(module_handle module, const std::vector<uint8_t>& bytes) override;

  result<launch_report> launch(function_handle function, const launch_shape& shape,
    std::span<const uint8_t> parameters) override;
  result<launch_report> synchronise() override;
  result<void> begin_timing() override;
  result<call_time> end_timing() override;
  result<call_samples> time_calls(const enqueue& call, const timing_protocol& how) override;

private:
  real_device(driver_ptr api, cuda::device_id number, cuda::device_memory memory)
    : api_(std::move(api)), device_(number), memory_(std::move(memory)) {}

  const cuda::driver_table& t() const { return **api_; }
  /// A driver error as a failure: `device_fault` for what a kernel did, else of ours.
  failure said(const std::string& during, status bad) const;
  result<void> checked(const std::string& during, status bad) const;
  result<const loaded_function*> at(function_handle function) const;
  result<const loaded_module*> at(module_handle module) const;
  result<function_properties> read_properties(
    cuda::function_handle function, std::string_view name) const;
  template <class Visit>
  result<void> each_global(const loaded_module& module, Visit visit) const;

  driver_ptr api_;
  cuda::device_id device_ = 0;
  bool retained_ = false;
  cuda::stream_handle stream_ = nullptr;
  cuda::device_memory memory_;
  device_properties properties_;
  uint32_t next_module_ = 1;
  std::map<uint32_t, loaded_module> modules_;
  std::optional<cuda::event_pair> timing_;
  bool is_timing_ = false;
  std::unique_ptr<cuda::call_timer> timer_;
};

failure real_device::said(const std::string& during, status bad) const {
  return {
    fault_word(bad) ? errc::device_fault : errc::io_failed, during + ": " + api_->describe(bad)};
}

result<void> real_device::checked(const std::string& during, status bad) const {
  if (bad != success)
    return tl::unexpected<failure>(said(during, bad));
  return {};
}

result<std::unique_ptr<cuda_device>> real_device::open(int ordinal) {
  auto api = cuda::driver::load();
  if (!api)
    return pass(api);
  const auto& t = ***api;
  int count = 0;
  if (auto bad = t.device_count(&count); bad != success)
    return fail(errc::unsupported, "the driver counts no devices: " + (*api)->describe(bad));
  if (ordinal < 0 || ordinal >= count)
    return fail(errc::not_found,
      fmt::format("there is no device cuda:{}; this machine has {}", ordinal, count));
  cuda::device_id id = 0;
  cuda::context_handle context = nullptr;
  auto bad = t.device_get(&id, ordinal);
  if (bad == success)
    bad = t.primary_retain(&context, id);
  if (bad == success)
    bad = t.set_current(context);
  if (bad != success)
    return fail(
      errc::io_failed, fmt::format("cuda:{}: no context: {}", ordinal, (*api)->describe(bad)));
  auto memory = cuda::device_memory::make(*api, id);
  if (!memory)
    return pass(memory);
  std::unique_ptr<real_device> out(new real_device(*api, id, std::move(*memory)));
  out->retained_ = true;
  if (auto made =
        out->checked("a stream", t.stream_create(&out->stream_, cuda::stream_non_blocking));
      !made)
    return pass(made);
  auto attribute = [&](int which) {
    int value = 0;
    if (t.device_attribute(&value, which, id) != success)
      value = 0;
    return static_cast<uint32_t>(std::max(value, 0));
  };
  auto& p = out->properties_;
  std::array<char, 256> title{};
  if (t.device_name(title.data(), title.size() - 1, id) == success)
    p.title = title.data();
  p.model = model_of(p.title);
  auto major = attribute(cuda::compute_capability_major);
  p.arch = fmt::format(
    "sm_{}{}{}", major, attribute(cuda::compute_capability_minor), major >= 9 ? "a" : "");
  p.sm_count = attribute(cuda::multiprocessor_count);
  p.shared_per_block = attribute(cuda::max_shared_per_block_optin);
  p.shared_per_sm = attribute(cuda::max_shared_per_multiprocessor);
  p.l2_bytes = attribute(cuda::l2_cache_size);
  size_t bytes = 0;
  if (t.device_memory(&bytes, id) == success)
    p.memory_bytes = bytes;
  p.threads_per_block = attribute(cuda::max_threads_per_block);
  p.origin = time_origin::measured;
  p.time_label = fmt::format("measured on {}, driver {}.{}, events", p.title,
    (*api)->version() / 1000, (*api)->version() % 1000 / 10);
  return std::unique_ptr<cuda_device>(std::move(out));
}

real_device::~real_device() {
  timer_.reset();
  timing_.reset();
  reset();
  if (stream_ != nullptr)
    t().stream_destroy(stream_);
  if (retained_)
    t().primary_release(device_);
}

void real_device::reset() {
  is_timing_ = false;
  (void)t().synchronise();
  for (const auto& [id, m] : modules_)
    t().module_unload(m.handle);
  modules_.clear();
  memory_.free_all();
}

result<device_pointer> real_device::allocate(uint64_t bytes, std::string name) {
  return memory_.allocate(bytes, std::move(name));
}

result<device_pointer> real_device::map_input(std::span<const std::byte> host, std::string name) {
  auto base = memory_.allocate(host.size(), std::move(name));
  if (!base)
    return base;
  if (auto done = checked("an input", t().copy_in(*base, host.data(), host.size())); !done)
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
  if (auto done = checked("an input", t().copy_in(*base, pattern.data(), first)); !done)
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
  return checked("a copy to the device", t().copy_in(to, from.data(), from.size()));
}

result<void> real_device::copy_out(std::span<std::byte> to, device_pointer from) {
  if (auto fits = memory_.check(from, to.size()); !fits)
    return fits;
  if (auto done = checked("a copy", t().stream_synchronise(stream_)); !done)
    return done;
  return checked("a copy from the device", t().copy_out(to.data(), from, to.size()));
}

result<void> real_device::copy(device_pointer to, device_pointer from, uint64_t bytes) {
  for (auto at : {to, from})
    if (auto fits = memory_.check(at, bytes); !fits)
      return fits;
  return checked("a copy on the device", t().copy(to, from, bytes, stream_));
}

result<void> real_device::memset(
  device_pointer to, uint64_t bytes, uint32_t width, uint32_t value) {
  if (auto fits = memory_.check(to, bytes); !fits)
    return fits;
  if ((width != 1 && width != 2 && width != 4) || bytes % width != 0 || to % width != 0)
    return fail(errc::invalid_input,
      fmt::format("a memset of {} bytes at {:#x} in units of {}", bytes, to, width));
  const size_t count = bytes / width;
  switch (width) {
  case 1:
    return checked("a memset", t().memset8(to, static_cast<uint8_t>(value), count, stream_));
  case 2:
    return checked("a memset", t().memset16(to, static_cast<uint16_t>(value), count, stream_));
  default:
    return checked("a memset", t().memset32(to, value, count, stream_));
  }
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

result<module_handle> real_device::load_module(std::string_view code) {
  std::array<char, 4096> log{};
  std::array<int, 2> names{cuda::jit_error_buffer, cuda::jit_error_bytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  const std::string image(code); // PTX has to end with a zero.
  loaded_module m;
  if (auto bad = t().module_load(
        &m.handle, image.c_str(), static_cast<unsigned>(names.size()), names.data(), values.data());
      bad != success) {
    log.back() = '\0';
    return fail(errc::invalid_input,
      fmt::format("the driver does not load the module: {}{}{}", api_->describe(bad),
        log[0] != '\0' ? ": " : "", log.data()));
  }
  m.globals = cuda::writable_globals(code);
  const auto id = next_module_++;
  modules_.emplace(id, std::move(m));
  return module_handle{id};
}

result<const loaded_module*> real_device::at(module_handle module) const {
  auto found = modules_.find(module.id);
  if (found == modules_.end())
    return fail(errc::invalid_input, fmt::format("no module {} is loaded", module.id));
  return &found->second;
}

result<const loaded_function*> real_device::at(function_handle function) const {
  auto in = at(module_handle{function.module});
  if (!in)
    return pass(in);
  if (function.index >= (*in)->functions.size())
    return fail(errc::invalid_input,
      fmt::format("module {} has no function number {}", function.module, function.index));
  return &(*in)->functions[function.index];
}

result<void> real_device::unload_module(module_handle module) {
  auto found = at(module);
  if (!found)
    return pass(found);
  auto done = checked("a module's end", t().module_unload((*found)->handle));
  modules_.erase(module.id);
  return done;
}

result<function_properties> real_device::read_properties(
  cuda::function_handle function, std::string_view name) const {
  function_properties p;
  p.name = name;
  auto read = [&](int which, uint32_t& to) {
    int value = 0;
    auto bad = t().function_get(&value, which, function);
    to = static_cast<uint32_t>(std::max(value, 0));
    return bad;
  };
  for (auto [which, to] : {std::pair{cuda::function_max_threads, &p.max_threads},
         {cuda::function_static_shared, &p.static_shared},
         {cuda::function_local_bytes, &p.local_bytes}, {cuda::function_registers, &p.registers}})
    if (auto bad = read(which, *to); bad != success)
      return tl::unexpected<failure>(said("properties of " + p.name, bad));
  for (size_t i = 0;; ++i) {
    size_t offset = 0, bytes = 0;
    // The driver tells the end of the list by an error.
    if (t().function_parameter(function, i, &offset, &bytes) != success)
      break;
    p.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
    p.parameter_bytes = static_cast<uint32_t>(offset + bytes);
  }
  return p;
}

result<function_handle> real_device::find_function(module_handle module, std::string_view name) {
  auto in = at(module);
  if (!in)
    return pass(in);
  loaded_function f;
  if (auto bad = t().module_function(&f.handle, (*in)->handle, std::string(name).c_str());
      bad != success)
    return fail(errc::not_found, fmt::format("`{}`: {}", name, api_->describe(bad)));
  auto properties = read_properties(f.handle, name);
  if (!properties)
    return pass(properties);
  f.properties = std::move(*properties);
  auto& all = modules_.at(module.id).functions;
  all.push_back(std::move(f));
  return function_handle{module.id, static_cast<uint32_t>(all.size() - 1)};
}

result<function_properties> real_device::describe(function_handle function) const {
  auto f = at(function);
  if (!f)
    return pass(f);
  return (*f)->properties;
}

result<uint32_t> real_device::occupancy(
  function_handle function, uint32_t threads, uint32_t dynamic_shared) const {
  auto f = at(function);
  if (!f)
    return pass(f);
  // The limit is raised first, as a launch would.
  if (dynamic_shared > 0)
    if (auto bad = t().function_set(
          (*f)->handle, cuda::function_dynamic_shared_max, static_cast<int>(dynamic_shared));
        bad != success)
      return 0U;
  int blocks = 0;
  if (auto bad = t().occupancy(&blocks, (*f)->handle, static_cast<int>(threads), dynamic_shared);
      bad != success)
    return tl::unexpected<failure>(said("occupancy", bad));
  return static_cast<uint32_t>(std::max(blocks, 0));
}

template <class Visit>
result<void> real_device::each_global(const loaded_module& module, Visit visit) const {
  for (const auto& name : module.globals) {
    address at = 0;
    size_t bytes = 0;
    auto bad = t().module_global(&at, &bytes, module.handle, name.c_str());
    if (bad == cuda::error_not_found)
      continue; // The assembler has dropped it: no kernel uses it.
    if (bad != success)
      return tl::unexpected<failure>(said("module variable " + name, bad));
    if (auto done = visit(at, bytes); !done)
      return done;
  }
  return {};
}

result<std::vector<uint8_t>> real_device::globals(module_handle module) const {
  auto in = at(module);
  if (!in)
    return pass(in);
  std::vector<uint8_t> out;
  if (auto done = checked("a copy", t().stream_synchronise(stream_)); !done)
    return pass(done);
  auto done = each_global(**in, [&](address from, size_t bytes) {
    const auto at_byte = out.size();
    out.resize(at_byte + bytes);
    return checked("a module variable", t().copy_out(out.data() + at_byte, from, bytes));
  });
  if (!done)
    return pass(done);
  return out;
}

result<void> real_device::restore_globals(module_handle module, const std::vector<uint8_t>& bytes) {
  auto in = at(module);
  if (!in)
    return pass(in);
  size_t used = 0;
  auto done = each_global(**in, [&](address to, size_t count) -> result<void> {
    if (count > bytes.size() - used)
      return fail(errc::invalid_input, "the bytes are not those of this module's variables");
    auto copied = checked("a module variable", t().copy_in(to, bytes.data() + used, count));
    used += count;
    return copied;
  });
  if (done && used != bytes.size())
    return fail(errc::invalid_input, "the bytes are not those of this module's variables");
  return done;
}

result<launch_report> real_device::launch(
  function_handle function, const launch_shape& shape, std::span<const uint8_t> parameters) {
  auto found = at(function);
  if (!found)
    return pass(found);
  const auto& f = **found;
  if (parameters.size() < f.properties.parameter_bytes)
    return fail(errc::invalid_input,
      fmt::format("`{}` takes {} bytes of parameters, {} are given", f.properties.name,
        f.properties.parameter_bytes, parameters.size()));
  if (shape.dynamic_shared > 0)
    if (auto bad = t().function_set(
          f.handle, cuda::function_dynamic_shared_max, static_cast<int>(shape.dynamic_shared));
        bad != success)
      return fail(errc::refused,
        fmt::format("`{}` with {} bytes of dynamic shared memory: {}", f.properties.name,
          shape.dynamic_shared, api_->describe(bad)));
  std::array<cuda::launch_attribute, 2> attributes;
  cuda::launch_config config;
  config.grid_x = shape.grid[0], config.grid_y = shape.grid[1], config.grid_z = shape.grid[2];
  config.block_x = shape.block[0], config.block_y = shape.block[1], config.block_z = shape.block[2];
  config.shared_bytes = shape.dynamic_shared;
  config.stream = stream_;
  config.attributes = attributes.data();
  const uint64_t cluster = uint64_t{shape.cluster[0]} * shape.cluster[1] * shape.cluster[2];
  if (cluster > 1) {
    if (cluster > 8)
      (void)t().function_set(f.handle, cuda::function_non_portable_cluster, 1);
    auto& a = attributes[config.attribute_count++];
    a.id = cuda::attribute_cluster;
    std::memcpy(a.value.data(), shape.cluster.data(), sizeof shape.cluster);
  }
  if (shape.cooperative) {
    auto& a = attributes[config.attribute_count++];
    a.id = cuda::attribute_cooperative;
    const int on = 1;
    std::memcpy(a.value.data(), &on, sizeof on);
  }
  size_t bytes = parameters.size();
  // The driver copies them before it returns.
  std::array<void*, 5> extra{cuda::param_buffer, const_cast<uint8_t*>(parameters.data()),
    cuda::param_size, &bytes, cuda::param_end};
  auto bad = t().launch(&config, f.handle, nullptr, bytes == 0 ? nullptr : extra.data());
  if (bad == success)
    return launch_report{};
  if (fault_word(bad)) {
    launch_report report;
    report.fault = device_fault{*fault_word(bad), api_->describe(bad), 0, false};
    return report;
  }
  return fail(errc::refused,
    fmt::format("`{}` cannot be launched: {}", f.properties.name, api_->describe(bad)));
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
  return tl::unexpected<failure>(said("waiting for the device", bad));
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
    return tl::unexpected<failure>(said("timing", bad));
  return out;
}

result<call_samples> real_device::time_calls(const enqueue& call, const timing_protocol& how) {
  if (!timer_) {
    auto made = cuda::call_timer::make(api_, device_, stream_, properties_.l2_bytes);
    if (!made)
      return pass(made);
    timer_ = std::move(*made);
  }
  return timer_->take(call, how);
}

} // namespace

result<std::unique_ptr<cuda_device>> open_cuda_device(int ordinal) {
  return real_device::open(ordinal);
}

result<int> cuda_device_count() {
  auto api = cuda::driver::load();
  if (!api)
    return pass(api);
  int count = 0;
  if (auto bad = (**api)->device_count(&count); bad != success)
    return fail(errc::unsupported, "the driver counts no devices: " + (*api)->describe(bad));
  return count;
}

} // namespace gristmill
