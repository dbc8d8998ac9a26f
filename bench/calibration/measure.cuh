#pragma once

// How a call is timed on a GPU, for kernels of the corpus and for probes alike. CUDA runtime only.
//
// Before each sample the L2 is brought into a known state: "official" writes twice its size (it is
// left full of dirty lines), "clean" reads three times its size afterwards, "warm" does nothing.
// Then a kernel waits so long that the whole call is enqueued before the first event is stamped.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALIBRATION_CUDA(call)                                                                     \
  do {                                                                                             \
    const cudaError_t calibration_error = (call);                                                  \
    if (calibration_error != cudaSuccess)                                                          \
      throw std::runtime_error(                                                                    \
        std::string(#call).substr(0, 60) + ": " + cudaGetErrorString(calibration_error));          \
  } while (false)

namespace gristmill::calibration {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs `work` in a child; true when it returned 0 within the seconds.
inline bool in_own_process(
  const std::function<int()>& work, const std::string& name, double seconds) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int code = work();
    std::fflush(stdout);
    _exit(code);
  }
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (seconds_since(begin) > seconds) {
      std::printf("FAILED %s: no end within %.0f s\n", name.c_str(), seconds);
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
    usleep(2000);
  }
  if (WIFSIGNALED(status))
    std::printf("FAILED %s: signal %d\n", name.c_str(), WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static __global__ void calibration_wait(uint64_t ns) {
  uint64_t begin = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

// Cycles and nanoseconds of a wait: the clock that kernels run at.
static __global__ void calibration_canary(uint64_t ns, uint64_t* out) {
  uint64_t begin = 0, edge = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(edge));
  while (edge == begin);
  const long long cycles = clock64();
  do
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - edge < ns);
  out[0] = static_cast<uint64_t>(clock64() - cycles);
  out[1] = now - edge;
}

static __global__ void calibration_read(const uint4* from, uint64_t count, uint32_t* sink) {
  uint32_t sum = 0;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    const uint4 v = from[i];
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678)
    *sink = sum;
}

enum class flush_kind { official, clean, warm };
inline const char* name_of(flush_kind kind) {
  return kind == flush_kind::official ? "official" : kind == flush_kind::clean ? "clean" : "warm";
}

/// Stream, events and the buffer of flushes; lives as long as its process.
struct measuring_tools {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  uint8_t* flushed = nullptr;
  uint64_t l2_bytes = 0;
  uint64_t* canary = nullptr;

  measuring_tools() {
    int bytes = 0;
    CALIBRATION_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0));
    l2_bytes = static_cast<uint64_t>(bytes);
    CALIBRATION_CUDA(cudaStreamCreate(&stream));
    CALIBRATION_CUDA(cudaEventCreate(&begin));
    CALIBRATION_CUDA(cudaEventCreate(&end));
    CALIBRATION_CUDA(cudaMalloc(&flushed, 3 * l2_bytes + 256));
    CALIBRATION_CUDA(cudaMalloc(&canary, 16));
    CALIBRATION_CUDA(cudaMemset(flushed, 1, 3 * l2_bytes));
  }

  double mhz() {
    uint64_t seen[2] = {0, 1};
    calibration_canary<<<1, 1, 0, stream>>>(200'000, canary);
    CALIBRATION_CUDA(cudaMemcpyAsync(seen, canary, 16, cudaMemcpyDeviceToHost, stream));
    CALIBRATION_CUDA(cudaStreamSynchronize(stream));
    return 1e3 * static_cast<double>(seen[0]) / static_cast<double>(seen[1]);
  }

  void flush(flush_kind kind) {
    if (kind == flush_kind::warm)
      return;
    static int turn = 0;
    CALIBRATION_CUDA(cudaMemsetAsync(flushed, ++turn & 127, 2 * l2_bytes, stream));
    if (kind == flush_kind::clean)
      calibration_read<<<1056, 256, 0, stream>>>(reinterpret_cast<const uint4*>(flushed),
        3 * l2_bytes / 16, reinterpret_cast<uint32_t*>(canary));
  }
};

struct timing {
  double median_us = 0, mad_us = 0, least_us = 0, most_us = 0;
  /// (t(2n) - t(n)) / n and 2 t(n) - t(2n) of n calls in a row; of the warm kind only, else 0.
  double per_call_us = 0, overhead_us = 0;
  int repeat = 0;
  double mhz_before = 0, mhz_after = 0;
  std::vector<double> samples_us;
};

struct sample_limits {
  int least = 21, most = 41;
  double seconds = 0.5;
  /// Of warming up.
  double warm_seconds = 0.1;
};

inline double median_of(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// One sample of `times` calls in a row.
inline double one_sample(const std::function<void()>& call, int steps, int times, flush_kind kind,
  measuring_tools& tools) {
  tools.flush(kind);
  const uint64_t wait_ns = 40'000 + 10'000 * static_cast<uint64_t>(steps * times);
  calibration_wait<<<1, 1, 0, tools.stream>>>(std::min<uint64_t>(wait_ns, 3'000'000));
  CALIBRATION_CUDA(cudaEventRecord(tools.begin, tools.stream));
  for (int i = 0; i < times; ++i)
    call();
  CALIBRATION_CUDA(cudaEventRecord(tools.end, tools.stream));
  CALIBRATION_CUDA(cudaStreamSynchronize(tools.stream));
  float ms = 0;
  CALIBRATION_CUDA(cudaEventElapsedTime(&ms, tools.begin, tools.end));
  return static_cast<double>(ms) * 1e3;
}

/// `call` enqueues on the tools' stream `steps` operations. Warm-up goes by time.
inline timing measure(const std::function<void()>& call, int steps, flush_kind kind,
  measuring_tools& tools, const sample_limits& limits) {
  timing out;
  const auto start = std::chrono::steady_clock::now();
  double last = 0;
  for (int i = 0; i < 3 || seconds_since(start) < limits.warm_seconds; ++i)
    last = one_sample(call, steps, 1, kind, tools);
  out.mhz_before = tools.mhz();
  const auto begin = std::chrono::steady_clock::now();
  while (static_cast<int>(out.samples_us.size()) < limits.least
    || (static_cast<int>(out.samples_us.size()) < limits.most
      && seconds_since(begin) < limits.seconds))
    out.samples_us.push_back(one_sample(call, steps, 1, kind, tools));
  out.mhz_after = tools.mhz();
  out.median_us = median_of(out.samples_us);
  std::vector<double> away;
  for (const double us : out.samples_us)
    away.push_back(std::fabs(us - out.median_us));
  out.mad_us = median_of(away);
  out.least_us = *std::min_element(out.samples_us.begin(), out.samples_us.end());
  out.most_us = *std::max_element(out.samples_us.begin(), out.samples_us.end());
  if (kind != flush_kind::warm)
    return out;
  out.repeat = static_cast<int>(std::clamp(400.0 / std::max(last, 1.0), 1.0, 32.0));
  std::vector<double> once, twice;
  for (int i = 0; i < 11; ++i) {
    once.push_back(one_sample(call, steps, out.repeat, kind, tools));
    twice.push_back(one_sample(call, steps, 2 * out.repeat, kind, tools));
  }
  const double n = median_of(once), n2 = median_of(twice);
  out.per_call_us = (n2 - n) / out.repeat;
  out.overhead_us = 2 * n - n2;
  return out;
}

} // namespace gristmill::calibration
