#include <cstdint>
#include <cuda_bf16.h>

// C = A B^T by mma.sync with fragments read straight from memory: 64 x 32 a warp, four warps a
// block.
extern "C" __global__ void __launch_bounds__(128)
  gemm_mma_direct(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
    float* __restrict__ c, int n, int k) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int m0 = static_cast<int>(blockIdx.y) * 64,
            n0 = static_cast<int>(blockIdx.x) * 128 + warp * 32;
  float sum[4][4][4] = {};
  const auto at = [&](const __nv_bfloat16* from, int row, int column) {
    return *reinterpret_cast<const uint32_t*>(from + static_cast<size_t>(row) * k + column);
  };
  for (int k0 = 0; k0 < k; k0 += 16) {
    uint32_t p[4][4], q[4][2];
    const int column = k0 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = m0 + i * 16 + lane / 4;
      p[i][0] = at(a, row, column);
      p[i][1] = at(a, row + 8, column);
      p[i][2] = at(a, row, column + 8);
      p[i][3] = at(a, row + 8, column + 8);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      q[j][0] = at(b, n0 + j * 8 + lane / 4, column);
      q[j][1] = at(b, n0 + j * 8 + lane / 4, column + 8);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
          : "r"(p[i][0]), "r"(p[i][1]), "r"(p[i][2]), "r"(p[i][3]), "r"(q[j][0]), "r"(q[j][1]));
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = m0 + i * 16 + lane / 4, column = n0 + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(&c[static_cast<size_t>(row) * n + column]) =
        make_float2(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<float2*>(&c[static_cast<size_t>(row + 8) * n + column]) =
        make_float2(sum[i][j][2], sum[i][j][3]);
    }
}
