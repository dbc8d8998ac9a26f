// Reads rows, writes columns through a tile in shared memory.
extern "C" __global__ void transpose_tile(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    if (x < columns && y + i < rows)
      tile[threadIdx.y + i][threadIdx.x] = in[(long long)(y + i) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    if (x < rows && y + i < columns)
      out[(long long)(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}
