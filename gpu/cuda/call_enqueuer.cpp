#include "gpu/cuda/call_enqueuer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>

namespace gristmill::cuda {

namespace {

bool does_nothing(const call_step& step) {
  return step.what != call_step::op::launch && step.bytes == 0;
}

std::vector<uint32_t> sizes(const std::array<uint32_t, 3>& of) {
  return {of.begin(), of.end()};
}

} // namespace

call_enqueuer::call_enqueuer(
  driver_ptr api, stream_handle stream, module_table& modules, const device_memory& memory)
  : api_(std::move(api)), modules_(modules), memory_(memory), streams_{stream} {}

void call_enqueuer::release() {
  for (auto one : events_)
    (*api_)->event_destroy(one);
  for (size_t i = 1; i < streams_.size(); ++i)
    (*api_)->stream_destroy(streams_[i]);
  events_.clear();
  streams_.resize(1);
}

result<stream_handle> call_enqueuer::stream(uint32_t number) {
  while (streams_.size() <= number) {
    stream_handle made = nullptr;
    if (auto bad = (*api_)->stream_create(&made, stream_non_blocking); bad != success)
      return failure_of(*api_, "a stream", bad);
    streams_.push_back(made);
  }
  return streams_[number];
}

result<event_handle> call_enqueuer::event(size_t number) {
  while (events_.size() <= number) {
    event_handle made = nullptr;
    if (auto bad = (*api_)->event_create(&made, event_without_time); bad != success)
      return failure_of(*api_, "an event", bad);
    events_.push_back(made);
  }
  return events_[number];
}

result<void> call_enqueuer::record(size_t number, stream_handle on) {
  auto which = event(number);
  if (!which)
    return pass(which);
  if (auto bad = (*api_)->event_record(*which, on); bad != success)
    return failure_of(*api_, "a branch", bad);
  return {};
}

result<void> call_enqueuer::wait(size_t number, stream_handle on) {
  auto which = event(number);
  if (!which)
    return pass(which);
  if (auto bad = (*api_)->stream_wait_event(on, *which, 0); bad != success)
    return failure_of(*api_, "a branch", bad);
  return {};
}

result<status> call_enqueuer::start(gristmill::function_handle function, const launch_shape& shape,
  std::span<const uint8_t> parameters, bool pdl, int carveout, stream_handle on) {
  auto found = modules_.ready(function, shape, carveout);
  if (!found)
    return pass(found);
  const auto& f = **found;
  if (parameters.size() < f.properties.parameter_bytes)
    return fail(errc::invalid_input,
      fmt::format("`{}` takes {} bytes of parameters, {} are given", f.properties.name,
        f.properties.parameter_bytes, parameters.size()));
  std::array<launch_attribute, 3> attributes;
  launch_config config;
  config.grid_x = shape.grid[0], config.grid_y = shape.grid[1], config.grid_z = shape.grid[2];
  config.block_x = shape.block[0], config.block_y = shape.block[1], config.block_z = shape.block[2];
  config.shared_bytes = shape.dynamic_shared;
  config.stream = on;
  config.attributes = attributes.data();
  auto add = [&](int id, const auto& value) {
    auto& a = attributes[config.attribute_count++];
    a.id = id;
    std::memcpy(a.value.data(), &value, sizeof value);
  };
  if (uint64_t{shape.cluster[0]} * shape.cluster[1] * shape.cluster[2] > 1)
    add(attribute_cluster, shape.cluster);
  const int on_flag = 1;
  if (shape.cooperative)
    add(attribute_cooperative, on_flag);
  if (pdl)
    add(attribute_dependent_launch, on_flag);
  size_t bytes = parameters.size();
  // The driver copies them before it returns.
  std::array<void*, 5> extra{
    param_buffer, const_cast<uint8_t*>(parameters.data()), param_size, &bytes, param_end};
  const auto bad = (*api_)->launch(&config, f.handle, nullptr, bytes == 0 ? nullptr : extra.data());
  if (bad == success || fault_word(bad))
    return bad;
  return fail(errc::refused,
    fmt::format("`{}` cannot be launched: {}", f.properties.name, api_->describe(bad)));
}

result<launch_report> call_enqueuer::launch(gristmill::function_handle function,
  const launch_shape& shape, std::span<const uint8_t> parameters) {
  auto answered = start(function, shape, parameters, false, -1, streams_[0]);
  if (!answered)
    return pass(answered);
  launch_report report;
  if (auto word = fault_word(*answered))
    report.fault = device_fault{*word, api_->describe(*answered), 0, false};
  return report;
}

result<void> call_enqueuer::memset(
  address to, uint64_t bytes, uint32_t width, uint32_t value, stream_handle stream) const {
  if (auto fits = memory_.check(to, bytes); !fits)
    return fits;
  if ((width != 1 && width != 2 && width != 4) || bytes % width != 0 || to % width != 0)
    return fail(errc::invalid_input,
      fmt::format("a memset of {} bytes at {:#x} in units of {}", bytes, to, width));
  const size_t count = bytes / width;
  const auto& t = **api_;
  const auto bad = width == 1 ? t.memset8(to, static_cast<uint8_t>(value), count, stream)
    : width == 2              ? t.memset16(to, static_cast<uint16_t>(value), count, stream)
                              : t.memset32(to, value, count, stream);
  if (bad != success)
    return failure_of(*api_, "a memset", bad);
  return {};
}

result<void> call_enqueuer::copy(
  address to, address from, uint64_t bytes, stream_handle stream) const {
  for (auto at : {to, from})
    if (auto fits = memory_.check(at, bytes); !fits)
      return fits;
  if (auto bad = (*api_)->copy(to, from, bytes, stream); bad != success)
    return failure_of(*api_, "a copy on the device", bad);
  return {};
}

result<void> call_enqueuer::put(const call_step& step, stream_handle on) {
  if (does_nothing(step))
    return {};
  if (step.what == call_step::op::memset)
    return memset(step.to, step.bytes, step.width, step.value, on);
  if (step.what == call_step::op::copy)
    return copy(step.to, step.from, step.bytes, on);
  auto answered = start(step.function, step.shape, step.parameters, step.pdl, step.carveout, on);
  if (!answered)
    return pass(answered);
  if (*answered != success)
    return failure_of(*api_, "a launch", *answered);
  return {};
}

result<void> call_enqueuer::enqueue(std::span<const call_step> steps) {
  auto plan = plan_streams(steps);
  if (!plan)
    return pass(plan);
  if (plan->streams > 1)
    if (auto done = record(0, streams_[0]); !done)
      return done;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& placed = plan->steps[i];
    auto on = stream(placed.stream);
    if (!on)
      return pass(on);
    if (placed.forks)
      if (auto done = wait(0, *on); !done)
        return done;
    for (auto before : placed.waits)
      if (auto done = wait(before + 1, *on); !done)
        return done;
    if (auto done = put(steps[i], *on); !done)
      return done;
    if (placed.records)
      if (auto done = record(i + 1, *on); !done)
        return done;
  }
  for (auto last : plan->joins)
    if (auto done = wait(last + 1, streams_[0]); !done)
      return done;
  return {};
}

result<std::vector<device_activity>> call_enqueuer::planned(
  std::span<const call_step> steps) const {
  std::vector<device_activity> out;
  for (const auto& step : steps) {
    if (does_nothing(step))
      continue;
    if (step.what != call_step::op::launch) {
      out.push_back(
        {step.what == call_step::op::memset ? "memset" : "copy", "", {}, {}, step.bytes});
      continue;
    }
    auto f = modules_.at(step.function);
    if (!f)
      return pass(f);
    out.push_back(
      {"kernel", (*f)->properties.name, sizes(step.shape.grid), sizes(step.shape.block), 0});
  }
  return out;
}

result<bool> call_enqueuer::overlaps(std::span<const call_step> steps) const {
  auto plan = plan_streams(steps);
  if (!plan)
    return pass(plan);
  return plan->streams > 1
    || std::any_of(steps.begin(), steps.end(), [](const call_step& step) { return step.pdl; });
}

result<uint32_t> call_enqueuer::local_bytes(std::span<const call_step> steps) const {
  uint32_t most = 0;
  for (const auto& step : steps)
    if (step.what == call_step::op::launch) {
      auto f = modules_.at(step.function);
      if (!f)
        return pass(f);
      most = std::max(most, (*f)->properties.local_bytes);
    }
  return most;
}

} // namespace gristmill::cuda
