// Reading, writing, copying: by size (L2 and DRAM), width of an access, accesses in flight, and
// blocks.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

template <class T, int UNROLL>
__global__ void __launch_bounds__(256) read(const T* from, uint64_t count, uint32_t* sink) {
  uint32_t sum = 0;
  const uint64_t step = uint64_t{gridDim.x} * 256 * UNROLL;
  for (uint64_t i = blockIdx.x * uint64_t{256 * UNROLL} + threadIdx.x;
       i + (UNROLL - 1) * 256 < count; i += step) {
    T v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      v[u] = from[i + u * 256];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const auto* words = reinterpret_cast<const uint32_t*>(&v[u]);
#pragma unroll
      for (int w = 0; w < static_cast<int>(sizeof(T) / 4); ++w)
        sum ^= words[w];
    }
  }
  if (sum == 0x12345678)
    *sink = sum;
}

template <class T, int UNROLL, bool READS>
__global__ void __launch_bounds__(256) write(const T* from, T* to, uint64_t count) {
  const uint64_t step = uint64_t{gridDim.x} * 256 * UNROLL;
  for (uint64_t i = blockIdx.x * uint64_t{256 * UNROLL} + threadIdx.x;
       i + (UNROLL - 1) * 256 < count; i += step) {
    T v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      if (READS)
        v[u] = from[i + u * 256];
      else
        memset(&v[u], static_cast<int>(threadIdx.x), sizeof(T));
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      to[i + u * 256] = v[u];
  }
}

template <class T, int UNROLL>
void all_three(
  probe_context& c, uint8_t* from, uint8_t* to, uint64_t bytes, int blocks, flush_kind kind) {
  const uint64_t count = bytes / sizeof(T);
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  const std::string variant = std::string(name_of(kind)) + " bytes=" + std::to_string(bytes)
    + " width=" + std::to_string(sizeof(T)) + " unroll=" + std::to_string(UNROLL)
    + " blocks=" + std::to_string(blocks);
  const double r = launch_us(
    [&] {
      read<T, UNROLL><<<blocks, 256, 0, c.tools.stream>>>(reinterpret_cast<T*>(from), count, sink);
    },
    c, kind);
  const double w = launch_us(
    [&] {
      write<T, UNROLL, false>
        <<<blocks, 256, 0, c.tools.stream>>>(nullptr, reinterpret_cast<T*>(to), count);
    },
    c, kind);
  const double b = launch_us(
    [&] {
      write<T, UNROLL, true><<<blocks, 256, 0, c.tools.stream>>>(
        reinterpret_cast<T*>(from), reinterpret_cast<T*>(to), count);
    },
    c, kind);
  c.row(variant, "read", r, "us");
  c.row(variant, "write", w, "us");
  c.row(variant, "copy", b, "us");
}

} // namespace

void probe_bandwidth(probe_context& c) {
  constexpr uint64_t mib = 1 << 20;
  auto* from = device_memory<uint8_t>(4096 * mib);
  auto* to = device_memory<uint8_t>(4096 * mib);
  fill_random<<<1056, 256>>>(reinterpret_cast<uint32_t*>(from), 1024 * mib);
  const int sms = c.multiprocessors;
  for (const uint64_t m : {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096})
    for (const flush_kind kind : {flush_kind::warm, flush_kind::clean, flush_kind::official})
      all_three<uint4, 4>(c, from, to, m * mib, sms * 8, kind);
  for (const int a_sm : {1, 2, 4, 8, 16, 64}) {
    all_three<uint32_t, 1>(c, from, to, 512 * mib, sms * a_sm, flush_kind::clean);
    all_three<uint2, 1>(c, from, to, 512 * mib, sms * a_sm, flush_kind::clean);
    all_three<uint4, 1>(c, from, to, 512 * mib, sms * a_sm, flush_kind::clean);
    all_three<uint4, 2>(c, from, to, 512 * mib, sms * a_sm, flush_kind::clean);
    all_three<uint32_t, 4>(c, from, to, 512 * mib, sms * a_sm, flush_kind::clean);
    all_three<uint4, 4>(c, from, to, 512 * mib, sms * a_sm, flush_kind::clean);
    all_three<uint4, 8>(c, from, to, 512 * mib, sms * a_sm, flush_kind::clean);
    all_three<uint4, 4>(c, from, to, 16 * mib, sms * a_sm, flush_kind::warm);
  }
  // Fewer multiprocessors than there are: how many fill L2 and DRAM.
  for (const int blocks : {1, 2, 4, 8, 16, 33, 66, 99, 132}) {
    all_three<uint4, 8>(c, from, to, 256 * mib, blocks, flush_kind::clean);
    all_three<uint4, 8>(c, from, to, 16 * mib, blocks, flush_kind::warm);
  }
}

} // namespace gristmill::calibration
