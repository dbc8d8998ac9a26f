#include <cstdint>
#include <cuda_bf16.h>

// C = A B^T by wgmma without swizzle or tensor maps: a warpgroup computes 64 x 64, 64 deep; threads
// store the operands as core matrices of 8 rows x 16 bytes themselves.
__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// d (64 x 64) += A B^T, both operands in shared memory, 16 deep.
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,"
               "%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
               "%32, %33, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
               "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
               "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
               "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
               "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
               "+f"(d[31])
               : "l"(a), "l"(b));
}

__device__ void fence_start() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void commit_and_wait() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Core matrices that follow each other along K are 1024 bytes apart, along the rows 128.
__device__ uint64_t descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | uint64_t{1024 >> 4} << 16
    | uint64_t{128 >> 4} << 32;
}

extern "C" __global__ void __launch_bounds__(128)
  gemm_wgmma_plain(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
    float* __restrict__ c, int n, int k) {
  __shared__ __align__(128) uint4 left[512], right[512];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int m0 = static_cast<int>(blockIdx.y) * 64, n0 = static_cast<int>(blockIdx.x) * 64;
  float d[32] = {};
  for (int k0 = 0; k0 < k; k0 += 64) {
    for (int i = thread; i < 512; i += 128) {
      const int row = i / 8, chunk = i % 8;
      left[chunk * 64 + row] =
        *reinterpret_cast<const uint4*>(a + static_cast<size_t>(m0 + row) * k + k0 + chunk * 8);
      right[chunk * 64 + row] =
        *reinterpret_cast<const uint4*>(b + static_cast<size_t>(n0 + row) * k + k0 + chunk * 8);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    fence_start();
#pragma unroll
    for (int kk = 0; kk < 4; ++kk)
      multiply(d, descriptor(shared_address(left) + kk * 2048),
        descriptor(shared_address(right) + kk * 2048));
    commit_and_wait();
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int row = m0 + static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
    const int column = n0 + j * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(&c[static_cast<size_t>(row) * n + column]) =
      make_float2(d[j * 4], d[j * 4 + 1]);
    *reinterpret_cast<float2*>(&c[static_cast<size_t>(row + 8) * n + column]) =
      make_float2(d[j * 4 + 2], d[j * 4 + 3]);
  }
}
