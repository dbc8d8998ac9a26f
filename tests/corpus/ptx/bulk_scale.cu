// y = 3 x: bulk copies into two buffers that complete on mbarriers (sm_90).
#include <cstdint>
constexpr int tile = 256;
static __device__ __forceinline__ uint32_t shared_address(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
static __device__ __forceinline__ void fetch(uint32_t barrier, uint32_t to, const float* from) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
    "r"(tile * 4)
    : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(to),
    "l"(from), "r"(tile * 4), "r"(barrier)
    : "memory");
}
static __device__ __forceinline__ void await(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\nAGAIN:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra AGAIN;\n}" ::"r"(barrier),
    "r"(parity)
    : "memory");
}
extern "C" __global__ void bulk_scale(const float* __restrict__ x, float* __restrict__ y, int tiles) {
  __shared__ __align__(128) float data[2][tile];
  __shared__ __align__(8) uint64_t barrier[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier[i]))
                   : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if ((int)blockIdx.x < tiles)
      fetch(shared_address(&barrier[0]), shared_address(data[0]), x + (size_t)blockIdx.x * tile);
  }
  __syncthreads();
  int round = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, round++) {
    const int now = round & 1, next = t + gridDim.x;
    if (threadIdx.x == 0 && next < tiles)
      fetch(shared_address(&barrier[now ^ 1]), shared_address(data[now ^ 1]),
        x + (size_t)next * tile);
    await(shared_address(&barrier[now]), round >> 1 & 1);
    for (int i = threadIdx.x; i < tile; i += blockDim.x)
      y[(size_t)t * tile + i] = 3 * data[now][i];
    __syncthreads();
  }
}
