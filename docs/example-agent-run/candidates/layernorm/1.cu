// One block a row: sum and sum of squares in one pass, the result in a second.
extern "C" __global__ void layer_rows(const __nv_bfloat16* x, const __nv_bfloat16* gain, const __nv_bfloat16* shift, __nv_bfloat16* y, int width) {
  __shared__ float2 shared[8];
  const __nv_bfloat16* in = x + (long long)blockIdx.x * width;
  __nv_bfloat16* out = y + (long long)blockIdx.x * width;
  float s = 0.0f, q = 0.0f;
  for (int i = threadIdx.x; i < width; i += 256) {
    float v = __bfloat162float(in[i]);
    s += v;
    q += v * v;
  }
  for (int o = 16; o > 0; o >>= 1) {
    s += __shfl_xor_sync(0xffffffffu, s, o);
    q += __shfl_xor_sync(0xffffffffu, q, o);
  }
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = make_float2(s, q);
  __syncthreads();
  float2 p = shared[threadIdx.x & 7];
  s = p.x; q = p.y;
  for (int o = 4; o > 0; o >>= 1) {
    s += __shfl_xor_sync(0xffffffffu, s, o);
    q += __shfl_xor_sync(0xffffffffu, q, o);
  }
  float mean = s / width;
  float r = rsqrtf(q / width - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < width; i += 256)
    out[i] = __float2bfloat16((__bfloat162float(in[i]) - mean) * r * __bfloat162float(gain[i]) + __bfloat162float(shift[i]));
}
