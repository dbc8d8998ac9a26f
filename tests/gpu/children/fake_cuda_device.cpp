#include "tests/gpu/children/fake_cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace gristmill {

namespace {

uint64_t mix(uint64_t value) {
  value ^= value >> 31;
  value *= 0x9e3779b97f4a7c15;
  return value ^ (value >> 29);
}

std::unique_ptr<device> small_mock() {
  mock_device_config config;
  config.profile = *profile("h200");
  config.instruction_limit = 1'000'000;
  return make_mock_device(std::move(config));
}

} // namespace

fake_cuda_device::fake_cuda_device() : mock_(small_mock()), properties_(mock_->properties()) {
  properties_.origin = time_origin::measured;
}

uint64_t fake_cuda_device::allocated() const {
  uint64_t sum = 0;
  for (const auto& [base, bytes] : sizes_)
    sum += bytes;
  return sum;
}

result<void> fake_cuda_device::has_room(uint64_t bytes) const {
  if (lost)
    return fail(errc::device_fault, "the context is lost");
  if (bytes > memory_bytes - std::min(memory_bytes, allocated()))
    return fail(errc::refused, "the device is full");
  return {};
}

result<device_pointer> fake_cuda_device::keep(result<device_pointer> made, uint64_t bytes) {
  if (made)
    sizes_[*made] = bytes;
  return made;
}

result<device_pointer> fake_cuda_device::allocate(uint64_t bytes, std::string name) {
  if (auto room = has_room(bytes); !room)
    return pass(room);
  auto made = keep(mock_->allocate(bytes, name), bytes);
  if (made)
    names_[name] = *made;
  return made;
}

result<device_pointer> fake_cuda_device::map_input(
  std::span<const std::byte> host, std::string name) {
  if (auto room = has_room(host.size()); !room)
    return pass(room);
  return keep(mock_->map_input(host, std::move(name)), host.size());
}

result<device_pointer> fake_cuda_device::map_repeated(
  const std::string& path, uint64_t pattern_bytes, uint64_t total_bytes, std::string name) {
  if (auto room = has_room(total_bytes); !room)
    return pass(room);
  return keep(mock_->map_repeated(path, pattern_bytes, total_bytes, std::move(name)), total_bytes);
}

result<void> fake_cuda_device::free(device_pointer base) {
  sizes_.erase(base);
  return mock_->free(base);
}

void fake_cuda_device::reset() {
  sizes_.clear();
  mock_->reset();
}

result<void> fake_cuda_device::copy_in(device_pointer to, std::span<const std::byte> from) {
  return mock_->copy_in(to, from);
}

result<void> fake_cuda_device::copy_out(std::span<std::byte> to, device_pointer from) {
  return mock_->copy_out(to, from);
}

result<void> fake_cuda_device::copy(device_pointer to, device_pointer from, uint64_t bytes) {
  return mock_->copy(to, from, bytes);
}

result<void> fake_cuda_device::memset(
  device_pointer to, uint64_t bytes, uint32_t width, uint32_t value) {
  return mock_->memset(to, bytes, width, value);
}

result<std::array<uint8_t, tensor_map_bytes>> fake_cuda_device::encode_tensor_map(
  device_pointer base, const tensor_map_spec& spec) {
  return mock_->encode_tensor_map(base, spec);
}

result<module_handle> fake_cuda_device::load_module(std::string_view code) {
  ++modules_loaded;
  return mock_->load_module(code);
}

result<void> fake_cuda_device::unload_module(module_handle module) {
  return mock_->unload_module(module);
}

result<function_handle> fake_cuda_device::find_function(
  module_handle module, std::string_view name) {
  return mock_->find_function(module, name);
}

result<function_properties> fake_cuda_device::describe(function_handle function) const {
  return mock_->describe(function);
}

result<uint32_t> fake_cuda_device::occupancy(
  function_handle function, uint32_t threads, uint32_t dynamic_shared) const {
  return mock_->occupancy(function, threads, dynamic_shared);
}

result<std::vector<uint8_t>> fake_cuda_device::globals(module_handle module) const {
  return mock_->globals(module);
}

result<void> fake_cuda_device::restore_globals(
  module_handle module, const std::vector<uint8_t>& bytes) {
  return mock_->restore_globals(module, bytes);
}

result<launch_report> fake_cuda_device::launch(
  function_handle function, const launch_shape& shape, std::span<const uint8_t> parameters) {
  return mock_->launch(function, shape, parameters);
}

result<launch_report> fake_cuda_device::synchronise() {
  launch_report out;
  out.fault = pending_;
  return out;
}

result<void> fake_cuda_device::begin_timing() {
  return fail(errc::unsupported, "not here");
}

result<call_time> fake_cuda_device::end_timing() {
  return fail(errc::unsupported, "not here");
}

result<void> fake_cuda_device::run(std::span<const call_step> steps, const uint32_t* number) {
  for (const auto& step : steps) {
    if (lost)
      return fail(errc::device_fault, "the context is lost");
    if (number != nullptr && instead && instead(*this, step, *number))
      continue;
    if (step.what == call_step::op::launch) {
      auto report = mock_->launch(step.function, step.shape, step.parameters);
      if (!report)
        return pass(report);
      if (report->fault) {
        pending_ = report->fault;
        lost = true;
      }
    } else if (step.bytes > 0) {
      auto done = step.what == call_step::op::copy
        ? mock_->copy(step.to, step.from, step.bytes)
        : mock_->memset(step.to, step.bytes, step.width, step.value);
      if (!done)
        return done;
    }
  }
  return {};
}

result<void> fake_cuda_device::enqueue_call(std::span<const call_step> steps) {
  return run(steps, nullptr);
}

result<void> fake_cuda_device::take(const call_script& script, uint32_t number, call_use use) {
  auto steps = script.prepare(number, use);
  if (!steps)
    return pass(steps);
  if (use != call_use::warm_up)
    calls.push_back({number, use, {steps->begin(), steps->end()}});
  if (auto done = run(*steps, &number); !done)
    return done;
  if (lost)
    return fail(errc::device_fault, pending_->what);
  return use == call_use::warm_up || !script.after ? result<void>{} : script.after(number, use);
}

result<measured_call> fake_cuda_device::measure(
  const call_script& script, const timing_protocol& how) {
  measured_call out;
  if (auto done = take(script, 0, call_use::warm_up); !done)
    return pass(done);
  uint32_t number = 0;
  for (uint32_t i = 0; i < how.samples; ++i) {
    for (const auto use : {call_use::traced, call_use::behind_wait, call_use::span})
      if (auto done = take(script, number++, use); !done)
        return pass(done);
    out.samples_ns.push_back(1000 + i * drift_ns);
    out.record.device_ns.push_back(1001);
    out.record.span_ns.push_back(1500);
  }
  out.record.method = "cupti";
  out.record.flush = to_string(how.flush);
  out.record.warm_up_calls = 1;
  out.canary_stable = true;
  return out;
}

result<std::vector<std::byte>> fake_cuda_device::bytes_at(device_pointer from, uint64_t bytes) {
  std::vector<std::byte> out(bytes);
  if (auto done = mock_->copy_out(out, from); !done)
    return pass(done);
  return out;
}

result<uint64_t> fake_cuda_device::digest(device_pointer from, uint64_t bytes, uint64_t seed) {
  auto all = bytes_at(from, bytes);
  if (!all)
    return pass(all);
  uint64_t sum = mix(seed ^ bytes);
  for (const auto byte : *all)
    sum = mix(sum + static_cast<uint64_t>(byte) + 1);
  return sum;
}

result<void> fake_cuda_device::fill(device_pointer to, uint64_t bytes, uint64_t seed) {
  if (to % 8 != 0)
    return fail(errc::invalid_input, "not a multiple of 8");
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i)
    all[i] = static_cast<std::byte>(mix(seed + i) >> 8 | 1);
  return all.empty() ? result<void>{} : mock_->copy_in(to, all);
}

result<range_difference> fake_cuda_device::difference(
  device_pointer a, device_pointer b, uint64_t bytes) {
  auto x = bytes_at(a, bytes);
  auto y = bytes_at(b, bytes);
  if (!x || !y)
    return fail(errc::invalid_input, "no such range");
  range_difference out;
  for (uint64_t at = bytes; at > 0;) {
    const uint64_t begin = (at - 1) / 8 * 8;
    if (std::memcmp(x->data() + begin, y->data() + begin, at - begin) != 0) {
      ++out.words;
      out.first = begin;
    }
    at = begin;
  }
  return out;
}

result<void> fake_cuda_device::park(device_pointer) {
  return {};
}

result<device_pointer> fake_cuda_device::move(device_pointer base, uint64_t) {
  return base;
}

result<void> fake_cuda_device::touch(device_pointer, uint64_t) {
  return {};
}

result<uint32_t> fake_cuda_device::canary_khz() {
  return 1'980'000U;
}

result<std::string> fake_cuda_device::assembled_by(module_handle) const {
  return "a fake";
}

} // namespace gristmill
