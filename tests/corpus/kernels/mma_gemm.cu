#include <cstdint>
#include <cuda_bf16.h>

// C[M,N] (float) = A[M,K] * B[N,K]^T (bf16) on the tensor cores: 64 x 64 of C a block of four warps, 32
// deep, two buffers filled by cp.async, ldmatrix, mma.sync m16n8k16. All sizes are multiples of 64.
constexpr int block_m = 64, block_n = 64, block_k = 32;
// Eight elements of padding a row keep ldmatrix free of bank conflicts.
constexpr int pitch = block_k + 8;

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void copy_16(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ void load_four(uint32_t (&r)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
    : "r"(from));
}
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128) mma_gemm(const __nv_bfloat16* __restrict__ a,
    const __nv_bfloat16* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(16) __nv_bfloat16 a_tile[2][block_m * pitch];
  __shared__ __align__(16) __nv_bfloat16 b_tile[2][block_n * pitch];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
  const int m0 = static_cast<int>(blockIdx.y) * block_m, n0 = static_cast<int>(blockIdx.x) * block_n;
  float sum[2][4][4] = {};

  const auto fetch = [&](int buffer, int k0) {
    for (int i = thread; i < block_m * block_k / 8; i += 128) {
      const int row = i / (block_k / 8), column = i % (block_k / 8) * 8;
      copy_16(shared_address(&a_tile[buffer][row * pitch + column]),
        a + static_cast<size_t>(m0 + row) * k + k0 + column);
      copy_16(shared_address(&b_tile[buffer][row * pitch + column]),
        b + static_cast<size_t>(n0 + row) * k + k0 + column);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  fetch(0, 0);
  int buffer = 0;
  for (int k0 = 0; k0 < k; k0 += block_k, buffer ^= 1) {
    if (k0 + block_k < k) {
      fetch(buffer ^ 1, k0 + block_k);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < block_k; kk += 16) {
      uint32_t left[2][4], right[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        load_four(left[i], shared_address(&a_tile[buffer][(warp_m + i * 16 + lane % 16) * pitch
                             + kk + lane / 16 * 8]));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        load_four(right[j], shared_address(&b_tile[buffer][(warp_n + j * 16 + lane % 8
                              + lane / 16 * 8) * pitch + kk + lane / 8 % 2 * 8]));
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          multiply(sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = m0 + warp_m + i * 16 + lane / 4;
      const int column = n0 + warp_n + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(&c[static_cast<size_t>(row) * n + column]) =
        make_float2(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<float2*>(&c[static_cast<size_t>(row + 8) * n + column]) =
        make_float2(sum[i][j][2], sum[i][j][3]);
    }
}
