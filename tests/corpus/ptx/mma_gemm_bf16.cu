// C = A B^T with bf16 operands and single precision sums: cp.async into two buffers, ldmatrix,
// mma.sync. A warp a block makes a 16x16 tile; M and N are multiples of 16, K of 16.
#include <cuda_bf16.h>
#include <cstdint>
constexpr int stride = 24; // Elements of a row in shared memory: 16 and some padding.
static __device__ __forceinline__ uint32_t shared_address(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
static __device__ __forceinline__ void copy16(const void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
static __device__ __forceinline__ void load4(uint32_t* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}
extern "C" __global__ void __launch_bounds__(32) mma_gemm_bf16(
  const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b, float* __restrict__ c,
  int n, int k) {
  __shared__ __align__(16) __nv_bfloat16 left[2][16 * stride], right[2][16 * stride];
  const int lane = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 16;
  float sum[2][4] = {};
  auto fetch = [&](int buffer, int step) {
    const int r = lane / 2, part = lane % 2 * 8;
    copy16(&left[buffer][r * stride + part], a + (size_t)(row + r) * k + step + part);
    copy16(&right[buffer][r * stride + part], b + (size_t)(column + r) * k + step + part);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0, 0);
  for (int step = 0, buffer = 0; step < k; step += 16, buffer ^= 1) {
    if (step + 16 < k) {
      fetch(buffer ^ 1, step + 16);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    uint32_t l[4], r[4];
    load4(l, &left[buffer][(lane % 16) * stride + lane / 16 * 8]);
    load4(r, &right[buffer][(lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8]);
#pragma unroll
    for (int i = 0; i < 2; i++)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                   "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]), "+f"(sum[i][3])
                   : "r"(l[0]), "r"(l[1]), "r"(l[2]), "r"(l[3]), "r"(r[2 * i]), "r"(r[2 * i + 1]));
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
      *(float2*)&c[(size_t)(row + lane / 4 + 8 * h) * n + column + 8 * i + lane % 4 * 2] =
        make_float2(sum[i][2 * h], sum[i][2 * h + 1]);
}
