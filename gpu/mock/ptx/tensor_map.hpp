#pragma once

#include "messages/tensor_map.hpp"

#include <array>
#include <cstdint>
#include <string>

/// Tensor maps as the interpreter's kernels see them. The 128 bytes are the mock's own: a real
/// driver's are secret, and kernels treat them as opaque.
namespace gristmill::ptx {

using tensor_map_image = std::array<uint8_t, tensor_map_bytes>;

/// A decoded map. Sizes that a map does not have are 1 and strides 0, so that loops over five
/// dimensions need no rank.
struct tensor_map {
  tensor_map_type type = tensor_map_type::uint8;
  tensor_map_swizzle swizzle = tensor_map_swizzle::none;
  bool oob_nan = false;
  uint32_t rank = 0;
  uint64_t address = 0;
  std::array<uint64_t, tensor_map_rank_max> dims{1, 1, 1, 1, 1};
  /// In bytes, of every dimension.
  std::array<uint64_t, tensor_map_rank_max> strides{};
  std::array<uint32_t, tensor_map_rank_max> box{1, 1, 1, 1, 1};
  std::array<uint32_t, tensor_map_rank_max> element_strides{1, 1, 1, 1, 1};

  /// Elements of the box in dimension i, with every n-th counted.
  uint32_t count(size_t i) const { return (box[i] + element_strides[i] - 1) / element_strides[i]; }
  /// Bytes of the box in shared memory.
  uint64_t box_bytes() const;
};

/// The map must break no rule of the encoder.
tensor_map_image encode_tensor_map(uint64_t address, const tensor_map_spec& spec);

/// Reads a map that a kernel may have made up or changed: everything is checked. Returns what is
/// wrong with it; empty when nothing is.
std::string decode_tensor_map(const uint8_t* image, tensor_map& out);

/// The fields of `tensormap.replace`.
enum class tensor_map_field : uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  fill_mode
};

/// Whether there is one such field for each dimension.
bool is_indexed(tensor_map_field field);

/// Changes one field of an image. `index` is a dimension, 0 to 4 (of the strides, 0 to 3). A value
/// that no map has is kept, so that the copy that uses it is the fault; one that the image has no
/// place for is refused here. Returns what is wrong; empty when nothing is.
std::string replace_field(uint8_t* image, tensor_map_field field, uint32_t index, uint64_t value);

} // namespace gristmill::ptx
