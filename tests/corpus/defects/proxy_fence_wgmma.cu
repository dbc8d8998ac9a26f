// kind: missing proxy fence
// grid 1 block 128 scratch undefined orders 0
#include <cstdint>

__device__ uint64_t descriptor(const void* p, uint32_t leading) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(p));
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{leading >> 4} << 16 | uint64_t{128 >> 4} << 32;
}
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ __align__(128) uint4 left[128], right[16];
  const int i = threadIdx.x;
  left[i] = make_uint4(0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80);  // OTHER
  if (i < 16)
    right[i] = make_uint4(0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80);
  __syncthreads();
  const uint64_t a = descriptor(left, 1024), b = descriptor(right, 128);
  float d[4] = {in[i], in[i], in[i], in[i]};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));  // FAULT
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[i] = d[0] + d[1] + d[2] + d[3];
}
