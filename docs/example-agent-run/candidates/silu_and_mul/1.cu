extern "C" __global__ void silu_mul(const __nv_bfloat16* in, __nv_bfloat16* out, int tokens, int width) {
  long long n = (long long)tokens * width;
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long row = i / width;
  int column = (int)(i - row * width);
  float g = __bfloat162float(in[row * 2 * width + column]);
  float v = __bfloat162float(in[row * 2 * width + width + column]);
  out[i] = __float2bfloat16(g / (1.0f + __expf(-g)) * v);
}
