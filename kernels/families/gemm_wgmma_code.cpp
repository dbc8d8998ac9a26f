#include "kernels/families/gemm_code.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// One multiplication of 64 rows by `columns` columns, 16 deep, as inline assembly.
std::string multiply_code(int columns, std::string_view type) {
  const int sums = columns / 2;
  std::string registers;
  std::string operands;
  for (int i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ",", i);
    operands += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  return fmt::format(
    R"(__device__ __forceinline__ void multiply_group(float (&d)[{0}], uint64_t a, uint64_t b) {{
  asm volatile("wgmma.mma_async.sync.aligned.m64n{1}k16.f32.{2}.{2} {{{3}}}, %{0}, %{4}, 1, 1, 1, 0, 0;"
               : {5}
               : "l"(a), "l"(b));
}}
)",
    sums, columns, type, registers, sums + 1, operands);
}

} // namespace

std::string gemm_wgmma_code(dtype type, int columns) {
  std::string code = R"(#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WARPGROUP_UNITS 1
#else
#define HAS_WARPGROUP_UNITS 0
#endif

// As the launch plan encodes it.
struct alignas(64) tensor_map {
  char opaque[128];
};

#if HAS_WARPGROUP_UNITS
__device__ __forceinline__ unsigned shared_place(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
)";
  code += multiply_code(columns, type == dtype::bfloat16 ? "bf16" : "f16");
  code += R"(
// Tiles have rows of 64 numbers, as a copy with the 128-byte swizzle leaves them: groups of eight
// rows are 1024 bytes apart.
__device__ __forceinline__ uint64_t tile_descriptor(unsigned place) {
  return static_cast<uint64_t>((place & 0x3ffff) >> 4) | uint64_t(1) << 16 | uint64_t(64) << 32
    | uint64_t(1) << 62;
}

__device__ __forceinline__ void await_phase(unsigned barrier, unsigned parity) {
  asm volatile("{\n"
               " .reg .pred done;\n"
               "again:\n"
               " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               " @!done bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

__device__ __forceinline__ void bring_tile(
  unsigned to, const tensor_map* map, int depth, int row, unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
               "l"(map), "r"(depth), "r"(row), "r"(barrier)
               : "memory");
}

// The same place of every block of a cluster gets the tile, and its barrier the bytes.
__device__ __forceinline__ void bring_tile_to_all(unsigned to, const tensor_map* map, int depth,
  int row, unsigned barrier, unsigned short blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
               "l"(map), "r"(depth), "r"(row), "r"(barrier), "h"(blocks)
               : "memory");
}

__device__ __forceinline__ void arrive_at(unsigned barrier, int block) {
  asm volatile("{\n"
               " .reg .b32 there;\n"
               " mapa.shared::cluster.u32 there, %0, %1;\n"
               " mbarrier.arrive.shared::cluster.b64 _, [there];\n"
               "}" ::"r"(barrier),
               "r"(block)
               : "memory");
}

__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release;\n"
               "barrier.cluster.wait.acquire;" ::: "memory");
}
#endif

// Two neighbouring columns of one 8 x 8 block and two of the next become four of one: the lanes of
// a pair exchange halves, so that four lanes write whole sectors of a row.
__device__ __forceinline__ void exchange_columns(
  const float* here, const float* next, bool is_odd, float (&four)[4]) {
  const float a = __shfl_xor_sync(0xffffffffu, is_odd ? here[0] : next[0], 1);
  const float b = __shfl_xor_sync(0xffffffffu, is_odd ? here[1] : next[1], 1);
  four[0] = is_odd ? a : here[0];
  four[1] = is_odd ? b : here[1];
  four[2] = is_odd ? next[0] : a;
  four[3] = is_odd ? next[1] : b;
}

// BM x BN elements a tile, of which each of two warpgroups computes half of the rows; a third one
// brings operands, STAGES steps of 64 along the depth ahead, also of the next tile while the sums of
// this one leave. Blocks take tile after tile. CLUSTER blocks have tiles below each other: each
// brings its part of the right operand to all of them.
template <int BM, int BN, int STAGES, int W, int CLUSTER>
__device__ __forceinline__ void warpgroup_tiles(
  const task& p, const tensor_map* left_map, const tensor_map* right_map) {
#if HAS_WARPGROUP_UNITS
  constexpr int MI = BM / 128;
  constexpr unsigned left_bytes = BM * 128;
  constexpr unsigned stage_bytes = left_bytes + BN * 128;
  extern __shared__ __align__(16) unsigned char group_memory[];
  __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
  const unsigned tiles_at = (shared_place(group_memory) + 1023u) & ~1023u;
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / 128;
  const index_t down = (p.rows() + BM * CLUSTER - 1) / (BM * CLUSTER);
  const index_t across = (p.columns() + BN - 1) / BN;
  const index_t count = down * across;
  const int steps = static_cast<int>((p.depth() + 63) / 64);
  const int rank = CLUSTER == 1 ? 0 : static_cast<int>(blockIdx.x % CLUSTER);
  const index_t first_tile = blockIdx.x / CLUSTER;
  const index_t tile_step = gridDim.x / CLUSTER;
  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_place(&full[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_place(&empty[s])),
                   "r"(2 * CLUSTER)
                   : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if constexpr (CLUSTER > 1)
    meet_cluster();
  // Eight rows of tiles down before the next column of tiles: neighbours in time share operands.
  const auto tile_at = [&](index_t tile, index_t& row, index_t& column) {
    const index_t first = tile / (8 * across) * 8;
    const index_t height = down - first < 8 ? down - first : 8;
    const index_t inside = tile - first * across;
    row = ((first + inside % height) * CLUSTER + rank) * BM;
    column = inside / height * BN;
  };
  // A stage may be filled again when all blocks that it was brought to are done with it.
  const auto release = [&](unsigned barrier) {
    if constexpr (CLUSTER == 1) {
      if (thread % 128 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    } else if (thread % 128 < CLUSTER) {
      arrive_at(barrier, thread % 128);
    }
  };
  int stage = 0;
  unsigned parity = 0;
  const auto advance = [&] {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  };
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (thread == 0) {
      for (index_t tile = first_tile; tile < count; tile += tile_step) {
        index_t row, column;
        tile_at(tile, row, column);
        for (int step = 0; step < steps; ++step) {
          const unsigned barrier = shared_place(&full[stage]);
          // A new barrier counts as one whose phase before the first is over.
          await_phase(shared_place(&empty[stage]), parity ^ 1);
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                       "r"(stage_bytes)
                       : "memory");
          const unsigned to = tiles_at + stage * stage_bytes;
          bring_tile(to, left_map, step * 64, static_cast<int>(row), barrier);
          if constexpr (CLUSTER == 1)
            bring_tile(to + left_bytes, right_map, step * 64, static_cast<int>(column), barrier);
          else
            bring_tile_to_all(to + left_bytes + rank * (BN / CLUSTER * 128), right_map, step * 64,
              static_cast<int>(column) + rank * (BN / CLUSTER), barrier, (1 << CLUSTER) - 1);
          advance();
        }
      }
    }
    // Its memory has to be there for as long as others bring tiles.
    if constexpr (CLUSTER > 1) {
      __syncwarp();
      meet_cluster();
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  const int lane = thread % 32;
  const unsigned mine = (group - 1) * MI * 64;
  for (index_t tile = first_tile; tile < count; tile += tile_step) {
    tile_place at{};
    tile_at(tile, at.row, at.column);
    float sum[MI][BN / 2];
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
      for (int e = 0; e < BN / 2; ++e)
        sum[i][e] = 0.0f;
    // The zeros stay before the first fence.
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
      for (int e = 0; e < BN / 2; ++e)
        asm volatile("" : "+f"(sum[i][e])::"memory");
    unsigned before = 0;
    for (int step = 0; step < steps; ++step) {
      await_phase(shared_place(&full[stage]), parity);
      const unsigned left = tiles_at + stage * stage_bytes + mine * 128;
      const unsigned right = tiles_at + stage * stage_bytes + left_bytes;
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int i = 0; i < MI; ++i)
          multiply_group(sum[i], tile_descriptor(left + i * 8192 + k * 32),
            tile_descriptor(right + k * 32));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      // The step before this one is done with its stage.
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (step > 0)
        release(before);
      before = shared_place(&empty[stage]);
      advance();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    // Nothing reads the sums before that.
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
      for (int e = 0; e < BN / 2; ++e)
        asm volatile("" : "+f"(sum[i][e])::"memory");
    if (steps > 0)
      release(before);
    // A lane holds two neighbours in row lane / 4 and two in the row eight below.
#pragma unroll
    for (int i = 0; i < MI; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const index_t row =
          at.row + mine + i * 64 + thread % 128 / 32 * 16 + half * 8 + lane / 4;
        if constexpr (W >= 4) {
#pragma unroll
          for (int j = 0; j < BN / 8; j += 2) {
            float four[4];
            exchange_columns(
              &sum[i][j * 4 + half * 2], &sum[i][j * 4 + 4 + half * 2], lane % 2 == 1, four);
            if (row < p.rows())
              leave_all<4, 4, 1>(
                p, at, row, at.column + (j + lane % 2) * 8 + lane % 4 / 2 * 4, four);
          }
        } else if (row < p.rows()) {
#pragma unroll
          for (int j = 0; j < BN / 8; ++j)
            leave_all<2, (W < 2 ? W : 2), 1>(
              p, at, row, at.column + j * 8 + lane % 4 * 2, &sum[i][j * 4 + half * 2]);
        }
      }
    }
  }
  if constexpr (CLUSTER > 1)
    meet_cluster();
#endif
}

)";
  return code;
}

} // namespace gristmill
