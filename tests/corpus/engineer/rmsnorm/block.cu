// One block a row, so that more loads are under way.
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
