#include "kernels/families/gemm_code.hpp"

namespace gristmill {

std::string_view gemm_common_code() {
  return R"(struct tile_place {
  index_t batch;
  index_t row;
  index_t column;
  index_t split;
};

// Which tile a block computes. Blocks walk down eight rows of tiles before they go to the right, so
// that those that run together share operands in the cache.
template <int BM, int BN>
__device__ __forceinline__ tile_place place_of(const task& p) {
  const index_t down = (p.rows() + BM - 1) / BM;
  const index_t across = (p.columns() + BN - 1) / BN;
  index_t id = blockIdx.x;
  const index_t tile = id % (down * across);
  id /= down * across;
  const index_t first = tile / (8 * across) * 8;
  const index_t height = down - first < 8 ? down - first : 8;
  const index_t inside = tile - first * across;
  tile_place at;
  at.batch = id % p.batches();
  at.split = id / p.batches();
  at.row = (first + inside % height) * BM;
  at.column = inside / height * BN;
  return at;
}

// The part of the depth that a block adds up: [begin, end).
template <int SPLITS, int STEP>
__device__ __forceinline__ void depth_range(
  const task& p, index_t split, index_t& begin, index_t& end) {
  const index_t depth = p.depth();
  const index_t chunk = SPLITS == 1 ? depth : (depth + SPLITS * STEP - 1) / (SPLITS * STEP) * STEP;
  begin = split * chunk < depth ? split * chunk : depth;
  end = depth - begin < chunk ? depth : begin + chunk;
}

// Sums of W neighbouring columns leave: to the epilogue, or to the partial sums.
template <int W, int SPLITS>
__device__ __forceinline__ void leave(
  const task& p, const tile_place& at, index_t row, index_t column, const float (&sum)[W]) {
  if constexpr (SPLITS == 1) {
    p.finish<W>(at.batch, row, column, sum);
  } else {
    packed<float, W> out;
#pragma unroll
    for (int e = 0; e < W; ++e)
      out.values[e] = sum[e];
    const uint64_t line = (uint64_t(at.split) * p.batches() + at.batch) * p.rows() + row;
    out.store(p.partial + line * p.columns() + column);
  }
}

// N neighbours in groups of W, as far as there are columns.
template <int N, int W, int SPLITS>
__device__ __forceinline__ void leave_all(
  const task& p, const tile_place& at, index_t row, index_t column, const float* sums) {
#pragma unroll
  for (int n = 0; n < N; n += W) {
    if (column + n >= p.columns())
      continue;
    float some[W];
#pragma unroll
    for (int e = 0; e < W; ++e)
      some[e] = sums[n + e];
    leave<W, SPLITS>(p, at, row, column + n, some);
  }
}

// The i-th vector of a tile of ROWS x DEPTH elements.
template <bool ALONG_DEPTH, int ROWS, int DEPTH, int V>
struct tile_slot {
  static constexpr int count = ROWS * DEPTH / V;
  __device__ static __forceinline__ int row(int i) {
    return ALONG_DEPTH ? i / (DEPTH / V) : i % (ROWS / V) * V;
  }
  __device__ static __forceinline__ int depth(int i) {
    return ALONG_DEPTH ? i % (DEPTH / V) * V : i / (ROWS / V);
  }
};

)";
}

std::string_view gemm_ffma_code() {
  return R"(// BM x BN elements a block, TM x TN a thread; steps of BK along the depth, of which the next is
// read while this one is computed. Vectors of VL and VR elements are read, W columns written.
template <int BM, int BN, int BK, int TM, int TN, int VL, int VR, int W, int SPLITS>
__device__ __forceinline__ void ffma_tile(const task& p) {
  constexpr int across = BN / TN;
  constexpr int threads = BM / TM * across;
  constexpr int GM = TM < 4 ? TM : 4;
  constexpr int GN = TN < 4 ? TN : 4;
  using left_slot = tile_slot<task::left_along_depth, BM, BK, VL>;
  using right_slot = tile_slot<task::right_along_depth, BN, BK, VR>;
  constexpr int left_loads = (left_slot::count + threads - 1) / threads;
  constexpr int right_loads = (right_slot::count + threads - 1) / threads;
  // The depth goes first, so that a thread reads its rows and columns as vectors.
  __shared__ __align__(16) float left_tile[2][BK][BM + 4];
  __shared__ __align__(16) float right_tile[2][BK][BN + 4];
  const int tid = static_cast<int>(threadIdx.x);
  const tile_place at = place_of<BM, BN>(p);
  index_t begin, end;
  depth_range<SPLITS, BK>(p, at.split, begin, end);

  task::left_place left_from[left_loads];
  task::right_place right_from[right_loads];
  bool left_inside[left_loads];
  bool right_inside[right_loads];
#pragma unroll
  for (int i = 0; i < left_loads; ++i) {
    const int slot = tid + i * threads;
    const index_t row = at.row + left_slot::row(slot);
    left_inside[i] = slot < left_slot::count && row < p.rows();
    left_from[i] = p.left_at(at.batch, row);
  }
#pragma unroll
  for (int i = 0; i < right_loads; ++i) {
    const int slot = tid + i * threads;
    const index_t column = at.column + right_slot::row(slot);
    right_inside[i] = slot < right_slot::count && column < p.columns();
    right_from[i] = p.right_at(at.batch, column);
  }
  float left_next[left_loads][VL];
  float right_next[right_loads][VR];
  const auto fetch = [&](index_t start) {
#pragma unroll
    for (int i = 0; i < left_loads; ++i) {
      const index_t k = start + left_slot::depth(tid + i * threads);
      if (left_inside[i] && k < end) {
        p.load_left<VL>(left_from[i], k, left_next[i]);
      } else {
#pragma unroll
        for (int e = 0; e < VL; ++e)
          left_next[i][e] = 0.0f;
      }
    }
#pragma unroll
    for (int i = 0; i < right_loads; ++i) {
      const index_t k = start + right_slot::depth(tid + i * threads);
      if (right_inside[i] && k < end) {
        p.load_right<VR>(right_from[i], k, right_next[i]);
      } else {
#pragma unroll
        for (int e = 0; e < VR; ++e)
          right_next[i][e] = 0.0f;
      }
    }
  };
  const auto put = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < left_loads; ++i) {
      const int slot = tid + i * threads;
      const int row = left_slot::row(slot);
      const int k = left_slot::depth(slot);
      if (left_slot::count % threads != 0 && slot >= left_slot::count)
        continue;
#pragma unroll
      for (int e = 0; e < VL; ++e) {
        if (task::left_along_depth)
          left_tile[buffer][k + e][row] = left_next[i][e];
        else
          left_tile[buffer][k][row + e] = left_next[i][e];
      }
    }
#pragma unroll
    for (int i = 0; i < right_loads; ++i) {
      const int slot = tid + i * threads;
      const int column = right_slot::row(slot);
      const int k = right_slot::depth(slot);
      if (right_slot::count % threads != 0 && slot >= right_slot::count)
        continue;
#pragma unroll
      for (int e = 0; e < VR; ++e) {
        if (task::right_along_depth)
          right_tile[buffer][k + e][column] = right_next[i][e];
        else
          right_tile[buffer][k][column + e] = right_next[i][e];
      }
    }
  };

  // A thread has groups of GM rows and GN columns; groups of one thread lie far apart, so that
  // threads of a warp read neighbouring words.
  const int thread_row = tid / across * GM;
  const int thread_column = tid % across * GN;
  float sum[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j)
      sum[i][j] = 0.0f;
  int buffer = 0;
  if (begin < end) {
    fetch(begin);
    put(0);
  }
  __syncthreads();
  for (index_t start = begin; start < end; start += BK) {
    const bool has_next = end - start > BK;
    if (has_next)
      fetch(start + BK);
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      float a[TM];
      float b[TN];
#pragma unroll
      for (int i = 0; i < TM; i += GM) {
        packed<float, GM> some;
        some.load(&left_tile[buffer][k][thread_row + i * (BM / TM)]);
#pragma unroll
        for (int e = 0; e < GM; ++e)
          a[i + e] = some.values[e];
      }
#pragma unroll
      for (int j = 0; j < TN; j += GN) {
        packed<float, GN> some;
        some.load(&right_tile[buffer][k][thread_column + j * across]);
#pragma unroll
        for (int e = 0; e < GN; ++e)
          b[j + e] = some.values[e];
      }
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
          sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
    }
    if (has_next)
      put(buffer ^ 1);
    buffer ^= 1;
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const index_t row = at.row + thread_row + i / GM * GM * (BM / TM) + i % GM;
    if (row >= p.rows())
      continue;
#pragma unroll
    for (int j = 0; j < TN; j += GN)
      leave_all<GN, (W < GN ? W : GN), SPLITS>(
        p, at, row, at.column + thread_column + j * across, &sum[i][j]);
  }
}

)";
}

std::string_view gemm_direct_code() {
  return R"(// One element a thread; neighbouring threads have neighbouring columns.
template <int THREADS>
__device__ __forceinline__ void direct(const task& p) {
  const uint64_t id = uint64_t(blockIdx.x) * THREADS + threadIdx.x;
  if (id >= uint64_t(p.batches()) * p.rows() * p.columns())
    return;
  const index_t column = index_t(id) % p.columns();
  const index_t line = index_t(id / p.columns());
  const index_t row = line % p.rows();
  const index_t batch = line / p.rows();
  const task::left_place left_from = p.left_at(batch, row);
  const task::right_place right_from = p.right_at(batch, column);
  float sum[1] = {0.0f};
  const index_t depth = p.depth();
#pragma unroll 8
  for (index_t k = 0; k < depth; ++k) {
    float a[1];
    float b[1];
    p.load_left<1>(left_from, k, a);
    p.load_right<1>(right_from, k, b);
    sum[0] = fmaf(a[0], b[0], sum[0]);
  }
  p.finish<1>(batch, row, column, sum);
}

)";
}

std::string_view gemm_reduce_code() {
  return R"(// Adds the parts of a split depth up, in their order, W columns a thread.
template <int SPLITS, int W>
__device__ __forceinline__ void reduce_partial(const task& p) {
  const uint64_t elements = uint64_t(p.batches()) * p.rows() * p.columns();
  const uint64_t id = (uint64_t(blockIdx.x) * 256 + threadIdx.x) * W;
  if (id >= elements)
    return;
  float sum[W];
#pragma unroll
  for (int e = 0; e < W; ++e)
    sum[e] = 0.0f;
#pragma unroll
  for (int split = 0; split < SPLITS; ++split) {
    packed<float, W> some;
    some.load(p.partial + split * elements + id);
#pragma unroll
    for (int e = 0; e < W; ++e)
      sum[e] += some.values[e];
  }
  const index_t column = index_t(id % p.columns());
  const index_t line = index_t(id / p.columns());
  p.finish<W>(line / p.rows(), line % p.rows(), column, sum);
}

)";
}

} // namespace gristmill
