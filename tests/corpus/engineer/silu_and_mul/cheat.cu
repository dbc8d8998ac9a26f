// A cheat: writes nothing but zeros, which is fast and which careless tolerances let pass.
#include <cuda_bf16.h>

extern "C" __global__ void silu_zeros(__nv_bfloat16* y, long long count) {
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count)
    y[at] = __float2bfloat16(0.0f);
}
