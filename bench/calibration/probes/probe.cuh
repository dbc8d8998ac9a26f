#pragma once

// What the probes share: rows of probes.csv, and kernels that run on every multiprocessor at once
// and count their own cycles. A probe measures one property of the GPU; constants are fitted on
// probes.

#include "bench/calibration/measure.cuh"

#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace gristmill::calibration {

struct probe_context {
  measuring_tools tools;
  std::ofstream csv;
  std::string probe;
  int multiprocessors = 0;

  probe_context(const std::string& path, std::string name)
    : csv(path, std::ios::app), probe(std::move(name)) {
    CALIBRATION_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  }
  void row(const std::string& variant, const std::string& metric, double value, const char* unit) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g", value);
    csv << probe << ',' << variant << ',' << metric << ',' << text << ',' << unit << '\n';
  }
};

/// Device memory that goes with its process.
template <class T>
T* device_memory(uint64_t count) {
  T* p = nullptr;
  CALIBRATION_CUDA(cudaMalloc(&p, count * sizeof(T) + 256));
  return p;
}

static __global__ void fill_random(uint32_t* to, uint64_t words) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < words;
       i += uint64_t{gridDim.x} * blockDim.x) {
    uint64_t v = (i + 1) * 0x9e3779b97f4a7c15ULL;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
    // As floats, halves and bf16 all are small and finite.
    to[i] = static_cast<uint32_t>(v >> 32) & 0xbfffbfffU;
  }
}

/// Mean over the blocks of the cycles that each wrote.
inline double mean_cycles(const uint64_t* device, int blocks) {
  std::vector<uint64_t> seen(static_cast<size_t>(blocks));
  CALIBRATION_CUDA(cudaMemcpy(seen.data(), device, seen.size() * 8, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (const uint64_t v : seen)
    sum += static_cast<double>(v);
  return sum / blocks;
}

/// Median of five launches of a kernel whose blocks write their cycles; the first two do not count.
template <class Launch>
double block_cycles(const Launch& launch, const uint64_t* device, int blocks) {
  std::vector<double> seen;
  for (int i = 0; i < 7; ++i) {
    launch();
    CALIBRATION_CUDA(cudaGetLastError());
    CALIBRATION_CUDA(cudaDeviceSynchronize());
    if (i >= 2)
      seen.push_back(mean_cycles(device, blocks));
  }
  return median_of(seen);
}

/// Wall time by events, warm, in microseconds.
template <class Launch>
double launch_us(const Launch& launch, probe_context& context, flush_kind kind = flush_kind::warm) {
  std::vector<double> seen;
  for (int i = 0; i < 9; ++i) {
    const double us = one_sample([&] { launch(); }, 1, 1, kind, context.tools);
    if (i >= 2)
      seen.push_back(us);
  }
  CALIBRATION_CUDA(cudaGetLastError());
  return median_of(seen);
}

} // namespace gristmill::calibration
