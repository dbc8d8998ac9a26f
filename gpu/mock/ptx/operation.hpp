#pragma once

#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/mock/ptx/syntax.hpp"

#include <cstdint>

/// The decoded form of an instruction and what its handler sees of a warp.
///
/// A register of a warp is an array of 32 values side by side. Constants, special registers and
/// parameters are registers too, filled before the start, so that a handler never asks what kind of
/// operand it has. Register 0 and predicate 0 are sinks: what is written to `_` goes there.
namespace gristmill::ptx {

constexpr uint32_t warp_lanes = 32;
constexpr uint32_t all_lanes = UINT32_MAX;

struct operation;
struct access_memo;

/// The part of a warp that lane-wise handlers need.
struct lane_state {
  uint8_t* registers = nullptr;
  /// One bit a lane.
  uint32_t* predicates = nullptr;
  /// Lanes that execute the current operation; never 0 in a handler.
  uint32_t active = 0;
  /// What `ld` and `st` remember, by `operation::access`; null where each access has to be looked
  /// at.
  access_memo* accesses = nullptr;
  /// Of the block, and of the warp.
  uint8_t* shared = nullptr;
  uint8_t* local = nullptr;
  /// Of the run: see `block_state::changes`.
  uint64_t* changes = nullptr;
};

using handler = void (*)(lane_state&, const operation&);

/// What the loop over the operations has to do around the handler.
enum class flow : uint8_t {
  straight,
  branch,
  indexed_branch,
  /// End of the thread.
  exit,
  /// Needs all lanes that the mask in `e` names.
  warp_sync,
  block_barrier,
  /// Straight, but other warps should run afterwards when it says so (`warp::yields`), and the
  /// operation may have to be executed again (`warp::again`).
  waiting
};

/// What an operation does with memory, for those who watch it: bits of `operation::traits`.
enum memory_trait : uint8_t {
  trait_load = 1,
  trait_store = 2,
  /// Both at once: an atomic operation.
  trait_update = 3,
  trait_access = 3,
  /// Volatile, relaxed or stronger.
  trait_strong = 4,
  trait_acquire = 8,
  trait_release = 16,
  /// Only among the threads of the block.
  trait_block_scope = 32
};

struct operation {
  handler run = nullptr;
  flow kind = flow::straight;
  category counted = category::other;
  /// A helper that no instruction of the text stands for: not counted.
  bool hidden = false;
  /// `flow::waiting`: looks at memory that others write. Doing so over and over ends the turn.
  bool polls = false;
  /// May go to the shared memory of other blocks of the cluster.
  bool in_cluster = false;
  space where = space::generic;
  /// Bytes of one element of a memory access, and how many there are.
  uint8_t bytes = 4;
  uint8_t elements = 1;
  /// Bytes of the register that holds the address.
  uint8_t address_bytes = 8;
  /// Which of a family; each handler has its own meaning.
  uint8_t mode = 0;
  /// Sum of `memory_trait`.
  uint8_t traits = 0;
  bool guard_negated = false;
  int32_t guard = -1;
  /// Destination and sources: register numbers while decoding, then byte offsets in the registers.
  uint32_t d = 0;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t e = 0;
  /// Predicates: p and q are usually written, r is read.
  uint32_t p = 0;
  uint32_t q = 0;
  uint32_t r = 0;
  int64_t imm = 0;
  /// Operation number.
  uint32_t target = 0;
  /// Further registers (vectors, fragments): a range of `kernel::lists`.
  const uint32_t* list = nullptr;
  uint32_t list_first = 0;
  uint32_t list_size = 0;
  /// Number of a load or store among those of the kernel.
  uint32_t access = 0;
  /// Number of the statement in `kernel::sources`.
  uint32_t source = 0;
  uint32_t flops = 0;
  /// Number in `expansions()`.
  uint16_t expands = 0;
};

} // namespace gristmill::ptx
