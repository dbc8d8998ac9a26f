// y = x / rms(x) * weight, a row a block, four bf16 a load.
#include <cuda_bf16.h>
struct __align__(8) four {
  __nv_bfloat162 low, high;
};
extern "C" __global__ void __launch_bounds__(128) rmsnorm_bf16(const four* __restrict__ x,
  const float4* __restrict__ weight, four* __restrict__ y, int columns, float epsilon) {
  __shared__ float partial[4];
  const int quads = columns / 4;
  x += (size_t)blockIdx.x * quads;
  y += (size_t)blockIdx.x * quads;
  float sum = 0;
  for (int i = threadIdx.x; i < quads; i += blockDim.x) {
    const four v = x[i];
    const float2 a = __bfloat1622float2(v.low), b = __bfloat1622float2(v.high);
    sum += a.x * a.x + a.y * a.y + b.x * b.x + b.y * b.y;
  }
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = sum;
  __syncthreads();
  const float total = partial[0] + partial[1] + partial[2] + partial[3];
  const float scale = rsqrtf(total / columns + epsilon);
  for (int i = threadIdx.x; i < quads; i += blockDim.x) {
    const four v = x[i];
    const float4 w = weight[i];
    const float2 a = __bfloat1622float2(v.low), b = __bfloat1622float2(v.high);
    four r;
    r.low = __floats2bfloat162_rn(a.x * scale * w.x, a.y * scale * w.y);
    r.high = __floats2bfloat162_rn(b.x * scale * w.z, b.y * scale * w.w);
    y[i] = r;
  }
}
