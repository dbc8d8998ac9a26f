#include <cstdint>

// For each key the number of entries of a sorted table (entry i is 3 i) that are smaller.
extern "C" __global__ void __launch_bounds__(256) lower_bound(const int* __restrict__ table,
  const int* __restrict__ keys, int* __restrict__ place, int entries, int count) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i >= count)
    return;
  const int key = keys[i];
  int low = 0, high = entries;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (table[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  place[i] = low;
}
