__global__ void __launch_bounds__(256) softmax_vec(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float sm[8], ss[8];
  const int t = threadIdx.x;
  const float4* xr = reinterpret_cast<const float4*>(x + blockIdx.x * 2048ll);
  float4* yr = reinterpret_cast<float4*>(y + blockIdx.x * 2048ll);
  float4 a = xr[t], b = xr[t + 256];
  float m = fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w)));
#pragma unroll
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if ((t & 31) == 0) sm[t >> 5] = m;
  __syncthreads();
  m = sm[0];
#pragma unroll
  for (int i = 1; i < 8; ++i) m = fmaxf(m, sm[i]);
  a.x = __expf(a.x - m); a.y = __expf(a.y - m); a.z = __expf(a.z - m); a.w = __expf(a.w - m);
  b.x = __expf(b.x - m); b.y = __expf(b.y - m); b.z = __expf(b.z - m); b.w = __expf(b.w - m);
  float s = ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
#pragma unroll
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if ((t & 31) == 0) ss[t >> 5] = s;
  __syncthreads();
  s = 0.f;
#pragma unroll
  for (int i = 0; i < 8; ++i) s += ss[i];
  const float r = 1.0f / s;
  a.x *= r; a.y *= r; a.z *= r; a.w *= r;
  b.x *= r; b.y *= r; b.z *= r; b.w *= r;
  yr[t] = a; yr[t + 256] = b;
}

// one warp a row, row in registers
__global__ void __launch_bounds__(32) softmax_warp(const float* __restrict__ x, float* __restrict__ y) {
  const int t = threadIdx.x;
  const float* xr = x + blockIdx.x * (long long)COLS;
  float* yr = y + blockIdx.x * (long long)COLS;
  constexpr int N = (COLS + 31) / 32;
  float v[N];
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = (t + 32 * i < COLS) ? xr[t + 32 * i] : -INFINITY;
  float m = v[0];
#pragma unroll
  for (int i = 1; i < N; ++i) m = fmaxf(m, v[i]);
#pragma unroll
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < N; ++i) { v[i] = __expf(v[i] - m); s += v[i]; }
#pragma unroll
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  const float r = 1.0f / s;
#pragma unroll
  for (int i = 0; i < N; ++i) if (t + 32 * i < COLS) yr[t + 32 * i] = v[i] * r;
}
