// What the memory system does with requests that are not long and straight: one access a thread,
// lines of which a warp wants one sector, strided and shuffled ones, from L2 and from DRAM; and reads
// by every multiprocessor of what others have read before.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

/// Each thread moves one T: no loop, so blocks come and go as in plain element-wise kernels.
template <class T, bool READS, bool WRITES>
__global__ void __launch_bounds__(256) once(const T* from, T* to, uint32_t* sink) {
  const uint64_t i = blockIdx.x * uint64_t{256} + threadIdx.x;
  T v;
  if (READS)
    v = from[i];
  else
    memset(&v, static_cast<int>(threadIdx.x), sizeof(T));
  if (WRITES)
    to[i] = v;
  else if (*reinterpret_cast<const uint32_t*>(&v) == 0x12345678)
    *sink = 1;
}

/// The lanes of a warp touch words that lie `stride` words apart; every word of the region is
/// touched once in all. `UNROLL` requests are in flight.
template <int UNROLL, bool READS>
__global__ void __launch_bounds__(256)
  strided(uint32_t* at, uint64_t words, uint32_t stride, uint32_t* sink) {
  uint32_t sum = 0;
  const uint64_t warp = (blockIdx.x * uint64_t{256} + threadIdx.x) / 32;
  const uint64_t warps = gridDim.x * uint64_t{8};
  const uint32_t lane = threadIdx.x % 32;
  // A group of `stride` requests covers 32 * stride consecutive words.
  for (uint64_t r = warp * UNROLL; r + UNROLL <= words / 32; r += warps * UNROLL) {
    uint32_t v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const uint64_t request = r + u;
      const uint64_t place = request / stride * (uint64_t{32} * stride) + request % stride
        + uint64_t{lane} * stride;
      if (READS)
        v[u] = __ldcg(at + place);
      else
        at[place] = lane;
    }
    if (READS)
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        sum ^= v[u];
  }
  if (READS && sum == 0x12345678)
    *sink = sum;
}

/// Every lane reads a word of its own, at a random place within the region.
template <int UNROLL, bool READS>
__global__ void __launch_bounds__(256)
  scattered(uint32_t* at, uint32_t mask, uint32_t rounds, uint32_t* sink) {
  uint32_t sum = 0;
  uint32_t seed = (blockIdx.x * 256 + threadIdx.x) * 2654435761U + 1;
  for (uint32_t r = 0; r < rounds; ++r) {
    uint32_t v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      seed = seed * 1664525U + 1013904223U;
      // The low bits of such a generator are not random.
      const uint32_t place = (seed ^ (seed >> 15)) & mask;
      if (READS)
        v[u] = __ldcg(at + place);
      else
        at[place] = seed;
    }
    if (READS)
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        sum ^= v[u];
  }
  if (READS && sum == 0x12345678)
    *sink = sum;
}

/// Every block reads the same region from its beginning, or each from another place of it.
__global__ void __launch_bounds__(256)
  shared_read(const uint4* from, uint64_t count, uint64_t shift, uint32_t* sink) {
  uint32_t sum = 0;
  uint64_t place = blockIdx.x * shift % count;
  for (uint64_t i = threadIdx.x; i + 768 < count; i += 1024) {
    uint4 v[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      uint64_t p = place + i + u * 256;
      p = p >= count ? p - count : p;
      v[u] = __ldcg(from + p);
    }
#pragma unroll
    for (int u = 0; u < 4; ++u)
      sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  if (sum == 0x12345678)
    *sink = sum;
}

/// Rows of a matrix, a warp each, read `PASSES` times: what L1 keeps of them with so many warps.
template <int PASSES>
__global__ void __launch_bounds__(256) rows(const float4* from, int row4, int count, uint32_t* sink) {
  float sum = 0;
  for (int r = blockIdx.x * 8 + threadIdx.x / 32; r < count; r += gridDim.x * 8)
    for (int p = 0; p < PASSES; ++p)
      for (int i = threadIdx.x % 32; i < row4; i += 32) {
        const float4 v = from[uint64_t(r) * row4 + i];
        sum += v.x + v.y + v.z + v.w + sum * 1e-30f;
      }
  if (sum == 1.2345678f)
    *sink = 1;
}

template <class T>
void one_access(probe_context& c, uint8_t* from, uint8_t* to, uint64_t bytes, flush_kind kind) {
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  const auto blocks = static_cast<unsigned>(bytes / sizeof(T) / 256);
  auto* f = reinterpret_cast<T*>(from);
  auto* t = reinterpret_cast<T*>(to);
  const std::string variant = std::string("once ") + name_of(kind) + " bytes="
    + std::to_string(bytes) + " width=" + std::to_string(sizeof(T));
  auto s = c.tools.stream;
  c.row(variant, "read", launch_us([&] { once<T, true, false><<<blocks, 256, 0, s>>>(f, t, sink); }, c, kind), "us");
  c.row(variant, "write", launch_us([&] { once<T, false, true><<<blocks, 256, 0, s>>>(f, t, sink); }, c, kind), "us");
  c.row(variant, "copy", launch_us([&] { once<T, true, true><<<blocks, 256, 0, s>>>(f, t, sink); }, c, kind), "us");
}

} // namespace

void probe_requests(probe_context& c) {
  constexpr uint64_t mib = 1 << 20;
  auto* from = device_memory<uint8_t>(1024 * mib);
  auto* to = device_memory<uint8_t>(1024 * mib);
  fill_random<<<1056, 256>>>(reinterpret_cast<uint32_t*>(from), 256 * mib);
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  auto s = c.tools.stream;
  const unsigned blocks = static_cast<unsigned>(c.multiprocessors) * 8;
  for (const flush_kind kind : {flush_kind::clean, flush_kind::official})
    for (const uint64_t m : {64, 256, 1024}) {
      one_access<uint16_t>(c, from, to, m * mib / 4, kind);
      one_access<uint32_t>(c, from, to, m * mib, kind);
      one_access<uint2>(c, from, to, m * mib, kind);
      one_access<uint4>(c, from, to, m * mib, kind);
    }
  one_access<uint4>(c, from, to, 16 * mib, flush_kind::warm);
  for (const uint64_t m : {16, 256})
    for (const uint32_t stride : {1, 2, 4, 8, 16, 32, 33, 1024, 8192}) {
      const auto kind = m == 16 ? flush_kind::warm : flush_kind::clean;
      const std::string variant = std::string("strided ") + name_of(kind) + " bytes="
        + std::to_string(m * mib) + " stride=" + std::to_string(stride);
      auto* at = reinterpret_cast<uint32_t*>(to);
      c.row(variant, "read", launch_us([&] { strided<4, true><<<blocks, 256, 0, s>>>(at, m * mib / 4, stride, sink); }, c, kind), "us");
      c.row(variant, "write", launch_us([&] { strided<4, false><<<blocks, 256, 0, s>>>(at, m * mib / 4, stride, sink); }, c, kind), "us");
    }
  for (const uint64_t m : {1, 4, 16, 32, 256, 1024}) {
    const auto mask = static_cast<uint32_t>(m * mib / 4 - 1);
    const std::string variant = "scattered bytes=" + std::to_string(m * mib);
    auto* at = reinterpret_cast<uint32_t*>(to);
    const uint32_t rounds = 16;
    const double lanes = blocks * 256.0 * rounds * 8;
    c.row(variant, "read", lanes / launch_us([&] { scattered<8, true><<<blocks, 256, 0, s>>>(at, mask, rounds, sink); }, c), "lanes/us");
    c.row(variant, "write", lanes / launch_us([&] { scattered<8, false><<<blocks, 256, 0, s>>>(at, mask, rounds, sink); }, c), "lanes/us");
  }
  for (const uint64_t kib : {256, 1024, 4096, 16384})
    for (const uint64_t shift : {0, 4097}) {
      const uint64_t count = kib * 1024 / 16;
      const double us = launch_us([&] {
        shared_read<<<blocks, 256, 0, s>>>(reinterpret_cast<const uint4*>(from), count, shift, sink);
      }, c);
      c.row("shared_read bytes=" + std::to_string(kib * 1024) + " shift=" + std::to_string(shift),
        "rate", static_cast<double>(kib) * 1024 * blocks / us, "bytes/us");
    }
  for (const int kib : {1, 2, 4, 8, 16, 32}) {
    const int row4 = kib * 1024 / 16;
    const int count = static_cast<int>(256 * mib / (uint64_t(kib) * 1024));
    const std::string variant = "rows bytes=" + std::to_string(kib * 1024);
    for (const unsigned each : {1U, 4U}) {
      const unsigned n = each == 1 ? static_cast<unsigned>(count / 8) : blocks;
      const std::string full = variant + (each == 1 ? " blocks=one_a_row" : " blocks=resident");
      const auto* f = reinterpret_cast<const float4*>(from);
      c.row(full + " passes=1", "time", launch_us([&] { rows<1><<<n, 256, 0, s>>>(f, row4, count, sink); }, c, flush_kind::clean), "us");
      c.row(full + " passes=3", "time", launch_us([&] { rows<3><<<n, 256, 0, s>>>(f, row4, count, sink); }, c, flush_kind::clean), "us");
    }
  }
}

} // namespace gristmill::calibration
