// Launches and barriers: an empty kernel by blocks and threads, launches in a row, a barrier by
// warps, blocks started a microsecond, latency hidden by occupancy and loads in flight, clock
// against timer.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

__global__ void nothing() {}

__global__ void barriers(uint64_t* cycles, int count) {
  __syncthreads();
  const long long begin = clock64();
  for (int i = 0; i < count; ++i)
    __syncthreads();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
}

// A block that lives for some cycles.
__global__ void lives(long long length) {
  const long long begin = clock64();
  while (clock64() - begin < length) {
  }
}

template <int FLIGHT>
__global__ void __launch_bounds__(256) hide(const uint32_t* from, uint64_t words, uint32_t* sink) {
  extern __shared__ uint32_t room[];
  uint32_t sum = 0;
  const uint64_t step = uint64_t{gridDim.x} * 256 * FLIGHT;
  for (uint64_t i = blockIdx.x * uint64_t{256 * FLIGHT} + threadIdx.x;
       i + (FLIGHT - 1) * 256 < words; i += step) {
    uint32_t v[FLIGHT];
#pragma unroll
    for (int f = 0; f < FLIGHT; ++f)
      v[f] = from[i + f * 256];
#pragma unroll
    for (int f = 0; f < FLIGHT; ++f)
      sum ^= v[f];
  }
  if (sum == 0x12345678)
    *sink = sum;
}

template <int FLIGHT>
void occupancy(probe_context& c, const uint32_t* from, uint64_t words) {
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  CALIBRATION_CUDA(
    cudaFuncSetAttribute(hide<FLIGHT>, cudaFuncAttributeMaxDynamicSharedMemorySize, 224 * 1024));
  for (const int resident : {1, 2, 3, 4, 6, 8}) {
    const int room = resident == 8 ? 0 : 226 * 1024 / resident - 1024;
    const double us = launch_us(
      [&] {
        hide<FLIGHT>
          <<<c.multiprocessors * resident, 256, std::min(room, 224 * 1024), c.tools.stream>>>(
            from, words, sink);
      },
      c, flush_kind::clean);
    c.row("read4 resident=" + std::to_string(resident) + " flight=" + std::to_string(FLIGHT),
      "rate", static_cast<double>(words) * 4 / us, "bytes/us");
  }
}

} // namespace

void probe_launching(probe_context& c) {
  const cudaStream_t s = c.tools.stream;
  for (const int blocks : {1, 132, 1056, 4224, 16896, 67584, 270336})
    for (const int threads : {32, 256, 1024})
      c.row("empty blocks=" + std::to_string(blocks) + " threads=" + std::to_string(threads),
        "event_time", launch_us([&] { nothing<<<blocks, threads, 0, s>>>(); }, c), "us");
  std::vector<double> once, twice;
  for (int i = 0; i < 15; ++i) {
    once.push_back(
      one_sample([&] { nothing<<<1, 32, 0, s>>>(); }, 1, 64, flush_kind::warm, c.tools));
    twice.push_back(
      one_sample([&] { nothing<<<1, 32, 0, s>>>(); }, 1, 128, flush_kind::warm, c.tools));
  }
  const double n = median_of(once), n2 = median_of(twice);
  c.row("launches in a row", "each", (n2 - n) / 64, "us");
  c.row("launches in a row", "event_overhead", 2 * n - n2, "us");
  c.row("memset 4 bytes", "event_time",
    launch_us([&] { cudaMemsetAsync(c.tools.canary, 0, 4, s); }, c), "us");
  c.row("nothing between events", "event_time", launch_us([] {}, c), "us");
  auto* cycles = device_memory<uint64_t>(1 << 16);
  for (const int warps : {1, 2, 4, 8, 16, 32})
    c.row("barrier warps=" + std::to_string(warps), "cost",
      block_cycles([&] { barriers<<<c.multiprocessors, warps * 32>>>(cycles, 1000); }, cycles,
        c.multiprocessors)
        / 1000,
      "cycles");
  for (const long long length : {0LL, 500LL, 2000LL, 10000LL})
    for (const int threads : {32, 256, 1024})
      c.row("lives cycles=" + std::to_string(length) + " threads=" + std::to_string(threads)
          + " blocks=33792",
        "event_time", launch_us([&] { lives<<<33792, threads, 0, s>>>(length); }, c), "us");
  const uint64_t words = 64ULL << 20;
  auto* from = device_memory<uint32_t>(words);
  fill_random<<<1056, 256>>>(from, words);
  occupancy<1>(c, from, words);
  occupancy<2>(c, from, words);
  occupancy<4>(c, from, words);
  occupancy<8>(c, from, words);
  for (int i = 0; i < 5; ++i)
    c.row("turn=" + std::to_string(i), "clock", c.tools.mhz(), "MHz");
}

} // namespace gristmill::calibration
