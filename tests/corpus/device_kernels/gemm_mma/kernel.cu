#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// C = A B^T on the tensor cores by mma.sync m16n8k16: BM x BN a block, 32 deep, WM x WN a warp,
// STAGES buffers filled by cp.async, fragments by ldmatrix. KIND is "bf16" or "f16" by IS_BF16.
constexpr int depth = 32, pitch = depth + 8;
constexpr int warps_n = BN / WN, threads = BM / WM * warps_n * 32;
constexpr int stage_elements = (BM + BN) * pitch;
#if IS_BF16
using element = __nv_bfloat16;
#define MMA_KIND "bf16.bf16"
#else
using element = __half;
#define MMA_KIND "f16.f16"
#endif

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

extern "C" __global__ void __launch_bounds__(threads) gemm_mma(const element* __restrict__ a,
  const element* __restrict__ b, float* __restrict__ c, int n, int k) {
  extern __shared__ __align__(16) unsigned char memory[];
  element* tiles = reinterpret_cast<element*>(memory);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_m = warp / warps_n * WM, warp_n = warp % warps_n * WN;
  const int m0 = static_cast<int>(blockIdx.y) * BM, n0 = static_cast<int>(blockIdx.x) * BN;
  float sum[WM / 16][WN / 8][4] = {};

  const auto fetch = [&](int step) {
    if (step * depth < k) {
      element* to = tiles + step % STAGES * stage_elements;
      for (int i = thread; i < (BM + BN) * 4; i += threads) {
        const int row = i / 4, column = i % 4 * 8;
        const element* from = row < BM ? a + static_cast<size_t>(m0 + row) * k
                                       : b + static_cast<size_t>(n0 + row - BM) * k;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       shared_address(to + row * pitch + column)),
                     "l"(from + step * depth + column)
                     : "memory");
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int s = 0; s < STAGES - 1; ++s)
    fetch(s);
  for (int step = 0; step * depth < k; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    fetch(step + STAGES - 1);
    const element* left = tiles + step % STAGES * stage_elements;
    const element* right = left + BM * pitch;
#pragma unroll
    for (int kk = 0; kk < depth; kk += 16) {
      uint32_t p[WM / 16][4], q[WN / 16][4];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
        asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
          : "=r"(p[i][0]), "=r"(p[i][1]), "=r"(p[i][2]), "=r"(p[i][3])
          : "r"(shared_address(left + (warp_m + i * 16 + lane % 16) * pitch + kk + lane / 16 * 8)));
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
        asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
          : "=r"(q[j][0]), "=r"(q[j][1]), "=r"(q[j][2]), "=r"(q[j][3])
          : "r"(shared_address(
            right + (warp_n + j * 16 + lane % 8 + lane / 16 * 8) * pitch + kk + lane / 8 % 2 * 8)));
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
          asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32." MMA_KIND ".f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
            : "r"(p[i][0]), "r"(p[i][1]), "r"(p[i][2]), "r"(p[i][3]), "r"(q[j / 2][j % 2 * 2]),
            "r"(q[j / 2][j % 2 * 2 + 1]));
    }
  }
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 8; ++j) {
      const int row = m0 + warp_m + i * 16 + lane / 4, column = n0 + warp_n + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(&c[static_cast<size_t>(row) * n + column]) =
        make_float2(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<float2*>(&c[static_cast<size_t>(row + 8) * n + column]) =
        make_float2(sum[i][j][2], sum[i][j][3]);
    }
}
