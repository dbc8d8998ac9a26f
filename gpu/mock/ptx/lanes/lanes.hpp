#pragma once

#include "gpu/mock/ptx/operation.hpp"

#include <cstddef>
#include <cstdint>

/// Lane-wise arithmetic: for each instruction a name, the widths of its operands, and a handler.
///
/// The sources in this folder are compiled twice, for any x86-64 (or other) processor and for AVX2,
/// into a namespace each. Both give the same bits: no result depends on the instruction set, and a
/// fused multiply-add is a true one in both.
namespace gristmill::ptx {

struct lane_entry {
  /// The opcode without modifiers that change nothing (`rn`, `approx`): "add.sat.f32".
  const char* name;
  handler run;
  category counted;
  /// Bytes of the destination and of each source; 0 = no such operand.
  uint8_t destination;
  uint8_t sources[4];
  /// Floating-point immediates are numbers of this format: 'f' (f32), 'd' (f64), 'i' none.
  char immediates;
  uint8_t flops;
};

struct lane_entries {
  const lane_entry* first;
  size_t size;
};

/// Compares a and b into p and its complement q, combined with r: `mode` bits 0-1: 0 alone, 1 and,
/// 2 or, 3 xor; bit 2: r negated.
struct compare_entry {
  /// "lt.f32"
  const char* name;
  handler run;
  category counted;
  uint8_t bytes;
  char immediates;
};

/// Converts a to d. `mode` is a `rounding`, `imm` a sum of `conversion_flag`.
struct convert_entry {
  /// "f32.s64": destination, source
  const char* name;
  handler run;
};

enum rounding : uint8_t {
  round_none,
  round_nearest,
  round_zero,
  round_down,
  round_up,
  round_nearest_away
};

enum conversion_flag : uint8_t { convert_saturate = 1, convert_relu = 2, convert_flush = 4 };

/// Which lanes are active and how 32 addresses lie, found fast.
struct address_pattern {
  /// All the same, or each one `stride` above the one before.
  bool uniform = false;
  bool sequential = false;
};

struct lane_library {
  lane_entries integer;
  lane_entries floating;
  lane_entries half;
  lane_entries math;
  lane_entries packed;
  const compare_entry* compare;
  size_t compare_size;
  const convert_entry* convert;
  size_t convert_size;
  /// Moves of 2, 4, 8 bytes; selections by predicate r.
  handler move[3];
  handler select[3];
  handler convert_pair[4];
  /// `mov` from a `list` of parts into d, and from a into parts; null for other than 2 or 4 of 2
  /// bytes and 2 of 4.
  handler (*pack)(uint32_t part_bytes, uint32_t parts);
  handler (*unpack)(uint32_t part_bytes, uint32_t parts);
  /// `shfl` with all lanes active: up, down, bfly, idx.
  handler shuffle_all[4];
  address_pattern (*pattern)(const uint64_t* addresses, uint64_t stride);
  /// `ld` and `st` by the bytes of an element in memory and of its register; null where these do
  /// not go together.
  handler (*load)(bool is_signed, uint32_t memory_bytes, uint32_t register_bytes);
  handler (*store)(uint32_t memory_bytes, uint32_t register_bytes);
  /// Of the words of the active lanes, which are below 2^31: how many are the same; how many
  /// different ones are in one of 32 banks.
  uint32_t (*most_equal)(uint32_t active, const uint32_t* words);
  uint32_t (*most_in_a_bank)(uint32_t active, const uint32_t* words);
  /// `mma.m16n8k8` and `k16`: f16, bf16, f16 with sums of f16.
  handler multiply[3];
};

namespace lanes_portable {
extern const lane_library library;
}
#ifdef GRISTMILL_PTX_HAS_AVX2
namespace lanes_avx2 {
extern const lane_library library;
}
#endif

/// The best library for this processor.
const lane_library& lanes();
/// For the tests that compare the two: nullptr where the processor has no AVX2.
const lane_library* lanes_for_avx2();

} // namespace gristmill::ptx
