// kind: mbarrier phase
// grid 1 block 64 scratch undefined orders 0
#include <cstdint>

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void fetch(uint32_t barrier, uint32_t to, const float* from) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(to), "l"(from), "r"(barrier) : "memory");
}
// A wait on one line, so that it has a line of its own.
#define WAIT(barrier, parity) asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(barrier), "r"(parity) : "memory")

extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ __align__(128) float tile[64];
  __shared__ __align__(8) uint64_t full;
  const int i = threadIdx.x;
  const uint32_t barrier = shared_address(&full);
  if (i == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (i == 0)
    fetch(barrier, shared_address(tile), in);
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 2; ++k) {
    WAIT(barrier, 0);  // FAULT
    sum += tile[i];
    __syncthreads();
    if (i == 0 && k == 0)
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  out[i] = sum;
}
