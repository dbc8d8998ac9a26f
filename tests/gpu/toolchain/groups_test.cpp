// cooperative_groups, barriers, pipelines, scoped atomics and wmma of the clang path, run on the
// mock; and groups and fragments through NVRTC, which must accept the same sources.
#include "tests/gpu/toolchain/header_fixture.hpp"
#include "tests/gpu/toolchain/nvrtc_fixture.hpp"

#include <algorithm>
#include <utility>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const char* const group_headers =
  "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
  "#include <cooperative_groups/scan.h>\n#include <cooperative_groups/memcpy_async.h>\n"
  "namespace cg = cooperative_groups;\n";

const char* const tile_body = R"(
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto tile = cg::tiled_partition<8>(warp);
    float* mine = out + threadIdx.x * 16;
    mine[0] = cg::reduce(warp, lane, cg::plus<int>());
    mine[1] = cg::reduce(tile, float(lane), cg::plus<float>());
    mine[2] = cg::reduce(tile, double(lane), cg::greater<double>());
    mine[3] = cg::inclusive_scan(tile, lane);
    mine[4] = cg::exclusive_scan(tile, lane, cg::plus<int>());
    mine[5] = tile.shfl(lane, 3);
    mine[6] = tile.shfl_xor(lane, 1) + 100 * tile.shfl_down(lane, 1);
    mine[7] = tile.ballot(lane % 2 == 0);
    mine[8] = tile.any(lane == 9) + 2 * tile.all(lane < 40);
    mine[9] = tile.meta_group_rank() + 10 * tile.meta_group_size() + 1000 * warp.meta_group_rank();
    mine[10] = __popc(tile.match_any(lane % 4));
    mine[11] = tile.thread_rank() + 100 * tile.size() + 10000 * block.num_threads();
    float3 wide = tile.shfl(make_float3(lane, lane + 1, lane + 2), 5);
    mine[12] = wide.z;
    auto dynamic = cg::tiled_partition(cg::coalesced_threads(), 4);
    mine[13] = dynamic.thread_rank() + 10 * dynamic.size() + 100 * dynamic.meta_group_rank();
    mine[14] = cg::reduce(warp, unsigned(lane), cg::bit_xor<unsigned>());
    mine[15] = cg::inclusive_scan(warp, float(lane), cg::greater<float>());
  )";

/// The sum over a row of lanes [first, first + count).
float sum_of(size_t first, size_t count) {
  float sum = 0;
  for (size_t i = first; i < first + count; ++i)
    sum += static_cast<float>(i);
  return sum;
}

} // namespace

TEST_CASE("tiles shuffle, vote, reduce and scan among their own threads") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = run_block(*clang, tile_body, 64 * 16, group_headers, 64);
  for (size_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    const float* mine = out.data() + i * 16;
    const size_t first = i / 8 * 8;
    CHECK(mine[0] == sum_of(i / 32 * 32, 32));
    CHECK(mine[1] == sum_of(first, 8));
    CHECK(mine[2] == static_cast<float>(first + 7));
    CHECK(mine[3] == sum_of(first, i - first + 1));
    CHECK(mine[4] == sum_of(first, i - first));
    CHECK(mine[5] == static_cast<float>(first + 3));
    CHECK(mine[6] == static_cast<float>((i ^ 1) + 100 * std::min(i + 1, first + 7)));
    CHECK(mine[7] == 0x55);
    CHECK(mine[8] == static_cast<float>((first == 8 ? 1 : 0) + 2 * (first < 40 ? 1 : 0)));
    CHECK(mine[9] == static_cast<float>(i % 32 / 8 + 40 + 1000 * (i / 32)));
    CHECK(mine[10] == 2);
    CHECK(mine[11] == static_cast<float>(i - first + 800 + 640000));
    CHECK(mine[12] == static_cast<float>(first + 7));
    CHECK(mine[13] == static_cast<float>(i % 4 + 40 + 100 * (i % 32 / 4)));
    CHECK(mine[14] == 0);
    CHECK(mine[15] == static_cast<float>(i));
  }
}

TEST_CASE("threads that happen to run together are a group of their own") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = run_block(*clang, R"(
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    if (lane % 3 == 0) {
      auto some = cg::coalesced_threads();
      out[lane] = cg::reduce(some, float(lane), cg::plus<float>()) + 1000 * some.thread_rank();
      out[32 + lane] = some.shfl(lane, 2) + 100 * cg::inclusive_scan(some, 1);
    }
    warp.sync();
    auto half = cg::binary_partition(warp, lane < 12);
    out[64 + lane] = half.size() + 100 * half.meta_group_rank();
    auto label = cg::labeled_partition(warp, lane / 10);
    out[96 + lane] = label.thread_rank() + 100 * label.size();
  )",
    128, group_headers);
  for (size_t lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    CHECK(out[lane] == (lane % 3 == 0 ? 165 + 1000 * static_cast<float>(lane / 3) : 0));
    CHECK(out[32 + lane] == (lane % 3 == 0 ? 6 + 100 * static_cast<float>(lane / 3 + 1) : 0));
    CHECK(out[64 + lane] == (lane < 12 ? 112 : 20));
    CHECK(out[96 + lane] == static_cast<float>(lane % 10 + (lane < 30 ? 1000 : 200)));
  }
}

namespace {

const char* const barrier_headers =
  "#include <cooperative_groups.h>\n#include <cuda/barrier>\n#include <cuda/pipeline>\n"
  "#include <cuda/atomic>\nnamespace cg = cooperative_groups;\n";

const char* const barrier_body = R"(
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ __align__(16) float tile[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ cuda::atomic<int, cuda::thread_scope_block> count;
    auto block = cg::this_thread_block();
    for (int i = 0; i < 4; ++i)
      out[i * 64 + lane] = i * 64 + lane;
    if (lane == 0) {
      init(&bar, blockDim.x);
      count = 0;
      out[450] = 0;
    }
    block.sync();
    cuda::memcpy_async(block, tile[0], out, sizeof(float) * 64, bar);
    auto token = bar.arrive();
    bar.wait(static_cast<decltype(token)&&>(token));
    out[256 + lane] = tile[0][63 - lane];
    bar.arrive_and_wait();
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int i = 0; i < 5; ++i) {
      if (i < 4) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, tile[i % 2], out + i * 64, cuda::aligned_size_t<16>(256), pipe);
        pipe.producer_commit();
      }
      if (i > 0) {
        pipe.consumer_wait();
        sum += tile[(i - 1) % 2][63 - lane];
        pipe.consumer_release();
      }
    }
    out[320 + lane] = sum;
    block.sync();
    auto own = cuda::make_pipeline();
    own.producer_acquire();
    cuda::memcpy_async(&tile[0][lane], out + lane, sizeof(float), own);
    own.producer_commit();
    own.consumer_wait();
    out[384 + lane] = tile[0][lane];
    own.consumer_release();
    count.fetch_add(2, cuda::memory_order_relaxed);
    cuda::atomic_ref<int, cuda::thread_scope_device> again(*reinterpret_cast<int*>(out + 450));
    again.fetch_max(lane);
    block.sync();
    if (lane == 0) {
      out[448] = count.load(cuda::memory_order_acquire);
      int expected = 63;
      out[449] = again.compare_exchange_strong(expected, 7) ? again.load() : -expected;
    }
  )";

} // namespace

TEST_CASE("barriers, pipelines of a block and of a thread, and atomics with a scope") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = run_block(*clang, barrier_body, 451, barrier_headers, 64);
  for (size_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    CHECK(out[256 + i] == static_cast<float>(63 - i));
    CHECK(out[320 + i] == static_cast<float>(4 * (63 - i) + 64 * 6));
    CHECK(out[384 + i] == static_cast<float>(i));
  }
  CHECK(out[448] == 128);
  CHECK(out[449] == 7);
}

namespace {

const char* const fragment_body = R"(
    using namespace nvcuda;
    __shared__ __half a[256], b[256];
    __shared__ __nv_bfloat16 ba[256], bb[256];
    for (int i = lane; i < 256; i += 32) {
      a[i] = __half(float(i % 7 - 3)); b[i] = __half(float(i % 5 - 2));
      ba[i] = __nv_bfloat16(float(i % 7 - 3)); bb[i] = __nv_bfloat16(float(i % 5 - 2));
    }
    __syncthreads();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.5f);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(sum, fa, fb, sum);
    for (int i = 0; i < sum.num_elements; ++i)
      sum.x[i] *= 2.f;
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::col_major> ga;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> gb;
    wmma::load_matrix_sync(ga, ba, 16);
    wmma::load_matrix_sync(gb, bb, 16);
    wmma::fill_fragment(sum, 0.f);
    wmma::mma_sync(sum, ga, gb, sum);
    wmma::store_matrix_sync(out + 256, sum, 16, wmma::mem_col_major);
  )";
const char* const fragment_headers =
  "#include <mma.h>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n";

/// An interpreter without wmma refuses the code, which is said aloud.
bool waits_for_wmma(const std::string& log) {
  const bool waits =
    log.find("wmma") != std::string::npos && log.find("is not supported") != std::string::npos;
  if (waits)
    MESSAGE("SKIPPED: the interpreter has no wmma: " << log);
  return waits;
}

} // namespace

TEST_CASE("wmma multiplies halves and bfloat16 in every mixture of layouts") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input(std::string(fragment_headers)
    + "\n__global__ void k(float* out) {\nconst int lane = threadIdx.x;\n" + fragment_body
    + "\n}\n");
  input.unit.entries[0] = {"k", {"float*"}, {"out"}, {false}};
  if (waits_for_wmma(compile_or_fail(input, *clang).log))
    return;
  const auto out = run_block(*clang, fragment_body, 512, fragment_headers);
  const auto a = [](size_t i) { return static_cast<float>(i % 7) - 3; };
  const auto b = [](size_t i) { return static_cast<float>(i % 5) - 2; };
  for (size_t row = 0; row < 16; ++row)
    for (size_t column = 0; column < 16; ++column) {
      float want = 0.5f, other = 0;
      for (size_t k = 0; k < 16; ++k) {
        want += a(row * 16 + k) * b(column * 16 + k);
        other += a(k * 16 + row) * b(k * 16 + column);
      }
      CHECK(out[row * 16 + column] == 2 * want);
      CHECK(out[256 + column * 16 + row] == other);
    }
}

TEST_CASE("groups, barriers, pipelines and fragments give the same numbers through NVRTC") {
  const auto clang = clang_or_skip();
  const auto nvrtc = nvrtc_or_skip();
  if (!clang || !nvrtc)
    return;
  struct program {
    const char* body;
    size_t count;
    const char* headers;
    uint32_t threads;
  };
  for (const program& p : {program{tile_body, 64 * 16, group_headers, 64},
         {barrier_body, 451, barrier_headers, 64}, {fragment_body, 512, fragment_headers, 32}}) {
    CAPTURE(p.headers);
    const auto ours = run_block(*clang, p.body, p.count, p.headers, p.threads);
    CHECK(ours == run_block(*nvrtc, p.body, p.count, p.headers, p.threads));
  }
}
