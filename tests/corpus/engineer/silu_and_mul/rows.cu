// A block for a part of one row: no division, two numbers a thread where rows are even.
#include <cuda_bf16.h>

__device__ float gated(float gate, float value) {
  return gate / (1.0f + __expf(-gate)) * value;
}

extern "C" __global__ void silu_pairs(const __nv_bfloat162* x, __nv_bfloat162* y, int half) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= half)
    return;
  const __nv_bfloat162* row = x + (long long)blockIdx.y * 2 * half;
  float2 gate = __bfloat1622float2(row[at]);
  float2 value = __bfloat1622float2(row[at + half]);
  y[(long long)blockIdx.y * half + at]
    = __floats2bfloat162_rn(gated(gate.x, value.x), gated(gate.y, value.y));
}

extern "C" __global__ void silu_singles(const __nv_bfloat16* x, __nv_bfloat16* y, int width) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= width)
    return;
  const __nv_bfloat16* row = x + (long long)blockIdx.y * 2 * width;
  y[(long long)blockIdx.y * width + at]
    = __float2bfloat16(gated(__bfloat162float(row[at]), __bfloat162float(row[at + width])));
}
