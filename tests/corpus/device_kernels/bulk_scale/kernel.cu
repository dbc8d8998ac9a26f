#include <cstdint>

// y = 2 x in tiles of 1024 floats: STAGES bulk copies in flight into shared memory, results leave
// by bulk copies too. Blocks take every gridDim.x-th tile.
constexpr int tile = 1024;

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void wait_for(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n"
               " .reg .pred done;\n"
               "again:\n"
               " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               " @!done bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

extern "C" __global__ void __launch_bounds__(128)
  bulk_scale(const float* __restrict__ x, float* __restrict__ y, int tiles) {
  __shared__ __align__(128) float in[STAGES][tile], out[2][tile];
  __shared__ __align__(8) uint64_t full[STAGES];
  const int thread = static_cast<int>(threadIdx.x), step = static_cast<int>(gridDim.x);
  const int first = static_cast<int>(blockIdx.x);
  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[s]))
                   : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  const auto fetch = [&](int round) {
    const int place = first + round * step;
    if (place >= tiles)
      return;
    const uint32_t barrier = shared_address(&full[round % STAGES]);
    asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(tile * 4)
      : "memory");
    asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
        "r"(shared_address(in[round % STAGES])),
      "l"(x + static_cast<size_t>(place) * tile), "r"(tile * 4), "r"(barrier)
      : "memory");
  };
  if (thread == 0)
    for (int s = 0; s < STAGES; ++s)
      fetch(s);
  for (int round = 0; first + round * step < tiles; ++round) {
    wait_for(shared_address(&full[round % STAGES]), round / STAGES & 1);
    if (thread == 0)
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    __syncthreads();
    const float4* from = reinterpret_cast<const float4*>(in[round % STAGES]);
    float4* to = reinterpret_cast<float4*>(out[round % 2]);
    for (int i = thread; i < tile / 4; i += 128) {
      const float4 v = from[i];
      to[i] = make_float4(2.f * v.x, 2.f * v.y, 2.f * v.z, 2.f * v.w);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (thread == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     y + static_cast<size_t>(first + round * step) * tile),
                   "r"(shared_address(out[round % 2])), "r"(tile * 4)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      fetch(round + STAGES);
    }
  }
  if (thread == 0)
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
