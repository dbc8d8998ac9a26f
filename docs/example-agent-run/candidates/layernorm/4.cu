// One block a row, read once in 16-byte pieces that are all in flight together; sum and sum of squares
// are reduced side by side.
__device__ float2 total(float s, float q) {
  __shared__ float2 shared[4];
  for (int o = 16; o > 0; o >>= 1) {
    s += __shfl_xor_sync(0xffffffffu, s, o);
    q += __shfl_xor_sync(0xffffffffu, q, o);
  }
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = make_float2(s, q);
  __syncthreads();
  float2 p = shared[threadIdx.x & 3];
  for (int o = 2; o > 0; o >>= 1) {
    p.x += __shfl_xor_sync(0xffffffffu, p.x, o);
    p.y += __shfl_xor_sync(0xffffffffu, p.y, o);
  }
  return p;
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
__device__ void add(unsigned u, float& s, float& q) {
  float2 a = both(u);
  s += a.x + a.y;
  q += a.x * a.x + a.y * a.y;
}
__device__ unsigned normal(unsigned x, unsigned g, unsigned b, float mean, float r) {
  float2 a = both(x), w = both(g), c = both(b);
  return pack((a.x - mean) * r * w.x + c.x, (a.y - mean) * r * w.y + c.y);
}
extern "C" __global__ void layer_vec(const __nv_bfloat16* x, const __nv_bfloat16* gain, const __nv_bfloat16* shift, __nv_bfloat16* y, int width) {
  const uint4* in = reinterpret_cast<const uint4*>(x + (long long)blockIdx.x * width);
  const uint4* gains = reinterpret_cast<const uint4*>(gain);
  const uint4* shifts = reinterpret_cast<const uint4*>(shift);
  uint4* out = reinterpret_cast<uint4*>(y + (long long)blockIdx.x * width);
  int pieces = width >> 3;
  uint4 row[ITEMS], g[ITEMS], b[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    int i = threadIdx.x + k * 128;
    bool in_row = i < pieces;
    row[k] = in_row ? in[i] : make_uint4(0, 0, 0, 0);
    g[k] = in_row ? gains[i] : make_uint4(0, 0, 0, 0);
    b[k] = in_row ? shifts[i] : make_uint4(0, 0, 0, 0);
  }
  float s = 0.0f, q = 0.0f;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    add(row[k].x, s, q); add(row[k].y, s, q); add(row[k].z, s, q); add(row[k].w, s, q);
  }
  float2 p = total(s, q);
  float mean = p.x / width;
  float r = rsqrtf(p.y / width - mean * mean + 1e-5f);
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    int i = threadIdx.x + k * 128;
    if (i < pieces)
      out[i] = make_uint4(normal(row[k].x, g[k].x, b[k].x, mean, r), normal(row[k].y, g[k].y, b[k].y, mean, r),
        normal(row[k].z, g[k].z, b[k].z, mean, r), normal(row[k].w, g[k].w, b[k].w, mean, r));
  }
}
extern "C" __global__ void layer_short(const __nv_bfloat16* x, const __nv_bfloat16* gain, const __nv_bfloat16* shift, __nv_bfloat16* y, int width) {
  // One warp a row of at most 384: no barrier, every load in flight at once.
  const __nv_bfloat16* in = x + (long long)blockIdx.x * width;
  __nv_bfloat16* out = y + (long long)blockIdx.x * width;
  float row[12], g[12], b[12], s = 0.0f, q = 0.0f;
#pragma unroll
  for (int k = 0; k < 12; ++k) {
    int i = threadIdx.x + k * 32;
    row[k] = i < width ? __bfloat162float(in[i]) : 0.0f;
    g[k] = i < width ? __bfloat162float(gain[i]) : 0.0f;
    b[k] = i < width ? __bfloat162float(shift[i]) : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < 12; ++k) {
    s += row[k];
    q += row[k] * row[k];
  }
  for (int o = 16; o > 0; o >>= 1) {
    s += __shfl_xor_sync(0xffffffffu, s, o);
    q += __shfl_xor_sync(0xffffffffu, q, o);
  }
  float mean = s / width;
  float r = rsqrtf(q / width - mean * mean + 1e-5f);
#pragma unroll
  for (int k = 0; k < 12; ++k) {
    int i = threadIdx.x + k * 32;
    if (i < width) out[i] = __float2bfloat16((row[k] - mean) * r * g[k] + b[k]);
  }
}
