#include <cstdint>

// One stable pass of a radix sort over four bits: counts of each tile, their running sums over
// digits and tiles, then the scatter. A tile is 1024 keys, four rounds of a block of 256.
constexpr int rounds = 4, tile = 256 * rounds;

extern "C" __global__ void __launch_bounds__(256)
  digit_counts(const uint32_t* __restrict__ x, int* __restrict__ counts, int tiles) {
  __shared__ int bins[16];
  if (threadIdx.x < 16)
    bins[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < rounds; ++r)
    atomicAdd(&bins[x[static_cast<size_t>(blockIdx.x) * tile + r * 256 + threadIdx.x] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16)
    counts[threadIdx.x * tiles + blockIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(1024)
  scan_counts(int* __restrict__ counts, int count) {
  __shared__ int sums[32];
  __shared__ int carry;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x == 0)
    carry = 0;
  __syncthreads();
  for (int first = 0; first < count; first += 1024) {
    const int i = first + static_cast<int>(threadIdx.x);
    const int own = i < count ? counts[i] : 0;
    int v = own;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, v, d);
      if (lane >= d)
        v += other;
    }
    if (lane == 31)
      sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
      int s = sums[lane];
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, s, d);
        if (lane >= d)
          s += other;
      }
      sums[lane] = s;
    }
    __syncthreads();
    const int start = carry;
    const int all = v + (warp > 0 ? sums[warp - 1] : 0);
    if (i < count)
      counts[i] = start + all - own;
    __syncthreads();
    if (threadIdx.x == 1023)
      carry = start + all;
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(256) scatter(const uint32_t* __restrict__ x,
  const int* __restrict__ starts, uint32_t* __restrict__ y, int tiles) {
  __shared__ int next[16];
  __shared__ int of_warp[8][16];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  if (thread < 16)
    next[thread] = starts[thread * tiles + static_cast<int>(blockIdx.x)];
  for (int r = 0; r < rounds; ++r) {
    const uint32_t key = x[static_cast<size_t>(blockIdx.x) * tile + r * 256 + thread];
    const uint32_t digit = key & 15;
    if (thread < 128)
      of_warp[thread / 16][thread % 16] = 0;
    __syncthreads();
    const unsigned same = __match_any_sync(0xffffffffu, digit);
    const int rank = __popc(same & ((1u << lane) - 1));
    if (rank == 0)
      of_warp[warp][digit] = __popc(same);
    __syncthreads();
    int place = next[digit] + rank;
    for (int w = 0; w < warp; ++w)
      place += of_warp[w][digit];
    y[place] = key;
    __syncthreads();
    if (thread < 16)
      for (int w = 0; w < 8; ++w)
        next[thread] += of_warp[w][thread];
    __syncthreads();
  }
}
