#include "kernels/sweep_ring.hpp"

#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// What is on its way in a multiprocessor, and rows of a group at most: with rows of 16 KiB four
/// are faster than six to twelve on an H200 (56.0 and 57.1 us for 8192 rows).
constexpr int bytes_ahead = 65536;
constexpr int rows_ahead_max = 8;

} // namespace

std::string ring_functions() {
  return R"(#if CHUNKS > 0
__device__ __forceinline__ unsigned int shared_place(const void* at) {
  return static_cast<unsigned int>(__cvta_generic_to_shared(at));
}
__device__ __forceinline__ void start_barrier(const uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_place(barrier)), "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void await(const uint64_t* barrier, unsigned int parity) {
  asm volatile("{\n"
               " .reg .pred done;\n"
               "again:\n"
               " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               " @!done bra again;\n"
               "}" ::"r"(shared_place(barrier)),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void arrive(const uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_place(barrier)) : "memory");
}
__device__ __forceinline__ void expect(const uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_place(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bring(
  const void* to, const void* from, int bytes, const uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(shared_place(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_place(barrier))
               : "memory");
}
#endif

)";
}

std::string ring_setup() {
  return R"(const int group = threadIdx.x / block_threads; // The last warp's is `groups`.
const int lane = threadIdx.x % block_threads;
const int rank = 0;
#if CHUNKS > 0
extern __shared__ __align__(128) unsigned char ring[];
__shared__ uint64_t filled[STAGES];
__shared__ uint64_t emptied[STAGES];
if (threadIdx.x == 0) {
  for (int stage = 0; stage < STAGES; ++stage) {
    start_barrier(&filled[stage], 1);
    start_barrier(&emptied[stage], block_threads / 32);
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__syncthreads();
#endif
)";
}

std::string ring_producer(const std::string& pointers, const std::vector<ring_part>& parts,
  const std::string& rows, const std::string& cols) {
  std::string copies;
  int before = 0;
  for (const ring_part& part : parts) {
    copies += fmt::format("bring(place + {0} * {1}, {2}, {0} * {3}, &filled[stage]);\n", cols,
      before, part.pointer, part.element_bytes);
    before += part.element_bytes;
  }
  return fmt::format(R"(if (group == groups && lane == 0) {{
  int stage = 0;
  unsigned int parity = 1; // A barrier that nobody has arrived at has just ended such a phase.
  for (int row = first_row; row < {}; row += row_step) {{
    unsigned char* const place = ring + stage * stage_bytes;
{}    await(&emptied[stage], parity);
    expect(&filled[stage], stage_bytes);
{}    if (++stage == STAGES) {{
      stage = 0;
      parity ^= 1;
    }}
  }}
}}
)",
    rows, indented(pointers, 4), indented(copies, 4));
}

std::string ring_row(const std::vector<ring_part>& parts, const std::string& cols) {
  std::string text = "await(&filled[stage], parity);\n";
  int before = 0;
  for (const ring_part& part : parts) {
    text += fmt::format("const {0}* const {1} = reinterpret_cast<const {0}*>(ring + stage * "
                        "stage_bytes + {2} * {3});\n",
      part.type, part.pointer, cols, before);
    before += part.element_bytes;
  }
  return text;
}

std::string ring_row_read() {
  return "__syncwarp();\nif (lane % 32 == 0)\n  arrive(&emptied[stage]);\nstage += groups;\n"
         "if (stage >= STAGES) {\n  stage -= STAGES;\n  parity ^= 1;\n}\n";
}

ring_plan ring_plan_of(
  const sweep_point& point, int row_bytes, const std::string& cols, const std::string& chunks) {
  const std::string row = fmt::format("{} * {}", cols, row_bytes);
  // Each group has places of its own: a barrier tells of a parity, and so nothing to a group that
  // could be two phases ahead.
  const std::string stages = fmt::format(
    "{0} * max(2, min({1}, {2} // ({3} * {0})))", point.blocks, rows_ahead_max, bytes_ahead, row);
  // At the end the groups' sums are put together where the rows were.
  const int sums = point.width * point.threads * 4;
  return {
    .stages = stages, .shared = fmt::format("max({} * {}, {} * {})", stages, row, chunks, sums)};
}

std::string ring_condition(const sweep_point& point, int row_bytes, const std::string& cols) {
  return fmt::format(
    "{} * {} <= smem_per_block - {}", cols, ring_bytes_min(point, row_bytes), bytes_beside_ring);
}

} // namespace gristmill
