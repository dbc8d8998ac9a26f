// Stand-in for the tests: see README.md.
#pragma once

#include <torch/extension.h>

namespace c10::cuda {

struct CUDAGuard {
  explicit CUDAGuard(Device device);
  ~CUDAGuard();
};

} // namespace c10::cuda
