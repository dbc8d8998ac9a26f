#include <cstdint>

// Every thread follows `next` for STEPS links from a place of its own.
extern "C" __global__ void __launch_bounds__(128)
  pointer_chase(const int* __restrict__ next, int* __restrict__ end, int chains, int n) {
  const int chain = static_cast<int>(blockIdx.x * 128 + threadIdx.x);
  if (chain >= chains)
    return;
  int at = static_cast<int>(static_cast<int64_t>(chain) * n / chains);
  for (int s = 0; s < STEPS; ++s)
    at = next[at];
  end[chain] = at;
}
