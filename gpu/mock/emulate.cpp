#include "gpu/mock/emulate.hpp"

#include "gpu/launch_parameters.hpp"
#include "gpu/mock/mock_device.hpp"
#include "tensors/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <utility>

namespace gristmill {

namespace {

using role = resolved_buffer::role;

constexpr size_t findings_max = 32;
/// All ones is NaN and -1: whoever reads what nobody wrote shall notice.
constexpr uint8_t fresh_byte = 0xff;

/// The call on one device: memory, module, steps.
class session {
public:
  session(
    device& gpu, const resolved_workload& work, const std::vector<std::vector<std::byte>>& inputs)
    : gpu_(gpu), work_(work), inputs_(inputs) {}

  result<void> set_up(const std::string& ptx, const std::vector<compiled_entry>& entries);
  /// Runs the steps from `first` on; stops behind one that faulted. `step` is where it is.
  result<std::optional<device_fault>> run();
  result<std::vector<std::vector<std::byte>>> outputs() const;
  uint32_t step() const { return step_; }

private:
  result<void> find(size_t step, module_handle module, const std::vector<compiled_entry>& entries);
  result<std::optional<device_fault>> run_step(size_t index);

  device& gpu_;
  const resolved_workload& work_;
  const std::vector<std::vector<std::byte>>& inputs_;
  std::vector<device_pointer> addresses_;
  std::vector<function_handle> functions_;
  std::vector<std::vector<uint8_t>> parameters_;
  uint32_t step_ = 0;
};

result<void> session::set_up(const std::string& ptx, const std::vector<compiled_entry>& entries) {
  const auto module = gpu_.load_module(ptx);
  if (!module)
    return pass(module);
  size_t input = 0;
  for (const resolved_buffer& buffer : work_.buffers) {
    if (buffer.kind == role::input) {
      const std::vector<std::byte>& content = inputs_.at(input++);
      if (content.size() != buffer.bytes)
        return fail(errc::invalid_input,
          fmt::format(
            "input `{}` has {} bytes instead of {}", buffer.name, content.size(), buffer.bytes));
    }
    if (buffer.bytes == 0) {
      addresses_.push_back(0);
      continue;
    }
    const auto address = buffer.kind == role::input
      ? gpu_.map_input(inputs_[input - 1], buffer.name)
      : gpu_.allocate(buffer.bytes, buffer.name);
    if (!address)
      return pass(address);
    addresses_.push_back(*address);
    if (buffer.init == "restored")
      if (auto cleared = gpu_.memset(*address, buffer.bytes, 1, 0); !cleared)
        return cleared;
  }
  functions_.resize(work_.steps.size());
  parameters_.resize(work_.steps.size());
  for (size_t i = 0; i < work_.steps.size(); ++i)
    if (work_.steps[i].what == resolved_step::op::launch)
      if (auto found = find(i, *module, entries); !found)
        return found;
  return {};
}

result<void> session::find(
  size_t index, module_handle module, const std::vector<compiled_entry>& entries) {
  const resolved_step& step = work_.steps[index];
  const auto entry = std::find_if(entries.begin(), entries.end(),
    [&](const compiled_entry& one) { return one.expression == step.entry; });
  // Of PTX that no toolchain of ours made, an entry's name is all there is.
  const auto function =
    gpu_.find_function(module, entry == entries.end() ? step.entry : entry->symbol);
  if (!function)
    return pass(function);
  const auto described = gpu_.describe(*function);
  if (!described)
    return pass(described);
  auto parameters = lay_out(step.args, addresses_, *described, gpu_);
  if (!parameters)
    return pass(parameters);
  if (parameters->size() != described->parameter_bytes)
    return fail(errc::invalid_input,
      fmt::format("`{}` takes {} bytes of arguments, but the plan passes {}", step.entry,
        described->parameter_bytes, parameters->size()));
  functions_[index] = *function;
  parameters_[index] = std::move(*parameters);
  return {};
}

result<std::optional<device_fault>> session::run_step(size_t index) {
  const resolved_step& step = work_.steps[index];
  result<void> done;
  switch (step.what) {
  case resolved_step::op::launch: {
    const launch_shape shape{
      step.grid, step.block, step.cluster, step.shared_bytes, step.cooperative};
    auto report = gpu_.launch(functions_[index], shape, parameters_[index]);
    if (!report)
      return pass(report);
    return report->fault;
  }
  case resolved_step::op::memset:
    if (step.bytes > 0)
      done = gpu_.memset(addresses_[step.buffer] + step.offset, step.bytes, step.width, step.value);
    break;
  case resolved_step::op::copy:
    if (step.bytes > 0)
      done = gpu_.copy(addresses_[step.buffer] + step.offset,
        addresses_[step.src_buffer] + step.src_offset, step.bytes);
    break;
  }
  if (!done)
    return pass(done);
  return std::optional<device_fault>{};
}

result<std::optional<device_fault>> session::run() {
  for (step_ = 0; step_ < work_.steps.size(); ++step_) {
    auto fault = run_step(step_);
    if (!fault || *fault)
      return fault;
  }
  return std::optional<device_fault>{};
}

result<std::vector<std::vector<std::byte>>> session::outputs() const {
  std::vector<std::vector<std::byte>> all;
  for (size_t i = 0; i < work_.buffers.size(); ++i) {
    if (work_.buffers[i].kind != role::output)
      continue;
    all.emplace_back(work_.buffers[i].bytes);
    if (!all.back().empty())
      if (auto copied = gpu_.copy_out(all.back(), addresses_[i]); !copied)
        return pass(copied);
  }
  return all;
}

mock_device_config plain_config(const emulate_settings& how) {
  mock_device_config config;
  config.profile = how.profile;
  config.instruction_limit = how.instruction_limit;
  config.fresh_byte = fresh_byte;
  return config;
}

/// Whether an atomic operation of the code adds floats, whose sums depend on their order.
bool adds_floats(const std::string& ptx) {
  for (const std::string_view opcode : {"atom.", "red.", "cp.reduce."})
    for (size_t at = ptx.find(opcode); at != std::string::npos; at = ptx.find(opcode, at + 1)) {
      const std::string_view line =
        std::string_view(ptx).substr(at, ptx.find_first_of(";\n", at) - at);
      const std::string_view head = line.substr(0, line.find_first_of(" \t"));
      if (head.find(".add") != std::string_view::npos
        && (head.find(".f") != std::string_view::npos
          || head.find(".bf") != std::string_view::npos))
        return true;
    }
  return false;
}

std::string index_text(uint64_t element, const std::vector<int64_t>& shape) {
  std::vector<uint64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    at[i] = shape[i] > 0 ? element % static_cast<uint64_t>(shape[i]) : 0;
    element = shape[i] > 0 ? element / static_cast<uint64_t>(shape[i]) : 0;
  }
  return fmt::format("[{}]", fmt::join(at, ", "));
}

/// The first difference between two runs.
struct difference {
  std::string words;
  /// As sums of floats differ by their order.
  bool is_rounding = true;
};

std::optional<difference> compare_outputs(const resolved_workload& work,
  const std::vector<std::vector<std::byte>>& first,
  const std::vector<std::vector<std::byte>>& other, const tolerance& allowed) {
  std::optional<difference> found;
  size_t output = 0;
  for (const resolved_buffer& buffer : work.buffers) {
    if (buffer.kind != role::output)
      continue;
    const auto& a = first[output];
    const auto& b = other[output++];
    if (a == b)
      continue;
    const uint64_t bits = element_bits(buffer.type);
    const uint64_t count = a.size() * 8 / bits;
    std::vector<float> x(count);
    std::vector<float> y(count);
    decode_to_float(buffer.type, a, x);
    decode_to_float(buffer.type, b, y);
    for (uint64_t i = 0; i < count; ++i) {
      if (std::memcmp(&x[i], &y[i], sizeof(float)) == 0)
        continue;
      if (!found)
        found = difference{fmt::format("`{}`{} is {} in the natural order and {} in another",
                             buffer.name, index_text(i, buffer.shape), x[i], y[i]),
          true};
      const double off = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
      const double room = allowed.atol + allowed.rtol * std::fabs(static_cast<double>(x[i]));
      if (!(off <= room) || !is_float(buffer.type))
        found->is_rounding = false;
    }
    // Elements that are equal as floats, and not in all bits.
    if (!found)
      found = difference{fmt::format("`{}` differs in bits", buffer.name), false};
  }
  return found;
}

/// What a run in a shuffled order came to.
struct shuffled_run {
  std::optional<ptx::fault> fault;
  /// Where it faulted.
  uint32_t step = 0;
  /// From the natural order.
  std::optional<difference> differs;
};

/// One emulation in its parts.
class emulator {
public:
  emulator(const std::string& ptx, const std::vector<compiled_entry>& entries,
    const resolved_workload& work, const std::vector<std::vector<std::byte>>& inputs,
    const emulate_settings& how)
    : ptx_(ptx), entries_(entries), work_(work), inputs_(inputs), how_(how) {}

  result<emulation> run();

private:
  result<void> check();
  result<void> shuffle();
  result<shuffled_run> run_shuffled(uint64_t seed) const;
  /// Whether it says the same as the natural order.
  bool judge(shuffled_run run, uint64_t seed);
  result<void> time();
  void add(ptx::fault what, bool is_fault, uint32_t step);

  const std::string& ptx_;
  const std::vector<compiled_entry>& entries_;
  const resolved_workload& work_;
  const std::vector<std::vector<std::byte>>& inputs_;
  const emulate_settings& how_;
  emulation out_;
  bool ended_early_ = false;
};

void emulator::add(ptx::fault what, bool is_fault, uint32_t step) {
  if (out_.findings.size() >= findings_max) {
    ++out_.findings_left_out;
    return;
  }
  out_.findings.push_back({std::move(what), is_fault, step});
}

result<void> emulator::check() {
  mock_device_config config = plain_config(how_);
  config.checks = how_.checks;
  config.per_line = true;
  config.printed_bytes_max = how_.printed_bytes_max;
  for (const resolved_buffer& buffer : work_.buffers)
    if (buffer.kind == role::output)
      config.outputs.insert(buffer.name);
  const session* current = nullptr;
  config.executed = [&](const ptx::entry_info& entry, const ptx::launch& what,
                      const ptx::outcome& run) {
    emulated_launch launch;
    launch.step = current->step();
    launch.launch.entry = entry;
    launch.launch.grid = what.grid;
    launch.launch.block = what.block;
    launch.launch.dynamic_shared = what.dynamic_shared;
    launch.cluster = what.cluster;
    launch.launch.counts = run.done;
    launch.launch.lines = run.lines;
    out_.launches.push_back(std::move(launch));
    for (const ptx::fault& found : run.findings)
      add(found, true, current->step());
    if (run.failed)
      add(*run.failed, true, current->step());
    out_.findings_left_out += run.findings_left_out;
    const uint64_t room =
      how_.printed_bytes_max - std::min<uint64_t>(how_.printed_bytes_max, out_.printed.size());
    out_.printed += run.printed.substr(0, room);
    out_.printed_left_out +=
      run.printed_left_out + run.printed.size() - std::min<uint64_t>(room, run.printed.size());
    for (const std::string& warning : run.done.warnings)
      out_.warnings.push_back(warning);
    if (run.unwatched > 0)
      out_.warnings.push_back(fmt::format(
        "{} accesses to global memory were not checked for races: too much of it was touched",
        run.unwatched));
  };
  const auto gpu = make_mock_device(std::move(config));
  session call(*gpu, work_, inputs_);
  current = &call;
  if (auto ready = call.set_up(ptx_, entries_); !ready)
    return ready;
  const auto fault = call.run();
  if (!fault)
    return pass(fault);
  ended_early_ = fault->has_value();
  auto outputs = call.outputs();
  if (!outputs)
    return pass(outputs);
  out_.outputs = std::move(*outputs);
  return {};
}

result<shuffled_run> emulator::run_shuffled(uint64_t seed) const {
  mock_device_config config = plain_config(how_);
  config.order_seed = seed;
  shuffled_run out;
  std::optional<ptx::fault> failed;
  config.executed = [&](const ptx::entry_info&, const ptx::launch&, const ptx::outcome& run) {
    failed = run.failed;
  };
  const auto gpu = make_mock_device(std::move(config));
  session call(*gpu, work_, inputs_);
  if (auto ready = call.set_up(ptx_, entries_); !ready)
    return pass(ready);
  const auto fault = call.run();
  if (!fault)
    return pass(fault);
  if (*fault) {
    out.fault = failed.value_or(ptx::fault{});
    out.step = call.step();
    return out;
  }
  const auto outputs = call.outputs();
  if (!outputs)
    return pass(outputs);
  out.differs = compare_outputs(work_, out_.outputs, *outputs, how_.allowed);
  return out;
}

bool emulator::judge(shuffled_run run, uint64_t seed) {
  ++out_.orders_run;
  if (run.fault) {
    out_.orders_agree = false;
    run.fault->what =
      fmt::format("in a shuffled order of blocks and warps (seed {}): {}", seed, run.fault->what);
    add(std::move(*run.fault), true, run.step);
    return false;
  }
  if (!run.differs)
    return true;
  const bool rounding = run.differs->is_rounding && adds_floats(ptx_);
  out_.orders_agree = out_.orders_agree && rounding;
  ptx::fault found;
  found.kind = ptx::fault_kind::order_dependent;
  found.what = fmt::format("results depend on the order of blocks and warps (seed {}): {}{}", seed,
    run.differs->words,
    rounding ? "; within the tolerance, and the kernel adds floats by atomics" : "");
  add(std::move(found), !rounding, 0);
  return false;
}

result<void> emulator::shuffle() {
  const uint32_t jobs = std::max(1U, how_.jobs);
  for (uint32_t done = 0; done < how_.orders;) {
    const uint64_t seed = how_.order_seed + done;
    const uint32_t count = std::min(jobs, how_.orders - done);
    std::vector<std::future<result<shuffled_run>>> others;
    for (uint32_t i = 1; i < count; ++i)
      others.push_back(
        std::async(std::launch::async, [this, seed, i] { return run_shuffled(seed + i); }));
    // Looked at in their order: what is found does not depend on how many run at once.
    for (uint32_t i = 0; i < count; ++i) {
      auto run = i == 0 ? run_shuffled(seed) : others[i - 1].get();
      if (!run)
        return pass(run);
      if (!judge(std::move(*run), seed + i))
        return {};
    }
    done += count;
  }
  return {};
}

result<void> emulator::time() {
  mock_device_config config = plain_config(how_);
  size_t timed = 0;
  config.timed = [&](const ptx::entry_info&, const sample&, const launch_time& time) {
    if (timed < out_.launches.size())
      out_.launches[timed++].launch.time = time;
  };
  const auto gpu = make_mock_device(std::move(config));
  out_.time_label = gpu->properties().time_label;
  if (ended_early_) {
    out_.time_refused = "the call did not come to its end";
    return {};
  }
  session call(*gpu, work_, inputs_);
  if (auto ready = call.set_up(ptx_, entries_); !ready)
    return ready;
  if (auto begun = gpu->begin_timing(); !begun)
    return begun;
  const auto ran = call.run();
  auto modelled = gpu->end_timing();
  if (!ran)
    out_.time_refused = ran.error().what;
  else if (!modelled)
    out_.time_refused = modelled.error().what;
  else
    out_.time = std::move(*modelled);
  return {};
}

result<emulation> emulator::run() {
  if (auto done = check(); !done)
    return pass(done);
  if (!ended_early_)
    if (auto done = shuffle(); !done)
      return pass(done);
  if (how_.time) {
    if (auto done = time(); !done)
      return pass(done);
  } else {
    out_.time_refused = "not asked for";
  }
  std::stable_sort(out_.findings.begin(), out_.findings.end(),
    [](const auto& a, const auto& b) { return a.is_fault && !b.is_fault; });
  for (emulated_launch& launch : out_.launches)
    launch.profile = explain(how_.profile, launch.launch);
  return std::move(out_);
}

} // namespace

bool emulation::has_fault() const {
  return std::any_of(
    findings.begin(), findings.end(), [](const emulated_finding& one) { return one.is_fault; });
}

result<emulation> emulate(const std::string& ptx, const std::vector<compiled_entry>& entries,
  const resolved_workload& work, const std::vector<std::vector<std::byte>>& inputs,
  const emulate_settings& how) {
  return emulator(ptx, entries, work, inputs, how).run();
}

} // namespace gristmill
