#include "gpu/mock/mock_device.hpp"

#include "gpu/mock/arena.hpp"
#include "gpu/mock/partial_results.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/mock/ptx/tensor_map.hpp"
#include "protocol/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gristmill {

namespace {

class mock_device final : public device {
public:
  explicit mock_device(mock_device_config config)
    : config_(std::move(config)), properties_(properties_of(config_.profile)),
      arena_(config_.profile.memory_bytes) {}

  const device_properties& properties() const override { return properties_; }

  result<device_pointer> allocate(uint64_t bytes, std::string name) override;
  result<device_pointer> map_input(std::span<const std::byte> host, std::string name) override;
  result<device_pointer> map_repeated(const std::string& path, uint64_t pattern_bytes,
    uint64_t total_bytes, std::string name) override;
  result<void> free(device_pointer base) override { return arena_.remove(base); }
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
  /// Nothing runs behind our back here.
  result<launch_report> synchronise() override { return launch_report{}; }

  result<void> begin_timing() override;
  result<call_time> end_timing() override;

private:
  struct loaded {
    std::unique_ptr<ptx::instance> instance;
    std::vector<ptx::entry_info> entries;
  };

  result<const loaded*> find(module_handle module) const;
  result<const ptx::entry_info*> find(function_handle function) const;
  result<void> check(const ptx::entry_info& entry, const launch_shape& shape,
    std::span<const uint8_t> parameters) const;
  result<launch_report> run_timed(
    const loaded& module, const ptx::entry_info& entry, ptx::launch what);
  /// Why the time of a launch means nothing because of what the launches before it left out; empty
  /// when it does. Executes a few of its blocks once more.
  std::string depends_on_missing(
    ptx::instance& state, ptx::launch what, const sample& taken, partial_results before) const;

  mock_device_config config_;
  device_properties properties_;
  arena arena_;
  /// Ids are not used twice, so that a stale handle is an error and never another module.
  std::map<uint32_t, loaded> modules_;
  uint32_t next_module_ = 1;
  bool timing_ = false;
  std::vector<launch_time> steps_;
  std::optional<device_fault> timing_fault_;
  partial_results partial_;
  std::string timing_refused_;
};

/// What would hang a GPU: whether or not it could be proven before the limit.
bool is_endless(ptx::fault_kind kind) {
  return kind == ptx::fault_kind::instruction_limit || kind == ptx::fault_kind::deadlock;
}

device_fault to_device_fault(const ptx::fault& f) {
  return {ptx::to_string(f.kind), f.what, f.ptx_line, is_endless(f.kind)};
}

result<device_pointer> mock_device::allocate(uint64_t bytes, std::string name) {
  if (bytes > config_.profile.memory_bytes)
    return fail(
      errc::refused, fmt::format("{} needs {} bytes, more than the device has", name, bytes));
  auto memory = host_memory::anonymous(bytes);
  if (!memory)
    return pass(memory);
  if (config_.fresh_byte && bytes > 0)
    std::memset(memory->data(), *config_.fresh_byte, bytes);
  const bool is_output = config_.outputs.count(name) != 0;
  const auto base = arena_.add(std::move(*memory), bytes, true, std::move(name));
  if (base
    && (has(config_.checks, ptx::check::uninitialised) || has(config_.checks, ptx::check::outputs)))
    arena_.watch(*base, is_output);
  return base;
}

result<device_pointer> mock_device::map_input(std::span<const std::byte> host, std::string name) {
  // The interpreter takes one kind of pointer; the arena keeps it from writing through this one.
  auto* data = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(host.data()));
  return arena_.add(host_memory::borrowed(data), host.size(), false, std::move(name));
}

result<device_pointer> mock_device::map_repeated(
  const std::string& path, uint64_t pattern_bytes, uint64_t total_bytes, std::string name) {
  if (total_bytes > config_.profile.memory_bytes)
    return fail(
      errc::refused, fmt::format("{} needs {} bytes, more than the device has", name, total_bytes));
  auto memory = host_memory::repeated(path, pattern_bytes, total_bytes);
  if (!memory)
    return pass(memory);
  return arena_.add(std::move(*memory), total_bytes, false, std::move(name));
}

void mock_device::reset() {
  arena_.reset();
  modules_.clear();
  timing_ = false;
  steps_.clear();
  timing_fault_.reset();
  timing_refused_.clear();
  partial_.clear();
}

result<void> mock_device::copy_in(device_pointer to, std::span<const std::byte> from) {
  const auto at = arena_.find(to, from.size(), true);
  if (!at)
    return pass(at);
  if (!from.empty())
    std::memcpy(*at, from.data(), from.size());
  arena_.define(to, from.size());
  return {};
}

result<void> mock_device::copy_out(std::span<std::byte> to, device_pointer from) {
  const auto at = arena_.find(from, to.size(), false);
  if (!at)
    return pass(at);
  if (!to.empty())
    std::memcpy(to.data(), *at, to.size());
  return {};
}

result<void> mock_device::copy(device_pointer to, device_pointer from, uint64_t bytes) {
  const auto target = arena_.find(to, bytes, true);
  if (!target)
    return pass(target);
  const auto source = arena_.find(from, bytes, false);
  if (!source)
    return pass(source);
  if (timing_) {
    steps_.push_back(model_transfer(config_.profile, bytes, bytes));
    partial_.overwritten(to, bytes);
  }
  if (bytes > 0)
    std::memmove(*target, *source, bytes);
  arena_.define_like(to, from, bytes);
  return {};
}

result<void> mock_device::memset(
  device_pointer to, uint64_t bytes, uint32_t width, uint32_t value) {
  if ((width != 1 && width != 2 && width != 4) || to % width != 0 || bytes % width != 0)
    return fail(errc::invalid_input,
      fmt::format(
        "a memset of {} bytes at {:#x} does not consist of values of {} bytes", bytes, to, width));
  const auto at = arena_.find(to, bytes, true);
  if (!at)
    return pass(at);
  if (timing_) {
    steps_.push_back(model_transfer(config_.profile, 0, bytes));
    partial_.overwritten(to, bytes);
  }
  arena_.define(to, bytes);
  const uint32_t mask = width == 4 ? UINT32_MAX : (1U << 8 * width) - 1;
  if ((value & mask) == 0)
    return arena_.clear(to, bytes);
  for (uint64_t i = 0; i < bytes; i += width)
    std::memcpy(*at + i, &value, width); // Little-endian: the low bytes come first.
  return {};
}

result<std::array<uint8_t, tensor_map_bytes>> mock_device::encode_tensor_map(
  device_pointer base, const tensor_map_spec& spec) {
  if (std::string broken = broken_rule(spec, base); !broken.empty())
    return fail(errc::invalid_input, "tensor map: " + broken);
  return ptx::encode_tensor_map(base, spec);
}

result<module_handle> mock_device::load_module(std::string_view code) {
  auto parsed = ptx::parse(code);
  if (!parsed)
    return pass(parsed);
  loaded module;
  module.entries = ptx::entries(**parsed);
  module.instance = ptx::load(std::move(*parsed));
  const module_handle handle{next_module_++};
  modules_.emplace(handle.id, std::move(module));
  return handle;
}

result<void> mock_device::unload_module(module_handle module) {
  if (modules_.erase(module.id) == 0)
    return fail(errc::invalid_input, fmt::format("module {} is not loaded", module.id));
  return {};
}

result<const mock_device::loaded*> mock_device::find(module_handle module) const {
  const auto found = modules_.find(module.id);
  if (found == modules_.end())
    return fail(errc::invalid_input, fmt::format("module {} is not loaded", module.id));
  return &found->second;
}

result<const ptx::entry_info*> mock_device::find(function_handle function) const {
  const auto module = find(module_handle{function.module});
  if (!module)
    return pass(module);
  if (function.index >= (*module)->entries.size())
    return fail(errc::invalid_input,
      fmt::format("module {} has no function {}", function.module, function.index));
  return &(*module)->entries[function.index];
}

result<function_handle> mock_device::find_function(module_handle module, std::string_view name) {
  const auto found = find(module);
  if (!found)
    return pass(found);
  std::vector<std::string> names;
  for (const ptx::entry_info& entry : (*found)->entries) {
    if (entry.name == name)
      return function_handle{module.id, static_cast<uint32_t>(names.size())};
    names.push_back(entry.name);
  }
  return fail(
    errc::not_found, fmt::format("the module has no entry `{}`{}", name, suggestion(name, names)));
}

result<function_properties> mock_device::describe(function_handle function) const {
  const auto found = find(function);
  if (!found)
    return pass(found);
  const ptx::entry_info& entry = **found;
  function_properties seen;
  seen.name = entry.name;
  for (const ptx::parameter& p : entry.parameters) {
    seen.parameters.push_back({p.offset, p.size});
    seen.parameter_bytes = std::max(seen.parameter_bytes, p.offset + p.size);
  }
  seen.static_shared = entry.static_shared;
  seen.local_bytes = entry.local_bytes;
  seen.registers = entry.registers;
  seen.max_threads = properties_.threads_per_block;
  if (entry.max_threads > 0)
    seen.max_threads = std::min(seen.max_threads, entry.max_threads);
  return seen;
}

result<uint32_t> mock_device::occupancy(
  function_handle function, uint32_t threads, uint32_t dynamic_shared) const {
  const auto found = find(function);
  if (!found)
    return pass(found);
  return resident_blocks(config_.profile, **found, threads, dynamic_shared);
}

result<std::vector<uint8_t>> mock_device::globals(module_handle module) const {
  const auto found = find(module);
  if (!found)
    return pass(found);
  return (*found)->instance->snapshot();
}

result<void> mock_device::restore_globals(module_handle module, const std::vector<uint8_t>& bytes) {
  const auto found = find(module);
  if (!found)
    return pass(found);
  if ((*found)->instance->snapshot().size() != bytes.size())
    return fail(errc::invalid_input, "the bytes are not a snapshot of this module's variables");
  (*found)->instance->restore(bytes);
  return {};
}

result<void> mock_device::check(const ptx::entry_info& entry, const launch_shape& shape,
  std::span<const uint8_t> parameters) const {
  const auto refuse = [&](std::string why) {
    return fail(errc::refused, fmt::format("launch of {}: {}", entry.name, why));
  };
  for (const uint32_t extent : shape.grid)
    if (extent == 0)
      return refuse("an extent of the grid is 0");
  // What CUDA allows: 2^31 - 1, 65,535, 65,535.
  if (shape.grid[0] > INT32_MAX || shape.grid[1] > 65535 || shape.grid[2] > 65535)
    return refuse(fmt::format(
      "the grid {} x {} x {} is too large", shape.grid[0], shape.grid[1], shape.grid[2]));
  for (size_t i = 0; i < 3; ++i)
    if (shape.cluster[i] == 0 || shape.grid[i] % shape.cluster[i] != 0)
      return refuse(fmt::format("the grid's {} blocks in dimension {} are no multiple of the "
                                "cluster's {}",
        shape.grid[i], i, shape.cluster[i]));
  const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  const uint32_t most = entry.max_threads == 0
    ? properties_.threads_per_block
    : std::min(entry.max_threads, properties_.threads_per_block);
  if (threads == 0 || threads > most || shape.block[2] > 64)
    return refuse(
      fmt::format("a block of {} x {} x {} threads; at least 1, at most {} are possible",
        shape.block[0], shape.block[1], shape.block[2], most));
  const uint64_t shared = uint64_t{entry.static_shared} + shape.dynamic_shared;
  if (shared > properties_.shared_per_block)
    return refuse(fmt::format(
      "{} bytes of shared memory; a block has at most {}", shared, properties_.shared_per_block));
  const uint32_t resident =
    resident_blocks(config_.profile, entry, static_cast<uint32_t>(threads), shape.dynamic_shared);
  if (resident == 0)
    return refuse(fmt::format(
      "no block fits on an SM: {} threads with {} registers each", threads, entry.registers));
  const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  if (shape.cooperative && blocks > uint64_t{resident} * properties_.sm_count)
    return refuse(fmt::format("a cooperative grid of {} blocks; the device holds {} at once",
      blocks, uint64_t{resident} * properties_.sm_count));
  for (const ptx::parameter& p : entry.parameters)
    if (p.offset + uint64_t{p.size} > parameters.size())
      return fail(errc::invalid_input,
        fmt::format("launch of {}: {} bytes of parameters, but `{}` ends at {}", entry.name,
          parameters.size(), p.name, p.offset + uint64_t{p.size}));
  return {};
}

result<launch_report> mock_device::launch(
  function_handle function, const launch_shape& shape, std::span<const uint8_t> parameters) {
  const auto entry = find(function);
  if (!entry)
    return pass(entry);
  if (auto checked = check(**entry, shape, parameters); !checked)
    return pass(checked);
  const loaded& module = modules_.at(function.module);

  ptx::launch what;
  what.entry = (*entry)->name;
  what.grid = shape.grid;
  what.block = shape.block;
  what.cluster = shape.cluster;
  what.cooperative = shape.cooperative;
  what.resident_blocks = uint64_t{properties_.sm_count}
    * resident_blocks(config_.profile, **entry, shape.block[0] * shape.block[1] * shape.block[2],
      shape.dynamic_shared);
  what.dynamic_shared = shape.dynamic_shared;
  what.parameters.assign(parameters.begin(), parameters.end());
  what.memory = arena_.regions();
  what.instruction_limit = config_.instruction_limit;
  what.hw = hardware_of(config_.profile, 0, 1);
  if (timing_)
    return run_timed(module, **entry, std::move(what));

  what.checks = config_.checks;
  what.order_seed = config_.order_seed;
  what.per_line = config_.per_line;
  what.printed_bytes_max = config_.printed_bytes_max;
  ptx::outcome run = ptx::run(*module.instance, what);
  if (config_.executed)
    config_.executed(**entry, what, run);
  launch_report report;
  report.counts = std::make_shared<const ptx::counts>(std::move(run.done));
  if (run.failed)
    report.fault = to_device_fault(*run.failed);
  return report;
}

result<launch_report> mock_device::run_timed(
  const loaded& module, const ptx::entry_info& entry, ptx::launch what) {
  // Every aligned word of the parameters that points into a buffer names one that the kernel has.
  std::vector<uint64_t> words(what.parameters.size() / 8);
  if (!words.empty())
    std::memcpy(words.data(), what.parameters.data(), words.size() * 8);
  // Before this launch adds what it leaves out. The memory is that after it, which does not matter:
  // whether a value is missing does not depend on the values.
  ptx::launch checked = what;
  partial_results before = partial_;
  partial_.watch(what.memory);
  sample_outcome out = take_sample(config_.profile, *module.instance, entry, std::move(what),
    arena_.bytes_behind(words), config_.clock);
  launch_report report;
  report.counts = std::make_shared<const ptx::counts>(out.taken.counts);
  if (out.failed) {
    // An address that nobody computed may lie anywhere; that is no fault of the kernel.
    if (timing_refused_.empty())
      timing_refused_ =
        depends_on_missing(*module.instance, std::move(checked), out.taken, std::move(before));
    if (!timing_refused_.empty())
      return report;
    report.fault = to_device_fault(*out.failed);
    if (!timing_fault_)
      timing_fault_ = report.fault;
    return report;
  }
  partial_.launched(entry.name, out.taken.counts.blocks_run, out.taken.grid_blocks);
  if (!timing_refused_.empty())
    return report;
  // A launch that was executed in full has left its results, which nothing may change again.
  if (out.taken.counts.blocks_run != out.taken.grid_blocks)
    timing_refused_ =
      depends_on_missing(*module.instance, std::move(checked), out.taken, std::move(before));
  if (!timing_refused_.empty())
    return report;
  auto time = model_launch(config_.profile, entry, out.taken);
  if (!time)
    return pass(time);
  if (config_.timed)
    config_.timed(entry, out.taken, *time);
  steps_.push_back(std::move(*time));
  return report;
}

std::string mock_device::depends_on_missing(
  ptx::instance& state, ptx::launch what, const sample& taken, partial_results before) const {
  if (before.empty())
    return {};
  const auto refuse = [&](std::string_view why) {
    return fmt::format("the time of `{}` cannot be modelled: {}, and the clock executes samples of "
                       "blocks; before it ran {}",
      what.entry, why, before.words());
  };
  if (before.bytes() > partial_results::bytes_max)
    return refuse(fmt::format("buffers of more than {} bytes of which a part was not computed are "
                              "too large to follow what it depends on",
      partial_results::bytes_max));
  what.memory = before.marked(what.memory);
  what.checks = static_cast<ptx::check_set>(ptx::check::uninitialised);
  what.block_count = taken.counts.blocks_run;
  what.instruction_target = config_.clock.dependence_instructions;
  what.instruction_limit = config_.clock.instruction_limit;
  // A fault of this second run says nothing: flags and counters hold what the sample left there.
  const ptx::outcome run = ptx::run(state, what);
  if (run.findings.empty())
    return {};
  return refuse(fmt::format("a branch or an address depends on what no block has computed ({})",
    run.findings.front().what));
}

result<void> mock_device::begin_timing() {
  if (timing_)
    return fail(errc::invalid_input, "timing has begun already");
  timing_ = true;
  steps_.clear();
  timing_fault_.reset();
  timing_refused_.clear();
  partial_.clear();
  return {};
}

result<call_time> mock_device::end_timing() {
  if (!timing_)
    return fail(errc::invalid_input, "timing has not begun");
  timing_ = false;
  if (timing_fault_)
    return fail(errc::device_fault, timing_fault_->what);
  if (!timing_refused_.empty())
    return fail(errc::refused, timing_refused_);
  if (steps_.empty())
    return fail(errc::refused, "nothing was launched, so there is nothing to time");
  return sum_of(config_.profile, steps_);
}

} // namespace

std::unique_ptr<device> make_mock_device(mock_device_config config) {
  return std::make_unique<mock_device>(std::move(config));
}

} // namespace gristmill
