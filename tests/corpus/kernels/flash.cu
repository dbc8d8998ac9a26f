#include <cuda_fp16.h>
#include <math.h>

// Attention of one head of width 64 with the softmax kept up to date on the way. 64 queries a block, one
// a thread; keys and values come in tiles of 32 rows through 8 KiB of dynamic shared memory.
constexpr int head = 64, queries = 64, tile = 32;

extern "C" __global__ void __launch_bounds__(queries) flash(const __half* __restrict__ q,
    const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int length,
    float scale) {
  extern __shared__ __align__(16) unsigned char bytes[];
  __half* keys = reinterpret_cast<__half*>(bytes);
  __half* values = keys + tile * head;
  const size_t mine = static_cast<size_t>(blockIdx.x * queries + threadIdx.x) * head;

  float query[head], sum[head];
#pragma unroll
  for (int d = 0; d < head; ++d) {
    query[d] = __half2float(q[mine + d]) * scale;
    sum[d] = 0.f;
  }
  float largest = -INFINITY, total = 0.f;
  for (int first = 0; first < length; first += tile) {
    __syncthreads();
    const uint4* from_keys = reinterpret_cast<const uint4*>(k + static_cast<size_t>(first) * head);
    const uint4* from_values = reinterpret_cast<const uint4*>(v + static_cast<size_t>(first) * head);
    for (int i = static_cast<int>(threadIdx.x); i < tile * head / 8; i += queries) {
      reinterpret_cast<uint4*>(keys)[i] = from_keys[i];
      reinterpret_cast<uint4*>(values)[i] = from_values[i];
    }
    __syncthreads();
    for (int row = 0; row < tile; ++row) {
      float score = 0.f;
#pragma unroll
      for (int d = 0; d < head; ++d)
        score += query[d] * __half2float(keys[row * head + d]);
      const float new_largest = fmaxf(largest, score);
      const float shrink = __expf(largest - new_largest), weight = __expf(score - new_largest);
      total = total * shrink + weight;
      largest = new_largest;
#pragma unroll
      for (int d = 0; d < head; ++d)
        sum[d] = sum[d] * shrink + weight * __half2float(values[row * head + d]);
    }
  }
  const float scale_out = 1.f / total;
#pragma unroll
  for (int d = 0; d < head; ++d)
    out[mine + d] = __float2half(sum[d] * scale_out);
}
