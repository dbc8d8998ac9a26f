#pragma once

#include <cstddef>
#include <cstdint>

/// What bounds the work on a hostile text. All far above what front ends produce: a CUTLASS kernel
/// has some 10,000 instructions and 2 MiB of text.
namespace gristmill::ptx {

constexpr size_t text_bytes_max = 16U << 20;
/// Declared registers of one function, and of all functions together.
constexpr uint32_t registers_max = 1U << 16;
constexpr uint32_t registers_total_max = 1U << 20;
/// Operations of one entry after all calls are expanded.
constexpr size_t operations_max = 1U << 19;
/// Operations of a whole module.
constexpr size_t operations_total_max = 1U << 21;
constexpr uint32_t call_depth_max = 32;
/// Nested `{ }` in a body, nested braces in an operand.
constexpr uint32_t scope_depth_max = 64;
constexpr uint32_t operand_depth_max = 4;
/// The accumulators of a wgmma are 128.
constexpr size_t operands_max = 160;
constexpr size_t parameters_max = 4096;
/// Bytes of the parameters of one entry, as CUDA limits them.
constexpr uint32_t parameter_bytes_max = 32764;
constexpr uint32_t shared_bytes_max = 1U << 20;
/// Bytes of `.local` variables of one thread, as CUDA limits them.
constexpr uint32_t local_bytes_max = 512U << 10;
constexpr uint64_t global_bytes_max = 256ULL << 20;
/// Blocks of a cluster.
constexpr uint32_t cluster_blocks_max = 8;
/// State of all blocks that have begun and wait for others.
constexpr uint64_t resident_bytes_max = 1ULL << 30;
/// Pieces of global memory of which the atomics are counted one by one; the first that are touched.
constexpr size_t atomic_pieces_max = 1U << 16;
/// Registers of one warp in bytes.
constexpr uint64_t register_file_bytes_max = 32ULL << 20;

} // namespace gristmill::ptx
