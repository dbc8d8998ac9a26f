// One head of attention with an online softmax; D = 32, a query a thread, tiles of 16 keys in
// dynamic shared memory. The length is a multiple of 32.
#include <cuda_fp16.h>
#include <math.h>
constexpr int depth = 32, keys = 16;
extern "C" __global__ void __launch_bounds__(32) attention_f16(const __half* __restrict__ q,
  const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ o, int length,
  float scale) {
  extern __shared__ __align__(16) unsigned char memory[];
  __half* key = (__half*)memory;
  __half* value = key + keys * depth;
  const int query = blockIdx.x * 32 + threadIdx.x;
  float mine[depth], sum[depth], best = -INFINITY, total = 0;
#pragma unroll
  for (int d = 0; d < depth; d++) {
    mine[d] = __half2float(q[(size_t)query * depth + d]) * scale;
    sum[d] = 0;
  }
  for (int first = 0; first < length; first += keys) {
    __syncthreads();
    for (int i = threadIdx.x; i < keys * depth / 8; i += 32) {
      ((uint4*)key)[i] = ((const uint4*)(k + (size_t)first * depth))[i];
      ((uint4*)value)[i] = ((const uint4*)(v + (size_t)first * depth))[i];
    }
    __syncthreads();
    for (int j = 0; j < keys; j++) {
      float score = 0;
#pragma unroll
      for (int d = 0; d < depth; d++)
        score += mine[d] * __half2float(key[j * depth + d]);
      const float top = fmaxf(best, score), keep = __expf(best - top), weight = __expf(score - top);
      best = top;
      total = total * keep + weight;
#pragma unroll
      for (int d = 0; d < depth; d++)
        sum[d] = sum[d] * keep + weight * __half2float(value[j * depth + d]);
    }
  }
#pragma unroll
  for (int d = 0; d < depth; d++)
    o[(size_t)query * depth + d] = __float2half(sum[d] / total);
}
