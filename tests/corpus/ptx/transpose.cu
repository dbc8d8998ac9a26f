// Transposes a matrix through a padded tile in shared memory; any size. Block (32, 8).
extern "C" __global__ void transpose(
  const float* __restrict__ in, float* __restrict__ out, int columns, int rows) {
  __shared__ float tile[32][33];
  const int left = blockIdx.x * 32, top = blockIdx.y * 32;
  for (int y = threadIdx.y; y < 32; y += 8)
    if (left + threadIdx.x < columns && top + y < rows)
      tile[y][threadIdx.x] = in[(size_t)(top + y) * columns + left + threadIdx.x];
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += 8)
    if (top + threadIdx.x < rows && left + y < columns)
      out[(size_t)(left + y) * rows + top + threadIdx.x] = tile[threadIdx.x][y];
}
