#include "kernels/families/gemm_code.hpp"

namespace gristmill {

std::string gemm_mma_code(dtype type) {
  std::string code = R"(__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// Four matrices of 8 x 8 numbers; lane i names row i % 8 of matrix i / 8.
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const unsigned short* row) {
  const unsigned at = shared_address(row);
  if (TRANSPOSED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void multiply_add(
  float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.TYPE.TYPE.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies V numbers to shared memory without waiting for them; zeros where nothing is `inside`.
template <int V>
__device__ __forceinline__ void copy_async(
  unsigned short* to, const unsigned short* from, bool inside) {
  const unsigned at = shared_address(to);
  const unsigned bytes = inside ? 2 * V : 0;
  if (V == 8)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
  else if (V == 4)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}

// BM x BN elements a block, WM x WN a warp, in pieces of 16 x 8; STAGES steps of BK along the depth
// are on their way at a time.
template <int BM, int BN, int BK, int WM, int WN, int STAGES, int VL, int VR, int W, int SPLITS>
__device__ __forceinline__ void mma_tile(const task& p) {
  constexpr int across = BN / WN;
  constexpr int threads = BM / WM * across * 32;
  constexpr int MT = WM / 16;
  constexpr int NT = WN / 8;
  using left_slot = tile_slot<task::left_along_depth, BM, BK, VL>;
  using right_slot = tile_slot<task::right_along_depth, BN, BK, VR>;
  // Eight more numbers a line: rows of a matrix then lie in different banks.
  constexpr int left_line = (task::left_along_depth ? BK : BM) + 8;
  constexpr int right_line = (task::right_along_depth ? BK : BN) + 8;
  constexpr int left_size = left_line * (task::left_along_depth ? BM : BK);
  constexpr int right_size = right_line * (task::right_along_depth ? BN : BK);
  constexpr int left_loads = (left_slot::count + threads - 1) / threads;
  constexpr int right_loads = (right_slot::count + threads - 1) / threads;
  constexpr bool left_async = task::left_is_plain && VL > 1;
  constexpr bool right_async = task::right_is_plain && VR > 1;
  extern __shared__ __align__(16) unsigned short stage_memory[];
  const int tid = static_cast<int>(threadIdx.x);
  const int lane = tid % 32;
  const int warp_row = tid / 32 / across * WM;
  const int warp_column = tid / 32 % across * WN;
  const tile_place at = place_of<BM, BN>(p);
  index_t begin, end;
  depth_range<SPLITS, BK>(p, at.split, begin, end);

  task::left_place left_from[left_loads];
  task::right_place right_from[right_loads];
  bool left_inside[left_loads];
  bool right_inside[right_loads];
#pragma unroll
  for (int i = 0; i < left_loads; ++i) {
    const int slot = tid + i * threads;
    const index_t row = at.row + left_slot::row(slot);
    left_inside[i] = slot < left_slot::count && row < p.rows();
    left_from[i] = p.left_at(at.batch, left_inside[i] ? row : 0);
  }
#pragma unroll
  for (int i = 0; i < right_loads; ++i) {
    const int slot = tid + i * threads;
    const index_t column = at.column + right_slot::row(slot);
    right_inside[i] = slot < right_slot::count && column < p.columns();
    right_from[i] = p.right_at(at.batch, right_inside[i] ? column : 0);
  }
  const auto fetch = [&](int stage, index_t start) {
    unsigned short* const left_to = stage_memory + stage * (left_size + right_size);
    unsigned short* const right_to = left_to + left_size;
#pragma unroll
    for (int i = 0; i < left_loads; ++i) {
      const int slot = tid + i * threads;
      if (left_slot::count % threads != 0 && slot >= left_slot::count)
        continue;
      const int row = left_slot::row(slot);
      const int depth = left_slot::depth(slot);
      const bool inside = left_inside[i] && start + depth < end;
      unsigned short* const to =
        left_to + (task::left_along_depth ? row * left_line + depth : depth * left_line + row);
      if constexpr (left_async) {
        copy_async<VL>(to, p.left_address(left_from[i], inside ? start + depth : 0), inside);
      } else {
        packed<unsigned short, VL> some;
        if (inside) {
          p.load_left_bits<VL>(left_from[i], start + depth, some);
        } else {
#pragma unroll
          for (int e = 0; e < VL; ++e)
            some.values[e] = 0;
        }
        some.store(to);
      }
    }
#pragma unroll
    for (int i = 0; i < right_loads; ++i) {
      const int slot = tid + i * threads;
      if (right_slot::count % threads != 0 && slot >= right_slot::count)
        continue;
      const int column = right_slot::row(slot);
      const int depth = right_slot::depth(slot);
      const bool inside = right_inside[i] && start + depth < end;
      unsigned short* const to = right_to
        + (task::right_along_depth ? column * right_line + depth : depth * right_line + column);
      if constexpr (right_async) {
        copy_async<VR>(to, p.right_address(right_from[i], inside ? start + depth : 0), inside);
      } else {
        packed<unsigned short, VR> some;
        if (inside) {
          p.load_right_bits<VR>(right_from[i], start + depth, some);
        } else {
#pragma unroll
          for (int e = 0; e < VR; ++e)
            some.values[e] = 0;
        }
        some.store(to);
      }
    }
  };

  float sum[MT][NT][4];
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sum[i][j][e] = 0.0f;
  const int steps = static_cast<int>((end - begin + BK - 1) / BK);
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    if (stage < steps)
      fetch(stage, begin + index_t(stage) * BK);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    const int next = step + STAGES - 1;
    if (next < steps)
      fetch(next % STAGES, begin + index_t(next) * BK);
    asm volatile("cp.async.commit_group;" ::: "memory");
    const unsigned short* const left_tile =
      stage_memory + step % STAGES * (left_size + right_size);
    const unsigned short* const right_tile = left_tile + left_size;
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      unsigned a[MT][4];
      unsigned b[NT / 2][4];
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        const int row = warp_row + i * 16;
        if (task::left_along_depth)
          load_matrices<false>(
            a[i], left_tile + (row + lane % 16) * left_line + k + lane / 16 * 8);
        else
          load_matrices<true>(a[i],
            left_tile + (k + lane % 8 + lane / 16 * 8) * left_line + row + lane / 8 % 2 * 8);
      }
#pragma unroll
      for (int j = 0; j < NT / 2; ++j) {
        const int column = warp_column + j * 16;
        if (task::right_along_depth)
          load_matrices<false>(b[j],
            right_tile + (column + lane % 8 + lane / 16 * 8) * right_line + k + lane / 8 % 2 * 8);
        else
          load_matrices<true>(b[j],
            right_tile + (k + lane % 8 + lane / 8 % 2 * 8) * right_line + column + lane / 16 * 8);
      }
#pragma unroll
      for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j)
          multiply_add(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  // A lane holds two neighbours in row lane / 4 and two in the row eight below.
#pragma unroll
  for (int i = 0; i < MT; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const index_t row = at.row + warp_row + i * 16 + half * 8 + lane / 4;
      if (row >= p.rows())
        continue;
#pragma unroll
      for (int j = 0; j < NT; ++j)
        leave_all<2, (W < 2 ? W : 2), SPLITS>(p, at, row,
          at.column + warp_column + j * 8 + lane % 4 * 2, &sum[i][j][half * 2]);
    }
  }
}

)";
  const std::string_view name = type == dtype::bfloat16 ? "bf16" : "f16";
  for (size_t at = code.find("TYPE"); at != std::string::npos; at = code.find("TYPE", at))
    code.replace(at, 4, name);
  return code;
}

} // namespace gristmill
