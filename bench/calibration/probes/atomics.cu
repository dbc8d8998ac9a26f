// Global atomics: with and without a result, on one address, one a warp, one a lane, spread widely.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

constexpr int rounds = 64;

template <bool RESULT, class T>
__global__ void __launch_bounds__(256) add(T* to, uint32_t slots, uint32_t* sink) {
  const uint32_t thread = blockIdx.x * 256 + threadIdx.x;
  T sum = 0;
  for (int i = 0; i < rounds; ++i) {
    const uint32_t slot = (thread + static_cast<uint32_t>(i) * 7919U * 32U) % slots;
    if (RESULT)
      sum += atomicAdd(&to[slot], static_cast<T>(1));
    else
      atomicAdd(&to[slot], static_cast<T>(1));
  }
  if (RESULT && sum == static_cast<T>(-77))
    *sink = 1;
}

template <bool RESULT, class T>
void sweep(probe_context& c, const char* what) {
  T* to = device_memory<T>(1 << 24);
  CALIBRATION_CUDA(cudaMemset(to, 0, sizeof(T) << 24));
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  for (const int blocks : {1, c.multiprocessors, c.multiprocessors * 8})
    for (const uint32_t slots : {1U, 8U, 32U, 1024U, 65536U, 1U << 24}) {
      const double us =
        launch_us([&] { add<RESULT, T><<<blocks, 256, 0, c.tools.stream>>>(to, slots, sink); }, c);
      c.row(std::string(what) + (RESULT ? " result" : " none") + " blocks=" + std::to_string(blocks)
          + " slots=" + std::to_string(slots),
        "rate", blocks * 256.0 * rounds / us, "lanes/us");
    }
  CALIBRATION_CUDA(cudaFree(to));
}

} // namespace

void probe_atomics(probe_context& c) {
  sweep<false, unsigned>(c, "u32");
  sweep<true, unsigned>(c, "u32");
  sweep<false, unsigned long long>(c, "u64");
  sweep<false, float>(c, "f32");
}

} // namespace gristmill::calibration
