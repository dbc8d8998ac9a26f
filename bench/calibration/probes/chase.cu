// Latency of a load by how much memory a random chain of loads wanders through: L1, L2 near and
// far, DRAM; then with a page between links (TLB), and from each multiprocessor to single lines of
// L2.
#include "bench/calibration/probes/probe.cuh"

#include <numeric>

namespace gristmill::calibration {

namespace {

template <bool L1>
__global__ void chase(const uint64_t* start, int steps, uint64_t* out) {
  const uint64_t* at = start;
  for (int pass = 0; pass < 2; ++pass) {
    const long long begin = clock64();
    for (int i = 0; i < steps; ++i) {
      uint64_t next = 0;
      if (L1)
        asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(next) : "l"(at) : "memory");
      else
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(at) : "memory");
      at = reinterpret_cast<const uint64_t*>(next);
    }
    out[pass] = static_cast<uint64_t>(clock64() - begin);
  }
  out[2] = reinterpret_cast<uint64_t>(at);
}

__global__ void link_up(uint8_t* base, const uint32_t* order, uint64_t count, uint64_t stride) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * blockDim.x)
    *reinterpret_cast<uint64_t*>(base + order[i] * stride) =
      reinterpret_cast<uint64_t>(base + order[(i + 1) % count] * stride);
}

__global__ void line_latency(
  const uint8_t* lines, int count, uint64_t spacing, uint32_t* cycles, uint32_t* sm) {
  extern __shared__ uint8_t alone[];
  uint32_t id = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  sm[blockIdx.x] = id;
  for (int line = 0; line < count; ++line) {
    // Nine loads that wait for each other (the lines hold zeros); the clock does not wait for the
    // last.
    uint32_t best = ~0U;
    for (int turn = 0; turn < 4; ++turn) {
      uint32_t v = 0;
      const long long begin = clock64();
#pragma unroll
      for (int i = 0; i < 9; ++i)
        asm volatile("ld.global.cg.u32 %0, [%1];"
                     : "=r"(v)
                     : "l"(lines + line * spacing + v)
                     : "memory");
      const long long end = clock64();
      best = min(best, static_cast<uint32_t>(end - begin) / 8 + v);
    }
    cycles[blockIdx.x * count + line] = best;
  }
}

void wander(
  probe_context& c, uint8_t* base, uint64_t bytes, uint64_t stride, bool l1, const char* what) {
  const uint64_t count = bytes / stride;
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 dice(bytes + stride);
  for (uint64_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[dice() % (i + 1)]);
  uint32_t* places = device_memory<uint32_t>(count);
  uint64_t* out = device_memory<uint64_t>(3);
  CALIBRATION_CUDA(cudaMemcpy(places, order.data(), count * 4, cudaMemcpyHostToDevice));
  link_up<<<264, 256>>>(base, places, count, stride);
  const int steps = static_cast<int>(std::min<uint64_t>(std::max<uint64_t>(count, 2000), 20000));
  const auto* start = reinterpret_cast<const uint64_t*>(base + order[0] * stride);
  if (l1)
    chase<true><<<1, 1>>>(start, steps, out);
  else
    chase<false><<<1, 1>>>(start, steps, out);
  uint64_t seen[2] = {0, 0};
  CALIBRATION_CUDA(cudaMemcpy(seen, out, 16, cudaMemcpyDeviceToHost));
  const std::string variant =
    std::string(what) + " bytes=" + std::to_string(bytes) + " stride=" + std::to_string(stride);
  c.row(variant, "first_pass", static_cast<double>(seen[0]) / steps, "cycles");
  c.row(variant, "second_pass", static_cast<double>(seen[1]) / steps, "cycles");
  CALIBRATION_CUDA(cudaFree(places));
  CALIBRATION_CUDA(cudaFree(out));
}

} // namespace

void probe_chase(probe_context& c) {
  constexpr uint64_t kib = 1024, mib = kib * kib, gib = kib * mib;
  auto* base = device_memory<uint8_t>(16 * gib);
  for (const uint64_t bytes : {4 * kib, 16 * kib, 64 * kib, 128 * kib, 192 * kib, 256 * kib})
    wander(c, base, bytes, 32, true, "ca");
  for (const uint64_t bytes : {64 * kib, 256 * kib, mib, 4 * mib, 8 * mib, 16 * mib, 24 * mib,
         32 * mib, 40 * mib, 48 * mib, 56 * mib, 64 * mib, 128 * mib, 256 * mib, gib, 4 * gib})
    wander(c, base, bytes, 128, false, "cg");
  for (const uint64_t bytes : {64 * mib, 256 * mib, gib, 2 * gib, 4 * gib, 8 * gib, 16 * gib})
    wander(c, base, bytes, 2 * mib, false, "page");
  constexpr int lines = 64;
  const int blocks = c.multiprocessors;
  auto* cycles = device_memory<uint32_t>(static_cast<uint64_t>(blocks) * lines);
  auto* sm = device_memory<uint32_t>(static_cast<uint64_t>(blocks));
  CALIBRATION_CUDA(cudaMemset(base, 0, 1 << 20));
  CALIBRATION_CUDA(
    cudaFuncSetAttribute(line_latency, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  line_latency<<<blocks, 1, 200 * 1024>>>(base, lines, 4096 + 128, cycles, sm);
  std::vector<uint32_t> seen(static_cast<size_t>(blocks) * lines), ids(static_cast<size_t>(blocks));
  CALIBRATION_CUDA(cudaMemcpy(seen.data(), cycles, seen.size() * 4, cudaMemcpyDeviceToHost));
  CALIBRATION_CUDA(cudaMemcpy(ids.data(), sm, ids.size() * 4, cudaMemcpyDeviceToHost));
  for (int b = 0; b < blocks; ++b)
    for (int line = 0; line < lines; ++line)
      c.row(
        "line sm=" + std::to_string(ids[static_cast<size_t>(b)]) + " line=" + std::to_string(line),
        "least", seen[static_cast<size_t>(b * lines + line)], "cycles");
}

} // namespace gristmill::calibration
