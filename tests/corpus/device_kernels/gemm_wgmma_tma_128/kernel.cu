#include <cstdint>
#include <cuda_bf16.h>

// C = A B^T by wgmma: a warpgroup computes 64 x 128, 64 deep; STAGES tiles in flight by tensor-map
// copies with the 128-byte swizzle, ordered by mbarriers.
struct alignas(64) tensor_map {
  char opaque[128];
};

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// d (64 x 128) += A B^T, both operands in shared memory, 16 deep.
__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,"
               "%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,"
               "%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,"
               "%59,%60,%61,%62,%63}, "
               "%64, %65, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
               "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
               "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
               "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
               "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
               "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
               "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
               "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
               "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]),
               "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]),
               "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
               : "l"(a), "l"(b));
}

__device__ void fence_start() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void commit_and_wait() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Descriptor of a tile of rows of 64 bf16, as a copy with the 128-byte swizzle leaves it: groups of
// eight rows are 1024 bytes apart.
__device__ uint64_t descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | uint64_t{1} << 16 | uint64_t{64} << 32
    | uint64_t{1} << 62;
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

constexpr int left_bytes = 64 * 128, right_bytes = 128 * 128;

extern "C" __global__ void __launch_bounds__(128)
  gemm_wgmma_tma_128(const __grid_constant__ tensor_map map_a,
    const __grid_constant__ tensor_map map_b, float* __restrict__ c, int n, int k) {
  extern __shared__ unsigned char memory[];
  __shared__ __align__(8) uint64_t full[STAGES];
  const uint32_t tiles = (shared_address(memory) + 1023) & ~1023u;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int m0 = static_cast<int>(blockIdx.y) * 64, n0 = static_cast<int>(blockIdx.x) * 128;
  const int steps = k / 64;
  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[s]))
                   : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  const auto fetch = [&](int step) {
    const uint32_t barrier = shared_address(&full[step % STAGES]);
    const uint32_t to = tiles + step % STAGES * (left_bytes + right_bytes);
    expect(barrier, left_bytes + right_bytes);
    load_tile(to, &map_a, step * 64, m0, barrier);
    load_tile(to + left_bytes, &map_b, step * 64, n0, barrier);
  };
  if (thread == 0)
    for (int s = 0; s < STAGES && s < steps; ++s)
      fetch(s);
  float d[64] = {};
  for (int step = 0; step < steps; ++step) {
    wait_for(shared_address(&full[step % STAGES]), step / STAGES & 1);
    const uint32_t left = tiles + step % STAGES * (left_bytes + right_bytes);
    fence_start();
#pragma unroll
    for (int kk = 0; kk < 4; ++kk)
      multiply(d, descriptor(left + kk * 32), descriptor(left + left_bytes + kk * 32));
    commit_and_wait();
    __syncthreads();
    if (thread == 0 && step + STAGES < steps)
      fetch(step + STAGES);
  }
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const int row = m0 + static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
    const int column = n0 + j * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(&c[static_cast<size_t>(row) * n + column]) =
      make_float2(d[j * 4], d[j * 4 + 1]);
    *reinterpret_cast<float2*>(&c[static_cast<size_t>(row + 8) * n + column]) =
      make_float2(d[j * 4 + 2], d[j * 4 + 3]);
  }
}
