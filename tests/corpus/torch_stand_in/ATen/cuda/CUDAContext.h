// Stand-in for the tests: see README.md.
#pragma once

#include <cuda_runtime_api.h>

#include <torch/extension.h>

namespace c10::cuda {

class CUDAStream {
public:
  cudaStream_t stream() const;
};

} // namespace c10::cuda

namespace at::cuda {

c10::cuda::CUDAStream getCurrentCUDAStream(c10::DeviceIndex device = -1);

} // namespace at::cuda
