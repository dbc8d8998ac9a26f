// Transposes a row-major matrix through a padded tile of shared memory. Block: 32 x any divisor of 32.
extern "C" __global__ void transpose(
    const float* __restrict__ in, float* __restrict__ out, int width, int height) {
  constexpr int side = 32;
  __shared__ float tile[side][side + 1];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int step = static_cast<int>(blockDim.y);

  int column = static_cast<int>(blockIdx.x) * side + tx;
  int row = static_cast<int>(blockIdx.y) * side + ty;
  for (int k = 0; k < side; k += step)
    if (column < width && row + k < height)
      tile[ty + k][tx] = in[static_cast<size_t>(row + k) * width + column];
  __syncthreads();

  column = static_cast<int>(blockIdx.y) * side + tx;
  row = static_cast<int>(blockIdx.x) * side + ty;
  for (int k = 0; k < side; k += step)
    if (column < height && row + k < width)
      out[static_cast<size_t>(row + k) * height + column] = tile[tx][ty + k];
}
