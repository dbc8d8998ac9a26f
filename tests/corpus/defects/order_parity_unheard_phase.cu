// kind: order dependent
// grid 1 block 96 scratch undefined orders 8
// Nobody tells the second warp that the first phase of `full` is over, so its wait for the second,
// of the other parity, may return before either: right as long as copies arrive in order.
#include <cstdint>

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void start(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void fetch(uint64_t* barrier, float* to, const float* from) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(shared_address(barrier)) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(shared_address(to)), "l"(from), "r"(shared_address(barrier)) : "memory");
}
__device__ void await(uint64_t* barrier, uint32_t parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ __align__(128) float tile[2][32];
  __shared__ __align__(8) uint64_t full[2];
  __shared__ __align__(8) uint64_t read;
  const int i = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    start(&full[0]);
    start(&full[1]);
    start(&read);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    await(&full[0], 0);
    out[i] = tile[0][i];
    __syncwarp();
    if (i == 0)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&read)) : "memory");
  } else if (threadIdx.x < 64) {
    await(&full[1], 0);
    out[32 + i] = tile[1][i];
    await(&full[0], 1);
    out[64 + i] = tile[0][i];
  } else if (i == 0) {
    fetch(&full[0], tile[0], in);
    fetch(&full[1], tile[1], in + 32);
    await(&read, 0);
    fetch(&full[0], tile[0], in + 64);
  }
}
