#include "kernels/sweep_code.hpp"

#include "kernels/vector_code.hpp"

#include <fmt/format.h>

namespace gristmill {

std::string sweep_reduction_code(bool fast) {
  std::string code{reduction_operators()};
  code += R"(
#if CLUSTER > 1
__device__ __forceinline__ int cluster_rank() {
  unsigned int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif

// All threads of a row have left their parts behind.
__device__ __forceinline__ void meet_row() {
#if CLUSTER > 1
  meet_cluster();
#elif defined(STAGES) && CHUNKS > 0 // Groups of a block.
  asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.x / block_threads), "n"(block_threads) : "memory");
#else
  __syncthreads();
#endif
}

template <class Op>
__device__ __forceinline__ float over_warp(float value, Op combine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

template <class Op>
__device__ __forceinline__ float over_places(const float (&places)[VEC], Op combine) {
  float value = places[0];
#pragma unroll
  for (int i = 1; i < VEC; ++i)
    value = combine(value, places[i]);
  return value;
}

// A warp's part of a row's number, for every block that shares the row. Rows take turns at two
// places: whoever writes a place again has met all its readers in between.
__device__ __forceinline__ void leave_part(float value,
    float (&partial)[2][numbers][row_threads / 32], int turn, int number, int rank) {
  float* const place = &partial[turn][number][rank * (block_threads / 32) + threadIdx.x % block_threads / 32];
#if CLUSTER > 1
  const unsigned int block = threadIdx.x % 32;
  if (block < CLUSTER) {
    const unsigned int here = static_cast<unsigned int>(__cvta_generic_to_shared(place));
    unsigned int there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(block));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
  }
#else
  if (threadIdx.x % 32 == 0)
    *place = value;
#endif
}

// The parts of all warps of a row, combined by each warp for itself.
template <class Op>
__device__ __forceinline__ float over_parts(const float (&parts)[row_threads / 32], Op combine) {
  constexpr int warps = row_threads / 32;
#ifdef STAGES
  // Few of them: one wide load is there sooner than an exchange between lanes.
  if (warps <= 8) {
    float few = parts[0];
#pragma unroll
    for (int i = 1; i < warps; ++i)
      few = combine(few, parts[i]);
    return few;
  }
#endif
  constexpr int lanes = warps < 32 ? warps : 32;
  float value = parts[threadIdx.x % lanes];
#pragma unroll
  for (int i = 32; i < warps; i += 32)
    value = combine(value, parts[i + threadIdx.x % 32]);
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}
)";
  code += fmt::format(R"(
// The same for sums of exponentials that lie below maxima of their own.
__device__ __forceinline__ float over_scaled_parts(
  const float (&sums)[row_threads / 32], const float (&tops)[row_threads / 32], float top) {{
  constexpr int warps = row_threads / 32;
  constexpr int lanes = warps < 32 ? warps : 32;
  float value = sums[threadIdx.x % lanes] * {0}(tops[threadIdx.x % lanes] - top);
#pragma unroll
  for (int i = 32; i < warps; i += 32)
    value += sums[i + threadIdx.x % 32] * {0}(tops[i + threadIdx.x % 32] - top);
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}}
)",
    fast ? "__expf" : "expf");
  return code;
}

std::string column_sum_code(std::string_view entry, std::string_view element_type) {
  return fmt::format(
    R"(// 32 columns a block: 32 warps each add up some of the shares, then one warp a column the rest.
extern "C" __global__ void __launch_bounds__(1024)
{}(float* __restrict__ shares, {}* __restrict__ sums, int32_t count, int32_t columns) {{
  __shared__ float tile[32][33];
  const int x = threadIdx.x % 32;
  const int y = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + x;
  float sum = 0.0f;
  if (column < columns) {{
#pragma unroll 8
    for (int share = y; share < count; share += 32)
      sum += shares[int64_t(share) * columns + column];
  }}
  tile[y][x] = sum;
  __syncthreads();
  sum = tile[x][y];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (x == 0 && blockIdx.x * 32 + y < columns)
    sums[blockIdx.x * 32 + y] = {}(sum);
}}
)",
    entry, element_type, element_type);
}

std::string early_column_sum_code(std::string_view entry, std::string_view element_type) {
  return fmt::format(
    R"(// 32 columns a block, of which a thread has several: every warp adds up some of the shares, then one
// warp the rest. So small that its blocks find room beside those whose shares they wait for.
extern "C" __global__ void __launch_bounds__(256)
{}(float* __restrict__ shares, {}* __restrict__ sums, int32_t count, int32_t columns) {{
  constexpr int neighbours = VEC % 4 == 0 ? 4 : 1;
  constexpr int across = 32 / neighbours;
  __shared__ float tile[8][32];
  const int x = threadIdx.x % across * neighbours;
  const int column = blockIdx.x * 32 + x;
  packed<float, neighbours> sum;
#pragma unroll
  for (int i = 0; i < neighbours; ++i)
    sum.values[i] = 0.0f;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory"); // For the shares.
#endif
  if (column < columns) {{
#pragma unroll 8
    for (int share = threadIdx.x / across; share < count; share += 256 / across) {{
      packed<float, neighbours> one;
      one.load(shares + int64_t(share) * columns + column);
#pragma unroll
      for (int i = 0; i < neighbours; ++i)
        sum.values[i] += one.values[i];
    }}
  }}
#pragma unroll
  for (int i = 0; i < neighbours; ++i) {{
#pragma unroll
    for (int distance = across; distance < 32; distance *= 2)
      sum.values[i] += __shfl_xor_sync(0xffffffffu, sum.values[i], distance);
    if (threadIdx.x % 32 < across)
      tile[threadIdx.x / 32][x + i] = sum.values[i];
  }}
  __syncthreads();
  if (threadIdx.x < 32 && blockIdx.x * 32 + threadIdx.x < columns) {{
    float all = 0.0f;
#pragma unroll
    for (int warp = 0; warp < 8; ++warp)
      all += tile[warp][threadIdx.x];
    sums[blockIdx.x * 32 + threadIdx.x] = {}(all);
  }}
}}
)",
    entry, element_type, element_type);
}

} // namespace gristmill
