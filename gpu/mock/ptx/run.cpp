#include "gpu/mock/ptx/executor.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gristmill::ptx {
namespace {

/// Turns of a warp before another one runs: long, for a change of warp costs cache misses.
constexpr uint64_t slice = 1 << 16;
/// Waits in a row, a warp, without any progress: then nothing will ever come.
constexpr uint64_t idle_turns_max = 10000;

/// 64-byte aligned bytes.
class aligned_bytes {
public:
  explicit aligned_bytes(size_t size) : storage_(size + 64) {}
  uint8_t* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return storage_.data() + ((address + 63) / 64 * 64 - address);
  }

private:
  std::vector<uint8_t> storage_;
};

/// One run of an entry: the memory of a block, its warps, and the loop over the blocks.
class runner {
public:
  runner(instance& state, const launch& what, const kernel& code);
  outcome run();

private:
  void prepare_memory(instance& state);
  void prepare_registers(warp& w);
  void set_special(warp& w, const kernel::special_slot& slot);
  void start_block(uint64_t number);
  void run_block();
  /// Lets the warps go on whose barrier is complete; whether there were any.
  bool release_barriers();
  void release(size_t number);
  void finish_reduction(warp& w, const block_barrier& b);
  void stuck();
  void sum_up();
  fault describe(const fault_signal& signal) const;

  const launch& what_;
  const kernel& code_;
  outcome result_;
  std::set<std::string> warnings_;
  std::vector<operation_counts> operations_;
  std::vector<region> memory_;
  std::vector<sector_cache> l1_;
  sector_cache l2_;
  uint32_t threads_ = 0;
  aligned_bytes registers_;
  std::vector<uint32_t> predicates_;
  aligned_bytes shared_;
  aligned_bytes local_;
  std::vector<warp> warps_;
  block_state block_;
  std::array<uint32_t, 3> block_index_{};
  uint64_t block_number_ = 0;
  uint64_t steps_ = 0;
  warp* current_ = nullptr;
};

uint32_t thread_count(const launch& what) {
  return what.block[0] * what.block[1] * what.block[2];
}

size_t shared_size(const launch& what, const kernel& code) {
  return code.uses_dynamic_shared || what.dynamic_shared > 0
    ? size_t{code.dynamic_shared_offset()} + what.dynamic_shared
    : code.info.static_shared;
}

runner::runner(instance& state, const launch& what, const kernel& code)
  : what_(what), code_(code), operations_(code.operations.size()), threads_(thread_count(what)),
    registers_(size_t{code.register_bytes + 63} / 64 * 64 * ((threads_ + 31) / 32)),
    predicates_(size_t{code.predicates} * ((threads_ + 31) / 32)), shared_(shared_size(what, code)),
    local_(size_t{code.local_bytes} * ((threads_ + 31) / 32) * warp_lanes),
    warps_((threads_ + 31) / 32) {
  if (what.caches) {
    l2_ = sector_cache(what.hw.l2_bytes, 16);
    l1_.assign(what.hw.sms, sector_cache(what.hw.l1_bytes, 4));
  }
  prepare_memory(state);
  block_.code = &code_;
  block_.what = &what_;
  block_.done = &result_.done;
  block_.warnings = &warnings_;
  block_.operations = &operations_;
  block_.memory = &memory_;
  block_.shared = shared_.data();
  block_.shared_bytes = shared_size(what, code);
  block_.local = local_.data();
  block_.local_bytes = code.local_bytes;
  std::fill_n(block_.local, size_t{code.local_bytes} * warps_.size() * warp_lanes, 0xff);
  for (uint32_t i = 0; i < warps_.size(); ++i) {
    warp& w = warps_[i];
    w.id = i;
    w.block = &block_;
    w.registers = registers_.data() + size_t{code.register_bytes + 63} / 64 * 64 * i;
    w.predicates = predicates_.data() + size_t{code.predicates} * i;
    prepare_registers(w);
    if (what.timing)
      w.timing.prepare(code);
  }
}

void runner::prepare_memory(instance& state) {
  memory_ = what_.memory;
  memory_.insert(memory_.end(), state.memory().begin(), state.memory().end());
  // Nothing writes to it: the region says so, and the pointer has to be a writable one.
  memory_.push_back({parameter_memory, const_cast<uint8_t*>(what_.parameters.data()),
    what_.parameters.size(), false, "kernel parameters"});
  std::erase_if(memory_, [](const region& r) { return r.bytes == 0; });
  std::sort(memory_.begin(), memory_.end(),
    [](const region& a, const region& b) { return a.device < b.device; });
}

void fill(warp& w, const kernel::register_slot& slot, uint64_t value) {
  for (uint32_t l = 0; l < warp_lanes; ++l)
    std::memcpy(w.registers + slot.offset + l * slot.bytes, &value, slot.bytes);
}

void runner::prepare_registers(warp& w) {
  for (const kernel::constant& c : code_.constants)
    fill(w, code_.registers[c.reg], c.value);
  for (const kernel::special_slot& s : code_.specials)
    set_special(w, s);
  for (const kernel::parameter_slot& p : code_.parameter_slots) {
    uint64_t value = 0;
    std::memcpy(&value, what_.parameters.data() + p.offset, p.bytes);
    if (p.sign_extend && p.bytes < 8) {
      const uint32_t unused = 64 - 8U * p.bytes;
      value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
    }
    fill(w, code_.registers[p.reg], value);
  }
}

void runner::set_special(warp& w, const kernel::special_slot& slot) {
  const auto value = [&](uint32_t lane) -> uint64_t {
    const uint32_t thread = w.id * warp_lanes + lane;
    const uint32_t bit = 1U << lane;
    switch (slot.which) {
    case special::tid_x:
      return thread % what_.block[0];
    case special::tid_y:
      return thread / what_.block[0] % what_.block[1];
    case special::tid_z:
      return thread / what_.block[0] / what_.block[1];
    case special::ntid_x:
    case special::ntid_y:
    case special::ntid_z:
      return what_.block[static_cast<size_t>(slot.which) - static_cast<size_t>(special::ntid_x)];
    case special::ctaid_x:
    case special::ctaid_y:
    case special::ctaid_z:
      return block_index_[static_cast<size_t>(slot.which) - static_cast<size_t>(special::ctaid_x)];
    case special::nctaid_x:
    case special::nctaid_y:
    case special::nctaid_z:
      return what_.grid[static_cast<size_t>(slot.which) - static_cast<size_t>(special::nctaid_x)];
    case special::laneid:
      return lane;
    case special::warpid:
      return w.id;
    case special::nwarpid:
      return warps_.size();
    case special::lanemask_eq:
      return bit;
    case special::lanemask_lt:
      return bit - 1;
    case special::lanemask_le:
      return bit | (bit - 1);
    case special::lanemask_gt:
      return ~(bit | (bit - 1));
    case special::lanemask_ge:
      return ~(bit - 1);
    case special::smid:
      return block_number_ % what_.hw.sms;
    case special::nsmid:
      return what_.hw.sms;
    case special::zero:
      return 0;
    case special::one:
      return 1;
    case special::dynamic_shared_base:
      return code_.dynamic_shared_offset();
    case special::dynamic_shared_size:
      return what_.dynamic_shared;
    case special::total_shared_size:
      return block_.shared_bytes;
    }
    return 0;
  };
  const kernel::register_slot& reg = code_.registers[slot.reg];
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const uint64_t v = value(l);
    std::memcpy(w.registers + reg.offset + l * reg.bytes, &v, reg.bytes);
  }
}

void runner::start_block(uint64_t number) {
  block_number_ = number;
  block_index_ = {static_cast<uint32_t>(number % what_.grid[0]),
    static_cast<uint32_t>(number / what_.grid[0] % what_.grid[1]),
    static_cast<uint32_t>(number / what_.grid[0] / what_.grid[1])};
  ++result_.done.blocks_run;
  // Whoever reads what nobody wrote shall notice: all ones is NaN and -1.
  std::fill_n(block_.shared, block_.shared_bytes, 0xff);
  block_.barriers = {};
  block_.mbarriers.clear();
  block_.bulk_ready = 0;
  if (what_.caches) {
    block_.l1 = &l1_[number % what_.hw.sms];
    block_.l2 = &l2_;
  }
  for (warp& w : warps_) {
    for (const kernel::special_slot& s : code_.specials)
      if ((s.which >= special::ctaid_x && s.which <= special::ctaid_z) || s.which == special::smid)
        set_special(w, s);
    const uint32_t lanes = threads_ - w.id * warp_lanes;
    w.full = lanes >= warp_lanes ? all_lanes : (1U << lanes) - 1;
    w.live = w.running = w.full;
    w.pc = 0;
    w.groups.clear();
    w.lowest = UINT32_MAX;
    w.status = warp_status::running;
    w.turn_over = false;
    if (what_.timing)
      w.timing.start_block();
  }
}

void runner::run_block() {
  size_t done = 0;
  uint64_t idle = 0;
  uint64_t events = block_.mbarrier_events;
  while (done < warps_.size()) {
    bool ran = false;
    for (warp& w : warps_) {
      if (w.status != warp_status::running)
        continue;
      ran = true;
      current_ = &w;
      const uint64_t before = w.steps;
      if (steps_ >= what_.instruction_limit)
        raise(fault_kind::instruction_limit,
          fmt::format("{} warp instructions were executed without an end", steps_),
          first_lane(w.running));
      execute(w, std::min(slice, what_.instruction_limit - steps_));
      steps_ += w.steps - before;
      done += w.status == warp_status::done ? 1 : 0;
      idle = w.yields && events == block_.mbarrier_events ? idle + 1 : 0;
      events = block_.mbarrier_events;
      if (idle > idle_turns_max * warps_.size())
        raise(fault_kind::deadlock, "every warp waits, and nothing will come",
          first_lane(w.running != 0 ? w.running : 1));
    }
    if (!release_barriers() && !ran && done < warps_.size())
      stuck();
  }
  if (what_.timing) {
    uint32_t cycles = 0;
    for (warp& w : warps_) {
      w.timing.end_stretch();
      cycles = std::max(cycles, w.timing.now);
    }
    result_.done.block_critical_cycles += cycles;
  }
}

bool runner::release_barriers() {
  uint32_t alive = 0;
  for (const warp& w : warps_)
    alive += w.status != warp_status::done ? warp_lanes : 0;
  bool any = false;
  for (size_t i = 0; i < block_.barriers.size(); ++i) {
    const block_barrier& b = block_.barriers[i];
    if (b.arrived > 0 && b.arrived >= (b.expected != 0 ? b.expected : alive)) {
      release(i);
      any = true;
    }
  }
  return any;
}

void runner::release(size_t number) {
  uint32_t latest = 0;
  for (const warp& w : warps_)
    if (w.status == warp_status::at_barrier && w.barrier == number)
      latest = std::max(latest, w.timing.now);
  for (warp& w : warps_) {
    if (w.status != warp_status::at_barrier || w.barrier != number)
      continue;
    if (w.barrier_reduction)
      finish_reduction(w, block_.barriers[number]);
    w.status = warp_status::running;
    w.timing.now = w.timing.latest_start = latest + what_.hw.barrier_latency;
  }
  block_.barriers[number] = {};
}

void runner::finish_reduction(warp& w, const block_barrier& b) {
  const operation& o = *w.barrier_reduction;
  if (o.mode == 2) {
    for (uint32_t l = 0; l < warp_lanes; ++l)
      if (w.live >> l & 1)
        lane_values<uint32_t>(w, o.d)[l] = b.trues;
  } else {
    set_lanes(w.predicates[o.p], w.live, (o.mode == 3 ? b.all : b.any) ? all_lanes : 0);
  }
}

void runner::stuck() {
  for (warp& w : warps_)
    if (w.status == warp_status::at_barrier) {
      current_ = &w;
      --w.pc;
      const block_barrier& b = block_.barriers[w.barrier];
      raise(fault_kind::deadlock,
        fmt::format("barrier {} is never complete: {} threads have arrived, {} are expected",
          w.barrier, b.arrived,
          b.expected != 0 ? std::to_string(b.expected) : std::string("all that are alive")),
        first_lane(w.live));
    }
}

fault runner::describe(const fault_signal& signal) const {
  fault f;
  f.kind = signal.kind;
  f.entry = code_.info.name;
  f.block = block_index_;
  const warp& w = *current_;
  const size_t at = std::min<size_t>(w.pc, code_.operations.size() - 1);
  const source_line& source = code_.sources[code_.operations[at].source];
  f.ptx_line = source.line;
  f.instruction = one_line(source.text);
  const uint32_t thread = w.id * warp_lanes + signal.lane;
  f.thread = {thread % what_.block[0], thread / what_.block[0] % what_.block[1],
    thread / what_.block[0] / what_.block[1]};
  f.what =
    fmt::format("kernel '{}', PTX line {}, `{}`: {}; block ({}, {}, {}), thread ({}, {}, {})",
      f.entry, f.ptx_line, f.instruction, signal.what, f.block[0], f.block[1], f.block[2],
      f.thread[0], f.thread[1], f.thread[2]);
  return f;
}

outcome runner::run() {
  const uint64_t total = uint64_t{what_.grid[0]} * what_.grid[1] * what_.grid[2];
  const uint64_t end =
    what_.block_count > total - what_.first_block ? total : what_.first_block + what_.block_count;
  try {
    for (uint64_t i = what_.first_block; i < end; ++i) {
      start_block(i);
      run_block();
      if (steps_ >= what_.instruction_target)
        break;
    }
  } catch (const fault_signal& signal) {
    result_.failed = describe(signal);
  }
  sum_up();
  return std::move(result_);
}

category in_memory(const operation& o, bool shared) {
  switch (o.counted) {
  case category::store_global:
    return shared ? category::store_shared : category::store_local;
  case category::atomic_global:
    return shared ? category::atomic_shared : category::store_local;
  case category::load_global:
    return shared ? category::load_shared : category::load_local;
  default:
    return o.counted;
  }
}

void runner::sum_up() {
  counts& total = result_.done;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const operation& o = code_.operations[i];
    const operation_counts& n = operations_[i];
    if (o.hidden)
      continue;
    total.warp_instructions += n.instructions;
    total.lane_instructions += n.lanes;
    total.mma_flops += o.counted == category::mma ? uint64_t{o.flops} * n.instructions : 0;
    uint64_t instructions = n.instructions;
    uint64_t lanes = n.lanes;
    for (const size_t m : {generic_to_shared, generic_to_local, as_counted}) {
      category_counts& c = total.by_category[static_cast<size_t>(
        m == as_counted ? o.counted : in_memory(o, m == generic_to_shared))];
      c.sectors += n.memory[m].sectors;
      c.bytes += n.memory[m].bytes;
      c.wavefronts += n.memory[m].wavefronts;
      c.warp_instructions += m == as_counted ? instructions : n.moved[m - 1].instructions;
      c.lane_instructions += m == as_counted ? lanes : n.moved[m - 1].lanes;
      instructions -= m == as_counted ? 0 : n.moved[m - 1].instructions;
      lanes -= m == as_counted ? 0 : n.moved[m - 1].lanes;
    }
  }
  if (block_.printf_calls > 0)
    warnings_.insert(fmt::format("{} calls of printf were ignored", block_.printf_calls));
  total.warnings.assign(warnings_.begin(), warnings_.end());
}

outcome refuse_launch(const launch& what, std::string why) {
  outcome result;
  fault f;
  f.kind = fault_kind::bad_launch;
  f.entry = what.entry;
  f.what = fmt::format("kernel '{}' cannot be launched: {}", what.entry, why);
  result.failed = std::move(f);
  return result;
}

/// Empty when the launch is possible.
std::string check_launch(const launch& what, const kernel& code) {
  const entry_info& info = code.info;
  constexpr std::array<uint32_t, 3> grid_max{INT32_MAX, 65535, 65535};
  constexpr std::array<uint32_t, 3> block_max{1024, 1024, 64};
  for (size_t i = 0; i < 3; ++i) {
    if (what.grid[i] == 0 || what.grid[i] > grid_max[i])
      return fmt::format("the grid has {} blocks in dimension {}; 1 to {} are possible",
        what.grid[i], i, grid_max[i]);
    if (what.block[i] == 0 || what.block[i] > block_max[i])
      return fmt::format("the block has {} threads in dimension {}; 1 to {} are possible",
        what.block[i], i, block_max[i]);
  }
  const uint64_t threads = uint64_t{what.block[0]} * what.block[1] * what.block[2];
  const uint32_t threads_max = info.max_threads != 0 ? std::min(info.max_threads, 1024U) : 1024;
  if (threads > threads_max)
    return fmt::format("the block has {} threads; at most {} are possible", threads, threads_max);
  if (what.parameters.size() < code.parameter_bytes)
    return fmt::format("{} bytes of parameters were given; {} are needed", what.parameters.size(),
      code.parameter_bytes);
  if (what.parameters.size() > 64U << 10)
    return fmt::format("{} bytes of parameters were given", what.parameters.size());
  if (uint64_t{code.dynamic_shared_offset()} + what.dynamic_shared
    > what.hw.shared_bytes_per_block_max)
    return fmt::format("{} bytes of shared memory are needed; a block has {}",
      uint64_t{code.dynamic_shared_offset()} + what.dynamic_shared,
      what.hw.shared_bytes_per_block_max);
  if (what.first_block >= uint64_t{what.grid[0]} * what.grid[1] * what.grid[2])
    return fmt::format("block {} is past the end of the grid", what.first_block);
  if (what.hw.sms == 0)
    return "the modelled GPU has no SM";
  std::vector<const region*> sorted;
  for (const region& r : what.memory) {
    if (r.device % 256 != 0)
      return fmt::format("region '{}' does not begin at a multiple of 256", r.name);
    if (r.device == 0 || r.device >= device_address_end || r.bytes > device_address_end - r.device)
      return fmt::format("region '{}' is outside the device addresses", r.name);
    if (r.bytes > 0)
      sorted.push_back(&r);
  }
  std::sort(sorted.begin(), sorted.end(),
    [](const region* a, const region* b) { return a->device < b->device; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->device + sorted[i - 1]->bytes > sorted[i]->device)
      return fmt::format("regions '{}' and '{}' overlap", sorted[i - 1]->name, sorted[i]->name);
  return {};
}

} // namespace

outcome run(instance& state, const launch& what) {
  for (const kernel& code : state.code().kernels) {
    if (code.info.name != what.entry)
      continue;
    std::string why = check_launch(what, code);
    if (!why.empty())
      return refuse_launch(what, std::move(why));
    return runner(state, what, code).run();
  }
  return refuse_launch(what, "the module has no such entry");
}

} // namespace gristmill::ptx
