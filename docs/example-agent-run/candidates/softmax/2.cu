// One block a row; the row is read once and kept in registers, sixteen bytes at a time where rows
// are a multiple of four.
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
  return v;
}
extern "C" __global__ void softmax_vec(const float* logits, float* probabilities, int classes) {
  __shared__ float shared[16];
  const float4* in = reinterpret_cast<const float4*>(logits + (long long)blockIdx.x * classes);
  float4* out = reinterpret_cast<float4*>(probabilities + (long long)blockIdx.x * classes);
  int quads = classes >> 2;
  float4 row[ITEMS];
  float top = -INFINITY;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    int i = threadIdx.x + k * 256;
    if (i < quads) {
      row[k] = in[i];
      top = fmaxf(top, fmaxf(fmaxf(row[k].x, row[k].y), fmaxf(row[k].z, row[k].w)));
    }
  }
  top = block_reduce(top, true, shared);
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k)
    if (threadIdx.x + k * 256 < quads) {
      row[k].x = __expf(row[k].x - top);
      row[k].y = __expf(row[k].y - top);
      row[k].z = __expf(row[k].z - top);
      row[k].w = __expf(row[k].w - top);
      sum += (row[k].x + row[k].y) + (row[k].z + row[k].w);
    }
  sum = block_reduce(sum, false, shared + 8);
  float scale = 1.0f / sum;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    int i = threadIdx.x + k * 256;
    if (i < quads) {
      row[k].x *= scale; row[k].y *= scale; row[k].z *= scale; row[k].w *= scale;
      out[i] = row[k];
    }
  }
}
extern "C" __global__ void softmax_any(const float* logits, float* probabilities, int classes) {
  __shared__ float shared[16];
  const float* in = logits + (long long)blockIdx.x * classes;
  float* out = probabilities + (long long)blockIdx.x * classes;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < classes; i += 256) top = fmaxf(top, in[i]);
  top = block_reduce(top, true, shared);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < classes; i += 256) sum += __expf(in[i] - top);
  sum = block_reduce(sum, false, shared + 8);
  float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < classes; i += 256) out[i] = __expf(in[i] - top) * scale;
}
