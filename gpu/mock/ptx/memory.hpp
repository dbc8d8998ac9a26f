#pragma once

#include "gpu/mock/ptx/lanes/access.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <string_view>

namespace gristmill::ptx {

/// Handlers of `ld` and `st` for a memory type and the bytes of the registers in `list`; nullptr
/// when the registers are too narrow or the type is none. The address is in `a`, the number of
/// elements in `elements`; `mode` bit 0: not through L1.
handler load_handler(std::string_view type, uint32_t register_bytes);
handler store_handler(std::string_view type, uint32_t register_bytes);

/// `operation` is "add", "cas", ...; nullptr when that does not exist for the type. Operands in b
/// and c, the old value goes to d.
handler atomic_handler(std::string_view operation, std::string_view type);
/// The same for `red.global.add.v2.f32` and its like, operands in `list`.
handler vector_reduction_handler(std::string_view operation, std::string_view type);

/// Addresses of all lanes: the register in `a` plus `imm`.
void addresses_of(warp& w, const operation& o, uint64_t* out);

/// Checks bounds, alignment and permission of an access of `bytes` a lane, counts it, and finds the
/// host memory. Raises faults. `addresses` are cut to the space.
void resolve(warp& w, const operation& o, uint64_t* addresses, uint32_t bytes, bool write,
  bool atomic, host_access& out);

/// Adds to the counts what accesses that were like a remembered one have counted.
void add_remembered(access_memo& m, operation_counts& n);

/// Host memory of one range of global memory; nullptr when it is in no region, or not writable.
uint8_t* find_global(warp& w, const operation& o, uint64_t address, uint64_t bytes, bool write);
/// The same; raises a fault with this reason.
uint8_t* need_global(warp& w, const operation& o, uint64_t address, uint64_t bytes, bool write,
  uint32_t lane, const char* doing);
uint8_t* need_shared(
  warp& w, uint64_t address, uint64_t bytes, bool write, uint32_t lane, const char* doing);
/// The block in whose shared memory a `.shared::cluster` address is: the own one, or another of the
/// cluster. Raises a fault when there is none, or when it has exited.
block_state& block_of(warp& w, uint64_t address, uint32_t lane);
/// Host memory of a range of `.shared::cluster`. Does not count as a change of memory.
uint8_t* need_cluster(
  warp& w, uint64_t address, uint64_t bytes, bool write, uint32_t lane, const char* doing);

/// Passes of a shared memory access: distinct words a bank, summed over the parts in which a wide
/// access is served.
uint32_t bank_wavefronts(uint32_t active, const uint64_t* addresses, uint32_t bytes);
/// Counts sectors and lines of global memory.
void count_global(warp& w, const operation& o, const uint64_t* addresses, uint32_t bytes,
  bool write, bool through_l1);
/// Counts one sector; whether the request went past L1.
bool touch_sector(warp& w, uint64_t sector, bool write, bool through_l1);
/// Counts the sectors of one instruction, ascending, and the requests to L2 that they make.
void touch_sectors(
  warp& w, const operation& o, const uint64_t* sectors, size_t count, bool write, bool through_l1);
/// Counts bytes and sectors of one range of global memory that a copy moves past L1; `bytes` is not
/// 0.
void count_range(warp& w, const operation& o, uint64_t address, uint64_t bytes, bool write);

} // namespace gristmill::ptx
