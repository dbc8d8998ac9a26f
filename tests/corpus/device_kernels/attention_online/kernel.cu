#include <cstdint>

// softmax(Q K^T / 8) V of one head of 64 in one pass: a thread holds a query and its running sum,
// KEYS keys and values at a time in shared memory.
extern "C" __global__ void __launch_bounds__(64) attention_online(const float* __restrict__ q,
  const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ y, int length) {
  __shared__ __align__(16) float keys[KEYS][64], values[KEYS][64];
  const int row = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  float4 query[16], sum[16];
#pragma unroll
  for (int d = 0; d < 16; ++d) {
    query[d] = reinterpret_cast<const float4*>(q + static_cast<size_t>(row) * 64)[d];
    sum[d] = make_float4(0.f, 0.f, 0.f, 0.f);
  }
  float top = -3.4e38f, total = 0;
  for (int j0 = 0; j0 < length; j0 += KEYS) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < KEYS * 16; i += 64) {
      reinterpret_cast<float4*>(keys)[i] =
        reinterpret_cast<const float4*>(k + static_cast<size_t>(j0) * 64)[i];
      reinterpret_cast<float4*>(values)[i] =
        reinterpret_cast<const float4*>(v + static_cast<size_t>(j0) * 64)[i];
    }
    __syncthreads();
    for (int j = 0; j < KEYS; ++j) {
      float s = 0;
#pragma unroll
      for (int d = 0; d < 16; ++d) {
        const float4 key = reinterpret_cast<const float4*>(keys[j])[d];
        s += query[d].x * key.x + query[d].y * key.y + query[d].z * key.z + query[d].w * key.w;
      }
      s *= 0.125f;
      const float higher = fmaxf(top, s), keep = __expf(top - higher), p = __expf(s - higher);
      top = higher;
      total = total * keep + p;
#pragma unroll
      for (int d = 0; d < 16; ++d) {
        const float4 value = reinterpret_cast<const float4*>(values[j])[d];
        sum[d].x = sum[d].x * keep + p * value.x;
        sum[d].y = sum[d].y * keep + p * value.y;
        sum[d].z = sum[d].z * keep + p * value.z;
        sum[d].w = sum[d].w * keep + p * value.w;
      }
    }
  }
  const float scale = 1.f / total;
#pragma unroll
  for (int d = 0; d < 16; ++d)
    reinterpret_cast<float4*>(y + static_cast<size_t>(row) * 64)[d] =
      make_float4(sum[d].x * scale, sum[d].y * scale, sum[d].z * scale, sum[d].w * scale);
}
