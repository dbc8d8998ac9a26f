// One block a row, which it reads once, four floats at a time, and keeps in registers. Rows that do not
// start at a multiple of 16 bytes, or that are longer than the registers, are read float by float.
template <int BLOCK>
__device__ float largest_of_block(float value, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int warp = 1; warp < BLOCK / 32; ++warp)
    value = fmaxf(value, shared[warp]);
  __syncthreads();
  return value;
}

template <int BLOCK>
__device__ float sum_of_block(float value, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
  for (int warp = 0; warp < BLOCK / 32; ++warp)
    value += shared[warp];
  __syncthreads();
  return value;
}

template <int BLOCK, int EACH>
__global__ void softmax_vectors(const float* x, float* y, int columns) {
  __shared__ float shared[BLOCK / 32];
  const float4* in = reinterpret_cast<const float4*>(x + (long long)blockIdx.x * columns);
  float4* out = reinterpret_cast<float4*>(y + (long long)blockIdx.x * columns);
  int count = columns / 4;
  float4 row[EACH];
  float top = -INFINITY;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    int at = threadIdx.x + i * BLOCK;
    row[i] = at < count ? in[at] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    top = fmaxf(top, fmaxf(fmaxf(row[i].x, row[i].y), fmaxf(row[i].z, row[i].w)));
  }
  top = largest_of_block<BLOCK>(top, shared);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    row[i].x = __expf(row[i].x - top);
    row[i].y = __expf(row[i].y - top);
    row[i].z = __expf(row[i].z - top);
    row[i].w = __expf(row[i].w - top);
    sum += (row[i].x + row[i].y) + (row[i].z + row[i].w);
  }
  float scale = 1.0f / sum_of_block<BLOCK>(sum, shared);
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    int at = threadIdx.x + i * BLOCK;
    if (at < count)
      out[at] = make_float4(row[i].x * scale, row[i].y * scale, row[i].z * scale, row[i].w * scale);
  }
}

template <int BLOCK>
__global__ void softmax_floats(const float* x, float* y, int columns) {
  __shared__ float shared[BLOCK / 32];
  const float* in = x + (long long)blockIdx.x * columns;
  float* out = y + (long long)blockIdx.x * columns;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += BLOCK)
    top = fmaxf(top, in[i]);
  top = largest_of_block<BLOCK>(top, shared);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += BLOCK)
    sum += __expf(in[i] - top);
  float scale = 1.0f / sum_of_block<BLOCK>(sum, shared);
  for (int i = threadIdx.x; i < columns; i += BLOCK)
    out[i] = __expf(in[i] - top) * scale;
}
