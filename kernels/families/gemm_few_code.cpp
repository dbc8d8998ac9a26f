#include "kernels/families/gemm_code.hpp"

namespace gristmill {

std::string_view gemm_dots_code() {
  return R"(// Each warp has CW of the many and R of the few; its lanes run along the depth, and PARTS warps
// share a depth.
template <int WARPS, int PARTS, int CW, int R, int V, int VT, int SPLITS>
__device__ __forceinline__ void dots(const task& p) {
  constexpr int sets = WARPS / PARTS;
  __shared__ float partial_sums[WARPS][R * CW];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const index_t many_blocks = (p.many() + sets * CW - 1) / (sets * CW);
  const index_t few_blocks = (p.few() + R - 1) / R;
  index_t id = blockIdx.x;
  const index_t first_many = id % many_blocks * (sets * CW);
  id /= many_blocks;
  const index_t first_few = id % few_blocks * R;
  id /= few_blocks;
  tile_place at{id % p.batches(), 0, 0, id / p.batches()};
  index_t begin, end;
  depth_range<SPLITS, 64>(p, at.split, begin, end);

  // Beyond the edge the last one is computed again and thrown away.
  task::many_place many_from[CW];
  task::few_place few_from[R];
#pragma unroll
  for (int c = 0; c < CW; ++c) {
    const index_t i = first_many + warp / PARTS * CW + c;
    many_from[c] = p.many_at(at.batch, i < p.many() ? i : p.many() - 1);
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
    few_from[r] = p.few_at(at.batch, first_few + r < p.few() ? first_few + r : p.few() - 1);
  float sum[R][CW];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int c = 0; c < CW; ++c)
      sum[r][c] = 0.0f;
#pragma unroll 2
  for (index_t k = begin + (warp % PARTS * 32 + lane) * V; k < end; k += PARTS * 32 * V) {
    float a[CW][V];
#pragma unroll
    for (int c = 0; c < CW; ++c)
      p.load_many<V>(many_from[c], k, a[c]);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float b[V];
#pragma unroll
      for (int v = 0; v < V; v += VT) {
        float some[VT];
        p.load_few<VT>(few_from[r], k + v, some);
#pragma unroll
        for (int e = 0; e < VT; ++e)
          b[v + e] = some[e];
      }
#pragma unroll
      for (int c = 0; c < CW; ++c)
#pragma unroll
        for (int e = 0; e < V; ++e)
          sum[r][c] = fmaf(a[c][e], b[e], sum[r][c]);
    }
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int c = 0; c < CW; ++c) {
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2)
        sum[r][c] += __shfl_xor_sync(0xffffffffu, sum[r][c], distance);
      if (lane == 0)
        partial_sums[warp][r * CW + c] = sum[r][c];
    }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < sets * R * CW; i += WARPS * 32) {
    const int set = i / (R * CW);
    const int place = i % (R * CW);
    float total[1] = {0.0f};
    for (int part = 0; part < PARTS; ++part)
      total[0] += partial_sums[set * PARTS + part][place];
    const index_t few = first_few + place / CW;
    const index_t many = first_many + set * CW + place % CW;
    if (few < p.few() && many < p.many())
      leave<1, SPLITS>(p, at, task::many_is_left ? many : few, task::many_is_left ? few : many,
        total);
  }
}

)";
}

std::string_view gemm_strips_code() {
  return R"(// X threads run along the many, each with V neighbours; Y of them share the depth. R of the few.
template <int X, int Y, int R, int V, int SPLITS>
__device__ __forceinline__ void strips(const task& p) {
  __shared__ float partial_sums[Y][R][X * V];
  const int x = static_cast<int>(threadIdx.x) % X;
  const int y = static_cast<int>(threadIdx.x) / X;
  const index_t many_blocks = (p.many() + X * V - 1) / (X * V);
  const index_t few_blocks = (p.few() + R - 1) / R;
  index_t id = blockIdx.x;
  const index_t first_many = id % many_blocks * (X * V);
  id /= many_blocks;
  const index_t first_few = id % few_blocks * R;
  id /= few_blocks;
  tile_place at{id % p.batches(), 0, 0, id / p.batches()};
  index_t begin, end;
  depth_range<SPLITS, 64>(p, at.split, begin, end);

  const index_t mine = first_many + x * V;
  const bool inside = mine < p.many();
  const task::many_place many_from = p.many_at(at.batch, inside ? mine : 0);
  task::few_place few_from[R];
#pragma unroll
  for (int r = 0; r < R; ++r)
    few_from[r] = p.few_at(at.batch, first_few + r < p.few() ? first_few + r : p.few() - 1);
  float sum[R][V];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int e = 0; e < V; ++e)
      sum[r][e] = 0.0f;
  if (inside) {
#pragma unroll 4
    for (index_t k = begin + y; k < end; k += Y) {
      float a[V];
      p.load_many<V>(many_from, k, a);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        float b[1];
        p.load_few<1>(few_from[r], k, b);
#pragma unroll
        for (int e = 0; e < V; ++e)
          sum[r][e] = fmaf(a[e], b[0], sum[r][e]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int e = 0; e < V; ++e)
      partial_sums[y][r][x * V + e] = sum[r][e];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < R * X * V; i += X * Y) {
    const index_t few = first_few + i / (X * V);
    const index_t many = first_many + i % (X * V);
    if (few >= p.few() || many >= p.many())
      continue;
    float total[1] = {0.0f};
    for (int part = 0; part < Y; ++part)
      total[0] += partial_sums[part][i / (X * V)][i % (X * V)];
    leave<1, SPLITS>(
      p, at, task::many_is_left ? many : few, task::many_is_left ? few : many, total);
  }
}

)";
}

} // namespace gristmill
