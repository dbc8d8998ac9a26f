#include <cstdint>

// Five-point mean of a plane; the border is copied. TILED keeps a block's cells in shared memory.
extern "C" __global__ void __launch_bounds__(256)
  stencil_2d(const float* __restrict__ x, float* __restrict__ y, int height, int width) {
  const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * 8 + threadIdx.y);
  const size_t place = static_cast<size_t>(row) * width + column;
  const bool inside = row < height && column < width;
#if TILED
  __shared__ float cells[10][34];
  const int r = static_cast<int>(threadIdx.y) + 1, c = static_cast<int>(threadIdx.x) + 1;
  if (inside) {
    cells[r][c] = x[place];
    if (threadIdx.x == 0 && column > 0)
      cells[r][0] = x[place - 1];
    if (threadIdx.x == 31 && column + 1 < width)
      cells[r][33] = x[place + 1];
    if (threadIdx.y == 0 && row > 0)
      cells[0][c] = x[place - width];
    if (threadIdx.y == 7 && row + 1 < height)
      cells[9][c] = x[place + width];
  }
  __syncthreads();
#endif
  if (!inside)
    return;
  if (row == 0 || column == 0 || row + 1 == height || column + 1 == width) {
    y[place] = x[place];
    return;
  }
#if TILED
  y[place] =
    0.2f * (cells[r][c] + cells[r][c - 1] + cells[r][c + 1] + cells[r - 1][c] + cells[r + 1][c]);
#else
  y[place] = 0.2f * (x[place] + x[place - 1] + x[place + 1] + x[place - width] + x[place + width]);
#endif
}
