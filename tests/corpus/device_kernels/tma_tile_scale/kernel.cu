#include <cstdint>

// y = 2 x of a plane in tiles of 32 x 64 floats that tensor-map copies bring and take away.
struct alignas(64) tensor_map {
  char opaque[128];
};

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
__device__ void expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ void load_tile(
  uint32_t to, const tensor_map* map, int column, int row, uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
               "l"(map), "r"(column), "r"(row), "r"(barrier)
               : "memory");
}

extern "C" __global__ void __launch_bounds__(256) tma_tile_scale(
  const __grid_constant__ tensor_map map_x, const __grid_constant__ tensor_map map_y) {
  __shared__ __align__(128) float tile[64][32];
  __shared__ __align__(8) uint64_t full;
  const int thread = static_cast<int>(threadIdx.x);
  const int column = static_cast<int>(blockIdx.x) * 32, row = static_cast<int>(blockIdx.y) * 64;
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (thread == 0) {
    expect(shared_address(&full), 64 * 32 * 4);
    load_tile(shared_address(tile), &map_x, column, row, shared_address(&full));
  }
  wait_for(shared_address(&full), 0);
  for (int i = thread; i < 64 * 32; i += 256)
    (&tile[0][0])[i] *= 2.f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (thread == 0) {
    asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
        &map_y),
      "r"(column), "r"(row), "r"(shared_address(tile))
      : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
