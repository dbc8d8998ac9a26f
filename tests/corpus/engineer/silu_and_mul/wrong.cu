// Wrong: gate and value change places.
#include <cuda_bf16.h>

extern "C" __global__ void silu_elements(const __nv_bfloat16* x, __nv_bfloat16* y, long long count,
                                         int width) {
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count)
    return;
  long long row = at / width;
  long long first = row * 2 * width + (at - row * width);
  float gate = __bfloat162float(x[first + width]);
  float value = __bfloat162float(x[first]);
  y[at] = __float2bfloat16(gate / (1.0f + expf(-gate)) * value);
}
