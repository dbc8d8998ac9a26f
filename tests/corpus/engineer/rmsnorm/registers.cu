// One block a row, which it reads once, eight numbers at a time, and keeps in registers. Rows that do not
// start at a multiple of 16 bytes, or that are longer than the registers, go number by number.
#include <cuda_bf16.h>

template <int BLOCK>
__device__ float sum_of_block(float value) {
  __shared__ float shared[BLOCK / 32];
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
  for (int warp = 0; warp < BLOCK / 32; ++warp)
    value += shared[warp];
  return value;
}

template <int BLOCK, int EACH>
__global__ void rmsnorm_vectors(const __nv_bfloat16* x, const __nv_bfloat16* scale, __nv_bfloat16* y,
                                int columns) {
  const uint4* in = reinterpret_cast<const uint4*>(x + (long long)blockIdx.x * columns);
  const uint4* factors = reinterpret_cast<const uint4*>(scale);
  uint4* out = reinterpret_cast<uint4*>(y + (long long)blockIdx.x * columns);
  int count = columns / 8;
  uint4 row[EACH];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    int at = threadIdx.x + i * BLOCK;
    row[i] = at < count ? in[at] : make_uint4(0, 0, 0, 0);
    const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&row[i]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float2 two = __bfloat1622float2(pair[k]);
      sum += two.x * two.x + two.y * two.y;
    }
  }
  float factor = rsqrtf(sum_of_block<BLOCK>(sum) / columns + 1e-6f);
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    int at = threadIdx.x + i * BLOCK;
    if (at >= count)
      continue;
    uint4 eight = factors[at];
    const __nv_bfloat162* weight = reinterpret_cast<const __nv_bfloat162*>(&eight);
    __nv_bfloat162* pair = reinterpret_cast<__nv_bfloat162*>(&row[i]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float2 two = __bfloat1622float2(pair[k]);
      float2 by = __bfloat1622float2(weight[k]);
      pair[k] = __floats2bfloat162_rn(two.x * factor * by.x, two.y * factor * by.y);
    }
    out[at] = row[i];
  }
}

template <int BLOCK>
__global__ void rmsnorm_block(const __nv_bfloat16* x, const __nv_bfloat16* scale, __nv_bfloat16* y,
                              int columns) {
  const __nv_bfloat16* in = x + (long long)blockIdx.x * columns;
  __nv_bfloat16* out = y + (long long)blockIdx.x * columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += BLOCK) {
    float value = __bfloat162float(in[i]);
    sum += value * value;
  }
  float factor = rsqrtf(sum_of_block<BLOCK>(sum) / columns + 1e-6f);
  for (int i = threadIdx.x; i < columns; i += BLOCK)
    out[i] = __float2bfloat16(__bfloat162float(in[i]) * factor * __bfloat162float(scale[i]));
}
