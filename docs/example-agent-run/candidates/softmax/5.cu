// One warp a row: reductions are shuffles alone, without shared memory or barriers.
__device__ float power(float x, float offset) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(fmaf(x, 1.44269504f, offset)));
  return r;
}
// Order of floats as order of integers, so that one redux instruction finds the maximum.
__device__ float warp_max(float v) {
  int i = __float_as_int(v);
  i ^= (i >> 31) & 0x7fffffff;
  int m;
  asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(m) : "r"(i));
  return __int_as_float(m ^ ((m >> 31) & 0x7fffffff));
}
__device__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
extern "C" __global__ void softmax_warp(const float* logits, float* probabilities, int rows, int classes) {
  int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (row >= rows) return;
  const float4* in = reinterpret_cast<const float4*>(logits + (long long)row * classes);
  float4* out = reinterpret_cast<float4*>(probabilities + (long long)row * classes);
  int quads = classes >> 2;
  float4 v[16];
#pragma unroll
  for (int k = 0; k < 16; ++k)
    if (lane + k * 32 < quads) v[k] = in[lane + k * 32];
    else v[k] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  float top = -INFINITY;
#pragma unroll
  for (int k = 0; k < 16; ++k) top = fmaxf(top, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
  top = warp_max(top);
  float sum = 0.0f, offset = -1.44269504f * top;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    v[k].x = power(v[k].x, offset); v[k].y = power(v[k].y, offset);
    v[k].z = power(v[k].z, offset); v[k].w = power(v[k].w, offset);
    sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
  }
  float scale = __fdividef(1.0f, warp_sum(sum));
#pragma unroll
  for (int k = 0; k < 16; ++k)
    if (lane + k * 32 < quads)
      out[lane + k * 32] = make_float4(v[k].x * scale, v[k].y * scale, v[k].z * scale, v[k].w * scale);
}
extern "C" __global__ void softmax_short(const float* logits, float* probabilities, int rows, int classes) {
  int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (row >= rows) return;
  const float* in = logits + (long long)row * classes;
  float* out = probabilities + (long long)row * classes;
  float v[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = lane + k * 32 < classes ? in[lane + k * 32] : -INFINITY;
  float top = warp_max(fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3])));
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = __expf(v[k] - top);
  float scale = __fdividef(1.0f, warp_sum((v[0] + v[1]) + (v[2] + v[3])));
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (lane + k * 32 < classes) out[lane + k * 32] = v[k] * scale;
}
