#include <cuda_bf16.h>
#include <cstdint>

// C = A B^T by tcgen05.mma: tiles of 128 x 64, A and B row by row with k innermost, m, n and k multiples of the tile.
// Unverified on hardware.
constexpr int tile_m = 128, tile_n = 64, tile_k = 64;

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Rows of 128 bytes in shared memory, whose pieces of 16 bytes are swizzled by the row.
__device__ void fill(uint8_t* tile, const __nv_bfloat16* from, int rows, int k) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * 8; i += 128) {
    const int row = i / 8, piece = i % 8;
    *reinterpret_cast<uint4*>(tile + row * 128 + (piece ^ row % 8) * 16) =
      *reinterpret_cast<const uint4*>(from + static_cast<size_t>(row) * k + piece * 8);
  }
}

// K-major, swizzled by 128 bytes: eight rows are 1024 bytes.
__device__ uint64_t descriptor(uint32_t address) {
  return (address >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

__device__ void wait_for(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n .reg .pred done;\n"
               "again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               " @!done bra again;\n}" ::"r"(barrier), "r"(parity) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) gemm_tcgen05(const __nv_bfloat16* __restrict__ a,
  const __nv_bfloat16* __restrict__ b, float* __restrict__ c, int n, int k) {
  __shared__ __align__(1024) uint8_t left[tile_m * 128];
  __shared__ __align__(1024) uint8_t right[tile_n * 128];
  __shared__ __align__(8) uint64_t done;
  __shared__ uint32_t columns;
  const uint32_t warp = threadIdx.x / 32;
  const int row = static_cast<int>(blockIdx.y) * tile_m, column = static_cast<int>(blockIdx.x) * tile_n;
  const uint32_t barrier = shared_address(&done);
  if (warp == 0) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(
                   shared_address(&columns)) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const uint32_t sums = columns;
  // Operands bf16, results f32.
  constexpr uint32_t form = 1u << 4 | 1u << 7 | 1u << 10 | (tile_n / 8u) << 17 | (tile_m / 16u) << 24;
  for (int at = 0; at < k; at += tile_k) {
    fill(left, a + static_cast<size_t>(row) * k + at, tile_m, k);
    fill(right, b + static_cast<size_t>(column) * k + at, tile_n, k);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      for (uint32_t step = 0; step < 4; ++step)
        asm volatile("{\n .reg .pred adds;\n setp.ne.b32 adds, %4, 0;\n"
                     " tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(sums),
                     "l"(descriptor(shared_address(left) + 32 * step)),
                     "l"(descriptor(shared_address(right) + 32 * step)), "r"(form),
                     "r"(at != 0 || step != 0 ? 1 : 0)
                     : "memory");
      asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                     barrier) : "memory");
    }
    wait_for(barrier, static_cast<uint32_t>(at / tile_k) & 1);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  }
  float* const out = c + static_cast<size_t>(row + static_cast<int>(threadIdx.x)) * n + column;
  for (uint32_t first = 0; first < tile_n; first += 8) {
    uint32_t x[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
                 "tcgen05.wait::ld.sync.aligned;"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]),
                 "=r"(x[7])
                 : "r"(sums + (warp << 21) + first)
                 : "memory");
    for (int i = 0; i < 8; ++i)
      out[first + i] = __uint_as_float(x[i]);
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp == 0)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(sums));
}
