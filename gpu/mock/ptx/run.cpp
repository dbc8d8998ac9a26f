#include "gpu/mock/ptx/executor.hpp"
#include "gpu/mock/ptx/expansion.hpp"
#include "gpu/mock/ptx/launch_check.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/line_counts.hpp"
#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/printed_text.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/mock/ptx/report.hpp"
#include "gpu/mock/ptx/resident.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"
#include "gpu/mock/ptx/turns.hpp"
#include "gpu/mock/ptx/waits.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"
#include "gpu/mock/ptx/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace gristmill::ptx {
namespace {

/// Passes over the warps of a cluster in which each of them only waited, though memory changes:
/// then other blocks get their turn.
constexpr uint32_t restless_passes_max = 256;
/// Operations of the next turn of a warp that had to wait for a change of memory.
constexpr uint64_t turn_after_waiting = 1024;
/// A warp that has fewer operations left than this is not examined for spinning.
constexpr uint64_t examined_operations = 2048;

/// With short turns a warp is examined for spinning once in so many operations, a power of two.
constexpr uint32_t examined_steps_log2 = 16;
/// Operations of a turn where caches are looked at: some requests to memory in a row, as a warp
/// scheduler that prefers the same warp lets through.
constexpr uint64_t interleaved_turn = 64;

/// One run of an entry. A block runs on until it is done. One that waits for others stays resident
/// while the next one starts, and gets another turn when one is done or all wait.
class runner {
public:
  runner(instance& state, const launch& what, const kernel& code);
  outcome run();

private:
  void prepare_memory(instance& state);
  void run_all();
  bool may_start() const;
  /// Starts the next cluster; keeps it resident if it comes to wait. Whether it is done.
  bool start_next();
  /// Every resident cluster gets a turn. Whether anything has changed.
  bool give_turns();
  /// Some of the bytes that are late arrive, with `need` at least those of one copy. Whether any
  /// do.
  bool deliver_late(cluster_state& c, bool need);
  /// Runs a cluster until it is done or waits for others. Whether it is done.
  bool take_turn(resident_cluster& c);
  /// One turn of a warp. Whether it only waited.
  bool run_warp(warp& w);
  void finish(std::unique_ptr<resident_cluster> c);
  bool all_stuck() const;
  [[noreturn]] void stuck(std::span<resident_cluster* const> waiting, uint64_t not_started);
  void complete_counts();
  void sum_up();
  fault describe(const fault_signal& signal) const;

  const launch& what_;
  const kernel& code_;
  const std::array<uint32_t, 3> extent_;
  outcome result_;
  std::set<std::string> warnings_;
  std::vector<operation_counts> operations_;
  std::vector<straight_counts> straight_;
  std::vector<access_memo> accesses_;
  std::vector<region> memory_;
  std::vector<sector_cache> l1_;
  sector_cache l2_;
  /// An L2 for each block of its own, and one of its share: the tags are those of lines of a block.
  sector_cache own_;
  sector_cache crowded_;
  atomic_traffic_map atomics_;
  /// What each block starts from.
  block_state common_;
  uint64_t changes_ = 0;
  turn_order order_;
  /// Clusters: of the next to start, and past the last.
  uint64_t next_ = 0;
  uint64_t end_ = 0;
  uint64_t residents_max_ = 1;
  std::vector<std::unique_ptr<resident_cluster>> waiting_;
  std::vector<std::unique_ptr<resident_cluster>> unused_;
  uint64_t steps_ = 0;
  uint64_t printf_calls_ = 0;
  printed_text printed_;
  std::unique_ptr<watcher> watch_;
  std::vector<uint64_t> diverged_;
  std::vector<bool> smoothed_;
  warp* current_ = nullptr;
};

runner::runner(instance& state, const launch& what, const kernel& code)
  : what_(what), code_(code), extent_(cluster_extent(what, code)),
    operations_(code.operations.size()), straight_(code.operations.size() + 1),
    order_(what.order_seed), printed_(what.printed_bytes_max) {
  if (what.timing)
    smoothed_ = find_smoothed(code);
  if (what.caches) {
    l2_ = sector_cache(what.hw.l2_bytes, 16);
    // Interleaved, it holds what all the blocks have read so far.
    own_ = what.interleaved ? sector_cache(4 * what.hw.l2_bytes, 16) : l2_;
    crowded_ =
      sector_cache(what.hw.l2_share_bytes == 0 ? what.hw.l2_bytes : what.hw.l2_share_bytes, 16);
    l1_.assign(what.hw.sms, sector_cache(what.hw.l1_bytes, 4));
  }
  prepare_memory(state);
  common_.code = &code_;
  common_.what = &what_;
  common_.done = &result_.done;
  common_.warnings = &warnings_;
  common_.operations = &operations_;
  common_.straight = &straight_;
  common_.memory = &memory_;
  common_.changes = &changes_;
  common_.smoothed = &smoothed_;
  if (what.checks != 0) {
    watch_ = std::make_unique<watcher>(what_, code_);
    common_.watch = watch_.get();
  } else {
    accesses_.resize(size_t{code.accesses} + 1);
    common_.accesses = accesses_.data();
  }
  if (what.printed_bytes_max > 0)
    common_.printed = &printed_;
  if (what.per_line) {
    diverged_.resize(code.operations.size());
    common_.diverged = &diverged_;
  }
  const uint64_t size = uint64_t{extent_[0]} * extent_[1] * extent_[2];
  const uint64_t total = uint64_t{what.grid[0]} * what.grid[1] * what.grid[2];
  next_ = what.first_block / size;
  end_ = what.block_count > total - what.first_block
    ? total / size
    : (what.first_block + what.block_count + size - 1) / size;
  residents_max_ = std::max<uint64_t>(1,
    std::min(
      resident_limit(what), resident_bytes_max / std::max<uint64_t>(1, resident_bytes(what, code)))
      / size);
  order_.set_range(next_, end_, residents_max_);
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

void finish_reduction(warp& w, const block_barrier& b) {
  const operation& o = *w.barrier_reduction;
  if (o.mode == 2) {
    for (uint32_t l = 0; l < warp_lanes; ++l)
      if (w.live >> l & 1)
        lane_values<uint32_t>(w, o.d)[l] = b.trues;
  } else {
    set_lanes(w.predicates[o.p], w.live, (o.mode == 3 ? b.all : b.any) ? all_lanes : 0);
  }
}

void release(resident_block& block, size_t number) {
  uint32_t latest = 0;
  for (const warp& w : block.warps)
    if (w.status == warp_status::at_barrier && w.barrier == number)
      latest = std::max(latest, w.timing.now);
  const hardware& hw = block.state.what->hw;
  const uint32_t barrier_cycles =
    hw.barrier_latency + hw.barrier_warp_latency * static_cast<uint32_t>(block.warps.size());
  for (warp& w : block.warps) {
    if (w.status != warp_status::at_barrier || w.barrier != number)
      continue;
    if (w.barrier_reduction)
      finish_reduction(w, block.state.barriers[number]);
    if (block.state.watch)
      block.state.watch->leaves_barrier(w, number);
    w.status = warp_status::running;
    w.timing.now = w.timing.latest_start = latest + barrier_cycles;
  }
  block.state.barriers[number] = {};
  if (block.state.watch)
    block.state.watch->barrier_over(block.state, number);
}

/// Lets the warps go on whose barrier is complete; whether there were any.
bool release_barriers(resident_block& block) {
  uint32_t alive = 0;
  for (const warp& w : block.warps)
    alive += w.status != warp_status::done ? warp_lanes : 0;
  bool any = false;
  for (size_t i = 0; i < block.state.barriers.size(); ++i) {
    const block_barrier& b = block.state.barriers[i];
    if (b.arrived > 0 && b.arrived >= (b.expected != 0 ? b.expected : alive)) {
      release(block, i);
      any = true;
    }
  }
  return any;
}

/// Completes the phase of the cluster's barrier when all threads that are alive have arrived.
bool release_cluster(resident_cluster& c) {
  if (!c.state.arrivals)
    return false;
  for (const warp* w : c.warps)
    if (w->status != warp_status::done && (w->live & ~w->cluster_arrived) != 0)
      return false;
  for (const warp* w : c.warps)
    c.state.ready = std::max(c.state.ready, w->timing.now);
  ++c.state.phase;
  c.state.arrivals = false;
  return true;
}

bool runner::run_warp(warp& w) {
  current_ = &w;
  const uint64_t before = w.steps;
  const uint64_t changes = changes_;
  if (steps_ >= what_.instruction_limit)
    raise(fault_kind::instruction_limit,
      fmt::format("{} warp instructions were executed without an end", steps_),
      first_lane(w.running));
  const uint64_t left = what_.instruction_limit - steps_;
  const bool waited = w.stuck_changes != UINT64_MAX;
  w.stuck_changes = UINT64_MAX;
  // Warps share the caches of their block, so with caches they take short turns.
  const uint64_t turn = what_.caches ? interleaved_turn : order_.turn();
  execute(w, std::min({turn, left, waited ? turn_after_waiting : left}));
  const bool due = !what_.caches || w.steps >> examined_steps_log2 != before >> examined_steps_log2;
  if (w.status == warp_status::running && due && !w.yields && changes == changes_
    && left > w.steps - before + examined_operations)
    look_for_spin(w);
  steps_ += w.steps - before;
  if (w.status == warp_status::done && --w.block->warps_left == 0)
    need_all_freed(*w.block);
  if (w.status != warp_status::running || !w.yields)
    return false;
  note_wait(w);
  return true;
}

bool runner::deliver_late(cluster_state& c, bool need) {
  if (c.late.empty())
    return false;
  order_.shuffle(c.late);
  const uint64_t now = std::max<uint64_t>(need ? 1 : 0, order_.some(c.late.size()));
  for (uint64_t i = 0; i < now; ++i) {
    const auto [mbarrier, bytes] = c.late.back();
    c.late.pop_back();
    arrive_bytes(*c.blocks.front(), *mbarrier, bytes);
  }
  return now > 0;
}

bool runner::take_turn(resident_cluster& c) {
  for (uint32_t restless = 0;;) {
    bool ran = false;
    bool worked = false;
    order_.shuffle(c.warps);
    for (warp* w : c.warps) {
      if (w->status != warp_status::running || is_stuck(*w))
        continue;
      ran = true;
      worked = !run_warp(*w) || worked;
    }
    bool alive = false;
    for (const auto& block : c.blocks) {
      worked = release_barriers(*block) || worked;
      alive = alive || block->state.warps_left > 0;
    }
    if (!alive)
      return true;
    worked = release_cluster(c) || worked;
    worked = deliver_late(c.state, !ran && !worked) || worked;
    if (what_.interleaved && worked)
      return false;
    restless = worked ? 0 : restless + 1;
    if (!ran && !worked) {
      if (std::all_of(c.warps.begin(), c.warps.end(),
            [](const warp* w) { return w->status == warp_status::done || waits_inside(*w); }))
        stuck(std::vector<resident_cluster*>{&c}, 0);
      c.stuck_changes = changes_;
      return false;
    }
    if (restless > restless_passes_max)
      return false;
  }
}

bool runner::may_start() const {
  return next_ < end_ && waiting_.size() < residents_max_;
}

bool runner::start_next() {
  if (unused_.empty())
    unused_.push_back(std::make_unique<resident_cluster>(common_, extent_));
  std::unique_ptr<resident_cluster> c = std::move(unused_.back());
  unused_.pop_back();
  c->start(order_.cluster(next_++));
  if (watch_)
    for (const auto& block : c->blocks)
      watch_->block_starts(block->state);
  result_.done.blocks_run += c->blocks.size();
  if (what_.caches)
    for (const auto& block : c->blocks) {
      block->state.l1 = &l1_[block->state.number % what_.hw.sms];
      block->state.l2 = &l2_;
      block->state.own = &own_;
      block->state.crowded = &crowded_;
      block->state.atomics = &atomics_;
    }
  // A fault is described from the state of its warp, so the cluster has to outlive it.
  waiting_.push_back(std::move(c));
  if (!take_turn(*waiting_.back()))
    return false;
  c = std::move(waiting_.back());
  waiting_.pop_back();
  finish(std::move(c));
  return true;
}

void runner::finish(std::unique_ptr<resident_cluster> c) {
  for (const auto& block : c->blocks) {
    printf_calls_ += std::exchange(block->state.printf_calls, 0);
    if (!what_.timing)
      continue;
    uint32_t cycles = 0;
    for (warp& w : block->warps) {
      w.timing.end_stretch();
      cycles = std::max(cycles, w.timing.now);
    }
    result_.done.block_critical_cycles += cycles;
  }
  unused_.push_back(std::move(c));
}

bool runner::give_turns() {
  const uint64_t before = changes_;
  bool any = false;
  order_.shuffle(waiting_);
  for (std::unique_ptr<resident_cluster>& c : waiting_)
    if (c->stuck_changes != changes_ && take_turn(*c)) {
      finish(std::move(c));
      any = true;
    }
  std::erase(waiting_, nullptr);
  return any || before != changes_;
}

bool runner::all_stuck() const {
  return std::all_of(
    waiting_.begin(), waiting_.end(), [&](const auto& c) { return c->stuck_changes == changes_; });
}

void runner::stuck(std::span<resident_cluster* const> waiting, uint64_t not_started) {
  if (has(what_.checks, check::mbarriers))
    if (const wrong_phase wrong = find_wrong_phase(waiting); wrong.where)
      result_.findings.push_back(describe_fault(
        *wrong.where, wrong.operation, fault_kind::mbarrier_phase, wrong.what, wrong.lane));
  deadlock found = describe_deadlock(waiting, not_started);
  current_ = found.first;
  raise(fault_kind::deadlock, std::move(found.what), first_lane(current_->live));
}

void runner::run_all() {
  bool others_first = false;
  while (next_ < end_ || !waiting_.empty()) {
    const bool enough = steps_ >= what_.instruction_target;
    if ((waiting_.empty() || what_.interleaved) && enough && result_.done.blocks_run > 0)
      return;
    if (may_start() && !(others_first && !waiting_.empty())) {
      others_first = start_next() || enough;
      continue;
    }
    others_first = false;
    if (give_turns() || may_start() || !all_stuck())
      continue;
    std::vector<resident_cluster*> all;
    for (const auto& c : waiting_)
      all.push_back(c.get());
    stuck(all, (end_ - next_) * all.front()->blocks.size());
  }
}

fault runner::describe(const fault_signal& signal) const {
  return describe_fault(*current_, current_->pc, signal.kind, signal.what, signal.lane);
}

outcome runner::run() {
  try {
    run_all();
  } catch (const fault_signal& signal) {
    result_.failed = describe(signal);
    for (const auto& c : waiting_)
      if (c)
        for (const auto& block : c->blocks)
          printf_calls_ += block->state.printf_calls;
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

/// Adds what was counted by runs of operations, and by accesses like the one before.
void runner::complete_counts() {
  uint64_t instructions = 0;
  uint64_t lanes = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    instructions += straight_[i].instructions;
    lanes += straight_[i].lanes;
    operations_[i].instructions += instructions;
    operations_[i].lanes += lanes;
    if (const uint32_t access = code_.operations[i].access; access != 0 && !accesses_.empty())
      add_remembered(accesses_[access], operations_[i]);
  }
}

void runner::sum_up() {
  complete_counts();
  counts& total = result_.done;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const operation& o = code_.operations[i];
    const operation_counts& n = operations_[i];
    if (o.hidden)
      continue;
    total.warp_instructions += n.instructions;
    add_machine(total.machine, o, n.instructions);
    total.lane_instructions += n.lanes;
    total.mma_flops += o.counted == category::mma ? uint64_t{o.flops} * n.instructions : 0;
    total.wgmma_flops += o.run == wgmma_multiply ? uint64_t{o.flops} * n.instructions : 0;
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
  if (printf_calls_ > 0 && what_.printed_bytes_max == 0)
    warnings_.insert(fmt::format("{} calls of printf were ignored", printf_calls_));
  result_.printed = printed_.take();
  result_.printed_left_out = printed_.left_out();
  if (what_.per_line)
    result_.lines = count_lines(code_, operations_, diverged_);
  if (watch_) {
    for (fault& found : watch_->take_findings())
      result_.findings.push_back(std::move(found));
    result_.findings_left_out = watch_->findings_left_out();
    result_.unwatched = watch_->unwatched();
  }
  for (const auto& [piece, here] : atomics_) {
    total.hottest_updates = std::max(total.hottest_updates, here.updates);
    total.hottest_float_conflicts = std::max(total.hottest_float_conflicts, here.float_conflicts);
  }
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
