// One block a row, maximum and sum in one pass: the sum is scaled whenever the maximum grows.
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

template <int BLOCK>
__global__ void softmax_online(const float* x, float* y, int columns) {
  __shared__ float shared[BLOCK / 32];
  const float* in = x + (long long)blockIdx.x * columns;
  float* out = y + (long long)blockIdx.x * columns;
  float largest = -1e30f;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += BLOCK) {
    float value = in[i];
    float next = fmaxf(largest, value);
    sum = sum * __expf(largest - next) + __expf(value - next);
    largest = next;
  }
  float top = largest_of_block<BLOCK>(largest, shared);
  float total = sum_of_block<BLOCK>(sum * __expf(largest - top), shared);
  float scale = 1.0f / total;
  for (int i = threadIdx.x; i < columns; i += BLOCK)
    out[i] = __expf(in[i] - top) * scale;
}
