#include <cstdint>

// One pivot of all-pairs shortest paths: d[i][j] = min(d[i][j], d[i][p] + d[p][j]); the plan
// repeats it.
extern "C" __global__ void __launch_bounds__(256)
  shortest_paths(int* __restrict__ d, int n, int pivot) {
  const int column = static_cast<int>(blockIdx.x * 256 + threadIdx.x),
            row = static_cast<int>(blockIdx.y);
  if (column >= n || row == pivot || column == pivot)
    return;
  const size_t at = static_cast<size_t>(row) * n + column;
  const int via =
    d[static_cast<size_t>(row) * n + pivot] + d[static_cast<size_t>(pivot) * n + column];
  if (via < d[at])
    d[at] = via;
}
