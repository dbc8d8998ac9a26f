// One block a row, three passes over it: maximum, sum of exponentials, result.
__device__ float block_reduce(float v, bool is_max, float* shared) {
  for (int o = 16; o > 0; o >>= 1) {
    float w = __shfl_xor_sync(0xffffffffu, v, o);
    v = is_max ? fmaxf(v, w) : v + w;
  }
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  if (lane == 0) shared[warp] = v;
  __syncthreads();
  v = shared[lane & 7];
  for (int o = 4; o > 0; o >>= 1) {
    float w = __shfl_xor_sync(0xffffffffu, v, o);
    v = is_max ? fmaxf(v, w) : v + w;
  }
  __syncthreads();
  return v;
}
extern "C" __global__ void softmax_rows(const float* logits, float* probabilities, int classes) {
  __shared__ float shared[8];
  const float* in = logits + (long long)blockIdx.x * classes;
  float* out = probabilities + (long long)blockIdx.x * classes;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < classes; i += 256) top = fmaxf(top, in[i]);
  top = block_reduce(top, true, shared);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < classes; i += 256) sum += __expf(in[i] - top);
  sum = block_reduce(sum, false, shared);
  float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < classes; i += 256) out[i] = __expf(in[i] - top) * scale;
}
