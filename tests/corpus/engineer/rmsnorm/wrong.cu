// Wrong: divides by the warp's share of the row instead of the row.
#include <cuda_bf16.h>

extern "C" __global__ void rmsnorm_rows(const __nv_bfloat16* x, const __nv_bfloat16* scale,
                                        __nv_bfloat16* y, int columns) {
  const __nv_bfloat16* in = x + (long long)blockIdx.x * columns;
  __nv_bfloat16* out = y + (long long)blockIdx.x * columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += 32) {
    float value = __bfloat162float(in[i]);
    sum += value * value;
  }
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  float factor = rsqrtf(sum / (columns / 32) + 1e-6f);
  for (int i = threadIdx.x; i < columns; i += 32)
    out[i] = __float2bfloat16(__bfloat162float(in[i]) * factor * __bfloat162float(scale[i]));
}
