// One block a row, two passes; the second read comes from L2.
extern "C" __global__ void rms_rows(const __nv_bfloat16* x, const __nv_bfloat16* scale, __nv_bfloat16* y, int hidden) {
  __shared__ float shared[8];
  const __nv_bfloat16* in = x + (long long)blockIdx.x * hidden;
  __nv_bfloat16* out = y + (long long)blockIdx.x * hidden;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += 256) {
    float v = __bfloat162float(in[i]);
    sum += v * v;
  }
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = sum;
  __syncthreads();
  sum = shared[threadIdx.x & 7];
  for (int o = 4; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  float r = rsqrtf(sum / hidden + 1e-6f);
  for (int i = threadIdx.x; i < hidden; i += 256)
    out[i] = __float2bfloat16(__bfloat162float(in[i]) * r * __bfloat162float(scale[i]));
}
