#include <cstdint>

// Edit distance of pairs of words of 128 letters: a block a pair walks the diagonals of the table.
extern "C" __global__ void __launch_bounds__(128)
  edit_distance(const int* __restrict__ a, const int* __restrict__ b, int* __restrict__ distance) {
  __shared__ int line[3][129];
  const int i = static_cast<int>(threadIdx.x);
  const int letter = a[static_cast<size_t>(blockIdx.x) * 128 + i] & 3;
  __shared__ int other[128];
  other[i] = b[static_cast<size_t>(blockIdx.x) * 128 + i] & 3;
  // line[d % 3][r]: cell (r, d - r) of the table with 129 rows and columns.
  if (i == 0) {
    line[0][0] = 0;
    line[1][0] = 1;
    line[1][1] = 1;
  }
  __syncthreads();
  for (int d = 2; d <= 256; ++d) {
    int* now = line[d % 3];
    const int* one = line[(d + 2) % 3];
    const int* two = line[(d + 1) % 3];
    const int r = i + 1, c = d - r;
    if (c >= 1 && c <= 128)
      now[r] = min(min(one[r], one[r - 1]) + 1, two[r - 1] + (letter == other[c - 1] ? 0 : 1));
    if (c == 0)
      now[r] = d;
    if (i == 0 && d <= 128)
      now[0] = d;
    __syncthreads();
  }
  if (i == 0)
    distance[blockIdx.x] = line[256 % 3][128];
}
