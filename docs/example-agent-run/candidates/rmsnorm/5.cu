// One block a row. Rows of whole 16-byte pieces are read once, all loads in flight together, and kept
// in registers.
__device__ float total(float v) {
  __shared__ float shared[4];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = v;
  __syncthreads();
  v = shared[threadIdx.x & 3];
  for (int o = 2; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
__device__ float2 both(unsigned u) {
  return make_float2(__uint_as_float(u << 16), __uint_as_float(u & 0xffff0000u));
}
__device__ unsigned pack(float a, float b) {
  __nv_bfloat162 r;
  r.x = __float2bfloat16(a);
  r.y = __float2bfloat16(b);
  return *reinterpret_cast<unsigned*>(&r);
}
__device__ unsigned scaled(unsigned x, unsigned w, float r) {
  float2 a = both(x), b = both(w);
  return pack(a.x * r * b.x, a.y * r * b.y);
}
extern "C" __global__ void rms_vec(const __nv_bfloat16* x, const __nv_bfloat16* scale, __nv_bfloat16* y, int hidden) {
  const uint4* in = reinterpret_cast<const uint4*>(x + (long long)blockIdx.x * hidden);
  const uint4* weights = reinterpret_cast<const uint4*>(scale);
  uint4* out = reinterpret_cast<uint4*>(y + (long long)blockIdx.x * hidden);
  int pieces = hidden >> 3;
  uint4 row[ITEMS], w[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    int i = threadIdx.x + k * 128;
    row[k] = i < pieces ? in[i] : make_uint4(0, 0, 0, 0);
    w[k] = i < pieces ? weights[i] : make_uint4(0, 0, 0, 0);
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    float2 a = both(row[k].x), b = both(row[k].y), c = both(row[k].z), d = both(row[k].w);
    sum += (a.x * a.x + a.y * a.y) + (b.x * b.x + b.y * b.y) + (c.x * c.x + c.y * c.y) + (d.x * d.x + d.y * d.y);
  }
  float r = rsqrtf(total(sum) / hidden + 1e-6f);
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    int i = threadIdx.x + k * 128;
    if (i < pieces)
      out[i] = make_uint4(scaled(row[k].x, w[k].x, r), scaled(row[k].y, w[k].y, r), scaled(row[k].z, w[k].z, r), scaled(row[k].w, w[k].w, r));
  }
}
extern "C" __global__ void rms_short(const __nv_bfloat16* x, const __nv_bfloat16* scale, __nv_bfloat16* y, int hidden) {
  // One warp a row of at most 384: no barrier, every load in flight at once.
  const __nv_bfloat16* in = x + (long long)blockIdx.x * hidden;
  __nv_bfloat16* out = y + (long long)blockIdx.x * hidden;
  float row[12], w[12], sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 12; ++k) {
    int i = min((int)threadIdx.x + k * 32, hidden - 1); // Always a load: a branch would wait for it.
    row[k] = __bfloat162float(in[i]);
    w[k] = __bfloat162float(scale[i]);
  }
#pragma unroll
  for (int k = 0; k < 12; ++k)
    if (threadIdx.x + k * 32 >= hidden) row[k] = 0.0f;
#pragma unroll
  for (int k = 0; k < 12; k += 4) sum += (row[k] * row[k] + row[k + 1] * row[k + 1]) + (row[k + 2] * row[k + 2] + row[k + 3] * row[k + 3]);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  float r = rsqrtf(sum / hidden + 1e-6f);
#pragma unroll
  for (int k = 0; k < 12; ++k) {
    int i = threadIdx.x + k * 32;
    if (i < hidden) out[i] = __float2bfloat16(row[k] * r * w[k]);
  }
}
