#include "kernels/families/attention_units_code.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

std::string list_of(int count, std::string_view pattern, int first = 0) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", fmt::format(fmt::runtime(pattern), i + first));
  return out;
}

/// Products of 64 rows by `columns`, 16 deep: the left operand in shared memory, or in registers
/// and then the right one with its columns innermost.
std::string products_code(int columns, bool in_registers, std::string_view type) {
  const int sums = columns / 2;
  const std::string results = list_of(sums, "\"+f\"(d[{}])");
  if (in_registers)
    return fmt::format(
      R"(__device__ __forceinline__ void weigh_values(float (&d)[{0}], const unsigned (&a)[4], uint64_t b) {{
  asm volatile("wgmma.mma_async.sync.aligned.m64n{1}k16.f32.{2}.{2} {{{3}}}, {{{4}}}, %{5}, 1, 1, 1, 1;"
               : {6}
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}}
)",
      sums, columns, type, list_of(sums, "%{}"), list_of(4, "%{}", sums), sums + 4, results);
  return fmt::format(
    R"(__device__ __forceinline__ void score_keys(float (&d)[{0}], uint64_t a, uint64_t b, int more) {{
  asm volatile("{{\n"
               " .reg .pred more;\n"
               " setp.ne.b32 more, %{1}, 0;\n"
               " wgmma.mma_async.sync.aligned.m64n{2}k16.f32.{3}.{3} {{{4}}}, %{5}, %{6}, more, 1, 1, 0, 0;\n"
               "}}"
               : {7}
               : "l"(a), "l"(b), "r"(more));
}}
)",
    sums, sums + 2, columns, type, list_of(sums, "%{}"), sums, sums + 1, results);
}

} // namespace

std::string attention_units_code(dtype type, const attention_units_point& point) {
  const std::string_view name = type == dtype::bfloat16 ? "bf16" : "f16";
  std::string code = fmt::format(R"(#include <cstdint>
#include <{0}>

// Attention with the warpgroup units: each of two warpgroups has 64 queries, a third brings keys and
// values. The scores stay in registers; a warpgroup's softmax runs while the units weigh the values
// of the keys before.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WARPGROUP_UNITS 1
#else
#define HAS_WARPGROUP_UNITS 0
#endif

using unit_number = {1};
constexpr int unit_keys = {2};
constexpr int unit_head = {3};
constexpr int unit_stages = {4};
constexpr bool unit_turns = {5};

// As the launch plan encodes it.
struct alignas(64) tensor_map {{
  char opaque[128];
}};

#if HAS_WARPGROUP_UNITS
)",
    type == dtype::bfloat16 ? "cuda_bf16.h" : "cuda_fp16.h",
    type == dtype::bfloat16 ? "__nv_bfloat16" : "__half", point.keys, point.head, point.stages,
    point.turns);
  code += products_code(point.keys, false, name);
  code += products_code(point.head, true, name);
  code += fmt::format(R"(
__device__ __forceinline__ unsigned two_numbers(float low, float high) {{
  unsigned out;
  asm("cvt.rn.{}x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}}
)",
    name);
  code += R"(
__device__ __forceinline__ unsigned unit_place(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
// Rows of 64 numbers with the 128-byte swizzle; `leading`: bytes from 64 columns to the next 64,
// where the columns are innermost.
__device__ __forceinline__ uint64_t unit_descriptor(unsigned place, unsigned leading) {
  return static_cast<uint64_t>((place & 0x3ffff) >> 4) | uint64_t(leading >> 4) << 16
    | uint64_t(64) << 32 | uint64_t(1) << 62;
}
__device__ __forceinline__ void unit_await(unsigned barrier, unsigned parity) {
  asm volatile("{\n"
               " .reg .pred done;\n"
               "again:\n"
               " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               " @!done bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void unit_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void unit_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void unit_bring(
  unsigned to, const tensor_map* map, int column, int row, int head, unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
               "l"(map), "r"(column), "r"(row), "r"(head), "r"(barrier)
               : "memory");
}
// What was computed for these registers stays before the fence behind it.
template <int N>
__device__ __forceinline__ void keep_before(float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    asm volatile("" : "+f"(values[i])::"memory");
}
__device__ __forceinline__ void keep_before(unsigned (&values)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    asm volatile("" : "+r"(values[i])::"memory");
}
__device__ __forceinline__ float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
#endif

// `scale` is that of the scores times the binary logarithm of e. `rows` and `keys` are those of one
// head, at least 1 of each. What a tile has beyond them arrives as zeros.
extern "C" __global__ void __launch_bounds__(384, 1)
  attention_units(const __grid_constant__ tensor_map query_map,
    const __grid_constant__ tensor_map key_map, const __grid_constant__ tensor_map value_map,
    unit_number* __restrict__ out, int rows, int keys, float scale) {
#if HAS_WARPGROUP_UNITS
  constexpr int blocks = unit_head / 64;
  constexpr unsigned query_bytes = 128 * unit_head * 2;
  constexpr unsigned query_block = 128 * 128;
  constexpr unsigned tile_bytes = unit_keys * unit_head * 2;
  constexpr unsigned tile_block = unit_keys * 128;
  extern __shared__ __align__(16) unsigned char unit_memory[];
  __shared__ __align__(8) uint64_t query_full, key_full[unit_stages], key_empty[unit_stages],
    value_full[unit_stages], value_empty[unit_stages];
  const unsigned queries_at = (unit_place(unit_memory) + 1023u) & ~1023u;
  const unsigned keys_at = queries_at + query_bytes;
  const unsigned values_at = keys_at + unit_stages * tile_bytes;
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / 128;
  const int tiles = (rows + 127) / 128;
  const int head = static_cast<int>(blockIdx.x) / tiles;
  const int first_row = static_cast<int>(blockIdx.x) % tiles * 128;
  const int steps = (keys + unit_keys - 1) / unit_keys;
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(unit_place(&query_full)) : "memory");
    for (int s = 0; s < unit_stages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(unit_place(&key_full[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(unit_place(&value_full[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(unit_place(&key_empty[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(unit_place(&value_empty[s])) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (thread == 0) {
      unit_expect(unit_place(&query_full), query_bytes);
      for (int b = 0; b < blocks; ++b)
        unit_bring(queries_at + b * query_block, &query_map, b * 64, first_row, head,
          unit_place(&query_full));
      for (int step = 0; step < steps; ++step) {
        const int stage = step % unit_stages;
        const unsigned parity = (step / unit_stages & 1) ^ 1;
        const int row = step * unit_keys;
        unit_await(unit_place(&key_empty[stage]), parity);
        unit_expect(unit_place(&key_full[stage]), tile_bytes);
        for (int b = 0; b < blocks; ++b)
          unit_bring(keys_at + stage * tile_bytes + b * tile_block, &key_map, b * 64, row, head,
            unit_place(&key_full[stage]));
        unit_await(unit_place(&value_empty[stage]), parity);
        unit_expect(unit_place(&value_full[stage]), tile_bytes);
        for (int b = 0; b < blocks; ++b)
          unit_bring(values_at + stage * tile_bytes + b * tile_block, &value_map, b * 64, row, head,
            unit_place(&value_full[stage]));
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  const bool speaks = thread % 128 == 0;
  const int lane = thread % 32;
  const unsigned mine = queries_at + (group - 1) * 64 * 128;
  float score[unit_keys / 2];
  float sum[unit_head / 2];
  unsigned weight[unit_keys / 16][4];
#pragma unroll
  for (int e = 0; e < unit_head / 2; ++e)
    sum[e] = 0.0f;
  // Of the row lane / 4 and the one eight below.
  float top[2] = {-INFINITY, -INFINITY};
  float total[2] = {0.0f, 0.0f};
  const auto issue_scores = [&](int step) {
    const int stage = step % unit_stages;
    unit_await(unit_place(&key_full[stage]), step / unit_stages & 1);
    const unsigned from = keys_at + stage * tile_bytes;
    keep_before(score);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < unit_head / 16; ++k)
      score_keys(score, unit_descriptor(mine + k / 4 * query_block + k % 4 * 32, 16),
        unit_descriptor(from + k / 4 * tile_block + k % 4 * 32, 16), k > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  };
  // One warpgroup's products go to the units while the other one has its softmax.
  const auto take_turn = [&] {
    if (unit_turns)
      asm volatile("bar.sync %0, 256;" ::"r"(group) : "memory");
  };
  const auto pass_turn = [&] {
    if (unit_turns)
      asm volatile("bar.arrive %0, 256;" ::"r"(3 - group) : "memory");
  };
  if (group == 2 && steps > 1)
    pass_turn();
  unit_await(unit_place(&query_full), 0);
  issue_scores(0);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  if (speaks)
    unit_arrive(unit_place(&key_empty[0]));
  float shrink[2];
  bool shrinks = true;
  // The largest score that the weights are relative to may lag behind by that: they are 256 at most,
  // and what was summed up needs a new scale rarely.
  const float lag = 8.0f / scale;
  // Softmax of a step; the values of the step before may still be weighed. Few warps share a
  // scheduler, so maxima and sums go in four chains.
  const auto soften = [&] {
    bool grows = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float chain[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        chain[i] = score[i / 2 * 4 + half * 2 + i % 2];
#pragma unroll
      for (int j = 2; j < unit_keys / 8; j += 2) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          chain[i] = fmaxf(chain[i], score[(j + i / 2) * 4 + half * 2 + i % 2]);
      }
      float highest = fmaxf(fmaxf(chain[0], chain[1]), fmaxf(chain[2], chain[3]));
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
      const bool is_new = highest > top[half] + lag;
      grows = grows || is_new;
      const float next = is_new ? highest : top[half];
      const float base = next == -INFINITY ? 0.0f : next * scale;
      shrink[half] = is_new ? power_of_two(top[half] * scale - base) : 1.0f;
      top[half] = next;
#pragma unroll
      for (int j = 0; j < unit_keys / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& one = score[j * 4 + half * 2 + e];
          one = power_of_two(fmaf(one, scale, -base));
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        chain[i] = score[i / 2 * 4 + half * 2 + i % 2];
#pragma unroll
      for (int j = 2; j < unit_keys / 8; j += 2) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          chain[i] += score[(j + i / 2) * 4 + half * 2 + i % 2];
      }
      total[half] = fmaf(
        total[half], shrink[half], (chain[0] + chain[1]) + (chain[2] + chain[3]));
    }
    shrinks = __any_sync(~0u, grows);
  };
  // Whatever was under way is done; its values may be replaced.
  const auto take_over = [&](int step) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (speaks && step > 0)
      unit_arrive(unit_place(&value_empty[(step - 1) % unit_stages]));
#pragma unroll
    for (int k = 0; k < unit_keys / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        weight[k][i] = two_numbers(score[k * 8 + i * 2], score[k * 8 + i * 2 + 1]);
    }
    if (shrinks) {
#pragma unroll
      for (int e = 0; e < unit_head / 2; ++e)
        sum[e] *= shrink[e / 2 % 2];
    }
  };
  const auto issue_values = [&](int step) {
    const int stage = step % unit_stages;
    unit_await(unit_place(&value_full[stage]), step / unit_stages & 1);
    const unsigned from = values_at + stage * tile_bytes;
    keep_before(sum);
#pragma unroll
    for (int k = 0; k < unit_keys / 16; ++k)
      keep_before(weight[k]);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < unit_keys / 16; ++k)
      weigh_values(sum, weight[k], unit_descriptor(from + k * 2048, tile_block));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  };
  for (int step = 0; step + 1 < steps; ++step) {
    soften();
    take_over(step);
    take_turn();
    issue_scores(step + 1);
    issue_values(step);
    // Nobody waits for the last turn.
    if (group == 1 || step + 2 < steps)
      pass_turn();
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (speaks)
      unit_arrive(unit_place(&key_empty[(step + 1) % unit_stages]));
  }
  // Keys that are none weigh nothing.
  if (const int left = keys - (steps - 1) * unit_keys; left < unit_keys) {
#pragma unroll
    for (int i = 0; i < unit_keys / 2; ++i)
      if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= left)
        score[i] = -INFINITY;
  }
  soften();
  take_over(steps - 1);
  issue_values(steps - 1);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float all = total[half];
    all += __shfl_xor_sync(~0u, all, 1);
    all += __shfl_xor_sync(~0u, all, 2);
    const float inverse = 1.0f / all;
    const int row = first_row + (group - 1) * 64 + thread % 128 / 32 * 16 + half * 8 + lane / 4;
    if (row >= rows)
      continue;
    unit_number* const to =
      out + (static_cast<uint64_t>(head) * rows + row) * unit_head + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < unit_head / 8; ++j)
      *reinterpret_cast<unsigned*>(to + j * 8) =
        two_numbers(sum[j * 4 + half * 2] * inverse, sum[j * 4 + half * 2 + 1] * inverse);
  }
#endif
}
)";
  return code;
}

} // namespace gristmill
