#pragma once

#include "gpu/mock/ptx/checks.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reads PTX text and executes it on the CPU, one warp of 32 lanes at a time, with exact counts.
///
/// What front ends emit for sm_90a and below is supported, apart from textures, recursion and what
/// `docs/ptx-coverage.md` names. What is not supported is an error
/// of `parse` that names the PTX line; there is no instruction that silently computes something
/// else. The results of `.approx` instructions are more exact than those of a GPU.
namespace gristmill::ptx {

/// One parameter of an entry, as the caller has to lay it out in `launch::parameters`.
struct parameter {
  std::string name;
  uint32_t offset = 0;
  uint32_t size = 0;
  uint32_t align = 1;
  /// PTX type without the dot: "u64", "f32"; "b8" for the bytes of a struct passed by value.
  std::string type;

  friend bool operator==(const parameter&, const parameter&) = default;
};

/// What is known of an entry before it runs.
struct entry_info {
  std::string name;
  /// Line of `.entry` in the PTX text.
  int line = 0;
  std::vector<parameter> parameters;
  /// Bytes of `.shared` variables, without dynamic shared memory.
  uint32_t static_shared = 0;
  /// Bytes of `.local` variables of one thread.
  uint32_t local_bytes = 0;
  /// Product of `.maxntid` or `.reqntid`; 0 when there is no such limit.
  uint32_t max_threads = 0;
  /// `.reqntid`: the only block that the entry may be launched with; zeros when it is absent.
  std::array<uint32_t, 3> required_block{};
  /// `.maxnreg`: registers that the assembler may give to a thread; 0 when there is no such limit.
  /// `registers` may be more: the assembler then spills.
  uint32_t registers_max = 0;
  /// `.minnctapersm` (or `.maxnctapersm`, its old name): blocks that have to fit on an SM at once,
  /// which limits registers in the same way; 0 when it is absent.
  uint32_t blocks_per_sm_min = 0;
  /// Blocks of a cluster as `.reqnctapercluster` wants them; zeros where the launch decides.
  std::array<uint32_t, 3> cluster{};
  /// 32-bit registers of one thread, estimated: the most words that are live at once (predicates
  /// not counted) plus `reserved_registers`, rounded up to a multiple of 8. 0 when unknown.
  uint32_t registers = 0;
};

/// What the assembler is assumed to need beyond the live values: addresses, the stack pointer.
constexpr uint32_t reserved_registers = 6;

/// A variable in `.global` or `.const` memory.
struct global_info {
  std::string name;
  uint64_t bytes = 0;
  bool is_const = false;

  friend bool operator==(const global_info&, const global_info&) = default;
};

/// The parsed and decoded text. Immutable: threads may share it.
class module;

/// Fails with `invalid_input` (malformed text) or `unsupported` (an instruction or directive that
/// the interpreter does not have); the message names the PTX line. Bounded in time and memory for
/// any text; a text of more than 16 MiB is refused.
result<std::shared_ptr<const module>> parse(std::string_view text);

/// In the order of the text.
std::vector<entry_info> entries(const module& m);
/// Operand of `.target`, for example "sm_90a".
std::string target(const module& m);
/// Every directive that occurs (".entry", ".pragma", ...), sorted, each once.
std::vector<std::string> directives_used(const module& m);
/// Special registers that the code reads ("%clock64"), sorted, each once, without the geometry ones
/// (`%tid`, `%ntid`, `%ctaid`, `%nctaid`, `%laneid`, `%warpid`, `%nwarpid`, `%lanemask_*`).
std::vector<std::string> special_registers_used(const module& m);
std::vector<global_info> globals(const module& m);
/// Name of the symbol that initialises the pointer `global`, as in
/// `.visible .global .u64 gm_e0 = generic(_Z4gemmv);`. Fails with `not_found`.
result<std::string> initial_symbol(const module& m, std::string_view global);

/// One allocation that a kernel may touch. Device addresses are chosen by the caller, apart from
/// host addresses, so that no count depends on the layout of the host: multiples of 256, below
/// `device_address_end`, regions not overlapping.
struct region {
  uint64_t device = 0;
  /// Aligned to at least 16 bytes.
  uint8_t* host = nullptr;
  uint64_t bytes = 0;
  bool writable = true;
  std::string name;
  /// For the checks of uninitialised values: a byte for each byte here, 1 while nobody has given it
  /// a value. Null: all of it has one.
  uint8_t* undefined = nullptr;
  /// Holds results: an undefined value that is stored here is a finding, and so is a read of what
  /// nobody has written.
  bool is_output = false;
  /// A byte for each `written_grain` bytes, set when a launch writes there: 1 for a store, 2 for an
  /// atomic. Null: nobody asks.
  uint8_t* written = nullptr;
};

constexpr uint64_t written_grain = 256;
constexpr uint64_t device_address_end = 0x7000'0000'0000;

/// Caches and latencies of the GPU that is modelled, the latter in cycles.
struct hardware {
  uint64_t l2_bytes = 50ULL << 20;
  /// What a block has of it for data that no other one reads; 0: all.
  uint64_t l2_share_bytes = 0;
  /// The share of an SM's L1 that is not shared memory.
  uint64_t l1_bytes = 128ULL << 10;
  uint32_t sms = 132;
  /// Shared memory that a block may have, static and dynamic.
  uint32_t shared_bytes_per_block_max = 227U << 10;
  uint32_t alu_latency = 4;
  /// Of half precision and of fp64.
  uint32_t half_latency = 4;
  uint32_t sfu_latency = 22;
  uint32_t convert_latency = 6;
  uint32_t shared_latency = 29;
  uint32_t l1_latency = 38;
  uint32_t l2_latency = 260;
  uint32_t dram_latency = 600;
  uint32_t mma_latency = 33;
  uint32_t barrier_latency = 6;
  /// In addition, for each warp of the block.
  uint32_t barrier_warp_latency = 0;
};

/// One run of an entry.
struct launch {
  std::string entry;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  /// Blocks of a cluster, at most 8; the grid is a multiple of it. All ones: as the entry wants it.
  std::array<uint32_t, 3> cluster{1, 1, 1};
  /// All blocks wait for each other: refused when they are not resident at once.
  bool cooperative = false;
  /// Blocks that the GPU holds at once; 0: 32 for each SM.
  uint64_t resident_blocks = 0;
  /// Shuffles the order in which blocks start and warps take turns, and how long these are. What
  /// then differs is a race (or the rounding of sums that atomics make). Without: the natural
  /// order, which is also the fastest.
  std::optional<uint64_t> order_seed;
  uint32_t dynamic_shared = 0;
  /// At least up to the end of the last parameter.
  std::vector<uint8_t> parameters;
  std::vector<region> memory;
  /// Only these blocks are executed (sampling), by linear block number; with clusters, by the order
  /// of the clusters, and whole clusters.
  uint64_t first_block = 0;
  uint64_t block_count = UINT64_MAX;
  /// Warp instructions.
  uint64_t instruction_limit = 2'000'000'000;
  /// No further block is started once so many warp instructions have been executed (sampling): the
  /// outcome is then a success with fewer `blocks_run`. At least one block is run.
  uint64_t instruction_target = UINT64_MAX;
  /// Model L1 and L2 (hits, DRAM sectors).
  bool caches = false;
  /// Also follow the critical path of each block; more exact with `caches`.
  bool timing = false;
  /// As many blocks as the GPU holds at once take turns of a few instructions, as they would there,
  /// so that the caches see their requests interleaved. Ends wherever they are once
  /// `instruction_target` is reached. Slower.
  bool interleaved = false;
  /// Checks of `checks.hpp`, which cost time and memory; they see nothing in a sample of blocks
  /// that wait for others. Not together with `timing`.
  check_set checks = 0;
  /// Also fill `outcome::lines`.
  bool per_line = false;
  /// Bytes of what printf prints that are kept.
  uint64_t printed_bytes_max = 0;
  hardware hw;
};

enum class category : uint8_t {
  integer,
  fp32,
  fp16,
  fp64,
  sfu,
  convert,
  load_global,
  store_global,
  atomic_global,
  load_shared,
  store_shared,
  atomic_shared,
  load_local,
  store_local,
  barrier,
  shuffle,
  branch,
  mma,
  async,
  other,
  count
};

struct category_counts {
  uint64_t warp_instructions = 0;
  /// The same times the lanes that were active.
  uint64_t lane_instructions = 0;
  /// 32-byte sectors of global memory that the requests touch.
  uint64_t sectors = 0;
  /// Bytes that the lanes asked for.
  uint64_t bytes = 0;
  /// Passes through the load/store unit: 128-byte lines (global) or bank conflict rounds (shared).
  uint64_t wavefronts = 0;

  friend bool operator==(const category_counts&, const category_counts&) = default;
};

/// Instructions of the machine by pipe, in eighths (`expansion.hpp`): what the PTX instructions
/// that were executed are there.
struct machine_counts {
  uint64_t issue = 0;
  uint64_t alu = 0;
  uint64_t fma = 0;
  uint64_t heavy = 0;
  uint64_t xu = 0;
  uint64_t fp64 = 0;

  friend bool operator==(const machine_counts&, const machine_counts&) = default;
};

struct counts {
  std::array<category_counts, static_cast<size_t>(category::count)> by_category;
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;
  machine_counts machine;
  uint64_t blocks_run = 0;
  /// With `launch::caches` only. Sectors.
  uint64_t l1_hits = 0;
  uint64_t l2_sectors = 0;
  /// Of them written, by stores; and requests for them: a request names sectors of one line.
  /// Atomics are not among these.
  uint64_t l2_write_sectors = 0;
  uint64_t l2_read_requests = 0;
  uint64_t l2_write_requests = 0;
  /// DRAM is read in pairs of sectors.
  uint64_t dram_read_sectors = 0;
  uint64_t dram_write_sectors = 0;
  /// Those of the read ones of which a request wanted no more than one pair of a line.
  uint64_t dram_lone_sectors = 0;
  /// What would have been read from DRAM if no block found in L2 what another one had read; and if
  /// besides each had no more of it than its share (`hardware::l2_share_bytes`).
  uint64_t unshared_read_sectors = 0;
  uint64_t crowded_read_sectors = 0;
  /// Updates by atomics of global memory: of each sector that an instruction touches, the most
  /// lanes that meet on one address of it; where these add floats, those beyond the first again.
  uint64_t atomic_updates = 0;
  uint64_t atomic_float_conflicts = 0;
  /// The same on the 512 bytes that have the most of them.
  uint64_t hottest_updates = 0;
  uint64_t hottest_float_conflicts = 0;
  uint64_t divergent_branches = 0;
  uint64_t mma_flops = 0;
  /// Those of them that `wgmma` did.
  uint64_t wgmma_flops = 0;
  /// With `launch::timing` only: the sum, over the blocks that were run, of the cycles of the
  /// block's critical path without contention.
  uint64_t block_critical_cycles = 0;
  /// Doubtful but not fatal things, sorted, each once.
  std::vector<std::string> warnings;

  const category_counts& operator[](category c) const {
    return by_category[static_cast<size_t>(c)];
  }
  friend bool operator==(const counts&, const counts&) = default;
};

enum class fault_kind : uint8_t {
  none,
  out_of_bounds,
  misaligned,
  write_to_read_only,
  /// Part of a warp at a barrier that the rest of it never reaches.
  barrier_divergence,
  /// A warp-synchronous instruction whose mask names lanes that do not take part.
  bad_mask,
  deadlock,
  instruction_limit,
  /// `assert` in device code.
  assertion,
  trap,
  bad_launch,
  unsupported,
  /// Tensor memory that is not allocated, not freed, not reached by this warp...
  tensor_memory,
  /// Tensor memory is read or written while an asynchronous operation may still do so.
  missing_tensor_wait,
  // What only `launch::checks` finds.
  /// A wait has told that tensor memory is written, and no tcgen05.fence::after_thread_sync
  /// follows.
  missing_tensor_fence,
  shared_race,
  global_race,
  /// A value that nobody has given decides a branch, is an address, or is stored as a result.
  uninitialised,
  /// A result is read, or added to, before anybody has written it.
  read_before_write,
  /// A copy or a wgmma reads what a thread wrote, and no proxy fence lies between.
  missing_proxy_fence,
  missing_wgmma_fence,
  missing_wgmma_wait,
  /// A wait for a phase of an mbarrier that never comes, or for one that the thread has waited for
  /// before.
  mbarrier_phase,
  /// Results depend on the order of blocks and warps.
  order_dependent
};

/// A line of the program that the PTX was made from, as `.loc` names it.
struct source_place {
  /// Without folders; empty when the PTX does not say.
  std::string file;
  int line = 0;
};

/// An instruction that a thread executed.
struct executed_place {
  int ptx_line = 0;
  source_place source;
  /// Text of the instruction.
  std::string instruction;
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> thread{};
};

struct fault : executed_place {
  fault_kind kind = fault_kind::none;
  /// A whole sentence with the entry, the PTX line and its text, the block and the thread.
  std::string what;
  std::string entry;
  /// Of a race or a missing fence: the access before.
  std::optional<executed_place> other;
  /// How often it was seen.
  uint64_t times = 1;
};

/// What one line of the PTX did, over all blocks that were run.
struct line_counts {
  int ptx_line = 0;
  source_place source;
  std::string instruction;
  category counted = category::other;
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;
  /// Bytes that lanes asked for, by where they went: global, shared, local memory.
  std::array<uint64_t, 3> bytes{};
  /// Passes that they took: sectors of global and local memory, wavefronts of shared memory.
  std::array<uint64_t, 3> passes{};
  /// Of a branch: how often the lanes of a warp parted.
  uint64_t diverged = 0;
};

struct outcome {
  counts done;
  /// What ended the run.
  std::optional<fault> failed;
  /// What `launch::checks` found, each pair of instructions once, in order of appearance.
  std::vector<fault> findings;
  uint64_t findings_left_out = 0;
  /// With `launch::per_line`, in order of the text; lines that were never reached are left out.
  std::vector<line_counts> lines;
  /// What printf printed, in the order in which the mock executed it.
  std::string printed;
  uint64_t printed_left_out = 0;
  /// Accesses to global memory that no check looked at, for want of memory.
  uint64_t unwatched = 0;
};

/// The global variables of a module, with contents that persist from launch to launch.
/// Not for use by two threads at a time.
class instance {
public:
  explicit instance(std::shared_ptr<const module> code);
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;
  ~instance();

  const module& code() const;
  /// The bytes of all variables that a kernel can write (that is, without `.const`).
  std::vector<uint8_t> snapshot() const;
  /// Puts the bytes of a snapshot of this instance back.
  void restore(const std::vector<uint8_t>& bytes);
  /// Device address of a variable, as device code sees it; the same in every instance of a module.
  /// Fails with `not_found`.
  result<uint64_t> address(std::string_view global) const;
  /// All the variables: read-only and writable ones. The host pointers live as long as this.
  const std::vector<region>& memory() const;

private:
  std::shared_ptr<const module> code_;
  std::vector<uint8_t> bytes_;
  std::vector<region> regions_;
};

std::unique_ptr<instance> load(std::shared_ptr<const module> code);

/// Executes an entry. Deterministic: the same numbers and counts, bit by bit, for the same
/// arguments. After a fault the memory holds whatever had been written until then.
outcome run(instance& state, const launch& what);

std::string to_string(fault_kind kind);
std::string to_string(category which);

} // namespace gristmill::ptx
