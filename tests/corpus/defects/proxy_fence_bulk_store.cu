// kind: missing proxy fence
// grid 1 block 64 scratch undefined orders 0
#include <cstdint>
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ __align__(128) float tile[64];
  const int i = threadIdx.x;
  tile[i] = 2 * in[i];  // OTHER
  __syncthreads();
  if (i == 0) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(from) : "memory");  // FAULT
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
