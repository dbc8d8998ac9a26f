
__device__ __forceinline__ float warp_max(float m) {
  const int i = __float_as_int(m);
  const int k = i ^ ((i >> 31) & 0x7fffffff);
  const int r = __reduce_max_sync(~0u, k);
  return __int_as_float(r ^ ((r >> 31) & 0x7fffffff));
}

// every term is in [0,1] and the row has at most 1000: 22 fraction bits fit 32 bits; s >= 1
__device__ __forceinline__ float warp_sum_fixed(float s) {
  return (float)__reduce_add_sync(~0u, (unsigned)__float2uint_rn(s * 4194304.0f)) * (1.0f / 4194304.0f);
}


__global__ void __launch_bounds__(32) softmax_warp4(const float* __restrict__ x, float* __restrict__ y) {
  const int t = threadIdx.x;
  const float4* xr = reinterpret_cast<const float4*>(x + blockIdx.x * (long long)COLS);
  float4* yr = reinterpret_cast<float4*>(y + blockIdx.x * (long long)COLS);
  constexpr int Q = COLS / 4;
  float4 v[8];
  float p[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (t + 32 * i < Q) v[i] = xr[t + 32 * i];
    else v[i] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) p[i] = fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w));
  float m = fmaxf(fmaxf(fmaxf(p[0], p[1]), fmaxf(p[2], p[3])), fmaxf(fmaxf(p[4], p[5]), fmaxf(p[6], p[7])));
  m = warp_max(m);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    v[i].x = __expf(v[i].x - m); v[i].y = __expf(v[i].y - m);
    v[i].z = __expf(v[i].z - m); v[i].w = __expf(v[i].w - m);
    p[i] = (v[i].x + v[i].y) + (v[i].z + v[i].w);
  }
  float s = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
  s = warp_sum_fixed(s);
  const float r = 1.0f / s;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    v[i].x *= r; v[i].y *= r; v[i].z *= r; v[i].w *= r;
    if (t + 32 * i < Q) yr[t + 32 * i] = v[i];
  }
}

__global__ void __launch_bounds__(256) softmax_bulk(const float* __restrict__ x, float* __restrict__ y) {
  alignas(128) __shared__ float4 buf[512];
  __shared__ float sm[8], ss[8];
  alignas(8) __shared__ unsigned long long bar;
  const int t = threadIdx.x;
  const unsigned sb = (unsigned)__cvta_generic_to_shared(buf), mb = (unsigned)__cvta_generic_to_shared(&bar);
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(mb) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" :: "r"(mb) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 8192, [%2];"
        :: "r"(sb), "l"(x + blockIdx.x * 2048ll), "r"(mb) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(mb) : "memory");
  float4 a = buf[t], b = buf[t + 256];
  float m = fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w)));
  m = warp_max(m);
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
  buf[t] = a; buf[t + 256] = b;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 8192;" :: "l"(y + blockIdx.x * 2048ll), "r"(sb) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
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
  m = warp_max(m);
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < N; ++i) { v[i] = __expf(v[i] - m); s += v[i]; }
  s = warp_sum_fixed(s);
  const float r = 1.0f / s;
#pragma unroll
  for (int i = 0; i < N; ++i) if (t + 32 * i < COLS) yr[t + 32 * i] = v[i] * r;
}
