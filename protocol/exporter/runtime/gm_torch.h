// Part of a solution that gristmill exported: torch tensors as buffers of a launch plan.
#pragma once

#include "gm_launch.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace gm {

/// A tensor of the call, checked: on a CUDA device, of this type and rank, contiguous, and aligned
/// to the 256 bytes that plans are promised. Packed fp4 shows its declared, doubled last dimension.
inline buffer view(const at::Tensor& tensor, const char* name, at::ScalarType type, size_t rank,
  bool is_input, bool is_packed) {
  if (!tensor.is_cuda())
    refuse(std::string(name) + ": not on a CUDA device");
  if (tensor.scalar_type() != type)
    refuse(std::string(name) + ": its dtype is not the one that the problem declares");
  if (static_cast<size_t>(tensor.dim()) != rank)
    refuse(std::string(name) + ": has " + std::to_string(tensor.dim()) + " dimensions, not "
      + std::to_string(rank));
  if (!tensor.is_contiguous())
    refuse(std::string(name) + ": not contiguous");
  buffer out;
  out.name = name;
  out.data = static_cast<char*>(tensor.data_ptr());
  out.bytes = static_cast<int64_t>(tensor.nbytes());
  out.is_input = is_input;
  for (int64_t n = 0; n < tensor.dim(); ++n)
    out.shape.push_back(tensor.size(n));
  if (is_packed && !out.shape.empty())
    out.shape.back() *= 2;
  if (reinterpret_cast<uintptr_t>(out.data) % 256 != 0)
    refuse(std::string(name) + ": its address is not a multiple of 256");
  return out;
}

inline void check_device(const at::Tensor& tensor, const at::Device& device, const char* name) {
  if (tensor.device() != device)
    refuse(std::string(name) + ": on another device than the first tensor");
}

constexpr int64_t unknown_size = -1;

/// Reads an axis off a dimension, or compares it with what another tensor said.
inline void take_axis(int64_t& axis, const buffer& from, size_t dimension, const char* axis_name) {
  const int64_t size = from.shape[dimension];
  if (axis == unknown_size)
    axis = size;
  if (axis != size)
    refuse(std::string(from.name) + ": dimension " + std::to_string(dimension) + " is "
      + std::to_string(size) + ", but " + axis_name + " is " + std::to_string(axis));
}

inline void check_size(const buffer& of, size_t dimension, int64_t size) {
  if (of.shape[dimension] != size)
    refuse(std::string(of.name) + ": dimension " + std::to_string(dimension) + " is "
      + std::to_string(of.shape[dimension]) + ", not " + std::to_string(size));
}

/// An axis that the definition computes; tensors may have told it already.
inline void settle_axis(int64_t& axis, int64_t computed, const char* axis_name) {
  if (axis == unknown_size)
    axis = computed;
  if (axis != computed)
    refuse(std::string("axis ") + axis_name + ": the tensors say " + std::to_string(axis)
      + ", its expression gives " + std::to_string(computed));
}

/// Memory of torch's allocator for the time of one call, on the current stream.
class scratch_memory {
public:
  void allocate(buffer& of, int64_t align, const at::Device& device) {
    auto tensor = at::empty({of.bytes + align}, at::TensorOptions().dtype(at::kByte).device(device));
    of.data = aligned(tensor, align);
    held_.push_back(std::move(tensor));
  }
  /// Zero when it is first used, and left all zero by every call, so it is kept: one for each
  /// device, stream, tensor of the plan and size.
  static void keep(buffer& of, int64_t align, const at::Device& device, cudaStream_t stream) {
    static std::mutex guard;
    // Never destroyed: at the end of the process the CUDA context is gone before it would be.
    static auto& kept =
      *new std::map<std::tuple<int, cudaStream_t, std::string, int64_t>, at::Tensor>;
    const std::lock_guard<std::mutex> lock(guard);
    auto& tensor = kept[{static_cast<int>(device.index()), stream, std::string(of.name), of.bytes}];
    if (!tensor.defined())
      tensor = at::zeros({of.bytes + align}, at::TensorOptions().dtype(at::kByte).device(device));
    of.data = aligned(tensor, align);
  }

private:
  static char* aligned(const at::Tensor& tensor, int64_t align) {
    const auto address = reinterpret_cast<uintptr_t>(tensor.data_ptr());
    const auto by = static_cast<uintptr_t>(align);
    return reinterpret_cast<char*>((address + by - 1) / by * by);
  }
  std::vector<at::Tensor> held_;
};

} // namespace gm
