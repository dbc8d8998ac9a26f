#include <cstdint>

// y = 2 x in tiles of 1024 floats, each brought to shared memory by one bulk copy that reports to an
// mbarrier; two tiles are in flight. Needs sm_90.
constexpr int tile_floats = 1024;

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void wait_for(uint32_t barrier, uint32_t phase) {
  asm volatile("{\n"
               " .reg .pred arrived;\n"
               "again:\n"
               " mbarrier.try_wait.parity.shared::cta.b64 arrived, [%0], %1;\n"
               " @!arrived bra again;\n"
               "}" ::"r"(barrier),
    "r"(phase)
    : "memory");
}
__device__ void start_copy(uint32_t barrier, uint32_t to, const float* from) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
    "r"(tile_floats * 4)
    : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(to),
    "l"(from), "r"(tile_floats * 4), "r"(barrier)
    : "memory");
}

extern "C" __global__ void bulk_scale(const float* __restrict__ x, float* __restrict__ y, int tiles) {
  __shared__ __align__(128) float buffer[2][tile_floats];
  __shared__ __align__(8) uint64_t barrier[2];
  const bool leader = threadIdx.x == 0;
  if (leader) {
    for (int i = 0; i < 2; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier[i]))
                   : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  const int step = static_cast<int>(gridDim.x);
  uint32_t phase[2] = {0, 0};
  int now = 0;
  if (leader && static_cast<int>(blockIdx.x) < tiles)
    start_copy(shared_address(&barrier[0]), shared_address(buffer[0]),
      x + static_cast<size_t>(blockIdx.x) * tile_floats);
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += step, now ^= 1) {
    if (leader && tile + step < tiles)
      start_copy(shared_address(&barrier[now ^ 1]), shared_address(buffer[now ^ 1]),
        x + static_cast<size_t>(tile + step) * tile_floats);
    wait_for(shared_address(&barrier[now]), phase[now]);
    phase[now] ^= 1;
    for (int i = static_cast<int>(threadIdx.x); i < tile_floats; i += static_cast<int>(blockDim.x))
      y[static_cast<size_t>(tile) * tile_floats + i] = 2.f * buffer[now][i];
    __syncthreads();
  }
}
