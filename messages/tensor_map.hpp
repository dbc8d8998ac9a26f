#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Element types of a tensor map, in the order in which the driver numbers them.
enum class tensor_map_type : uint8_t {
  uint8,
  uint16,
  uint32,
  int32,
  uint64,
  int64,
  float16,
  float32,
  float64,
  bfloat16,
  float32_ftz,
  tfloat32,
  tfloat32_ftz
};
constexpr size_t tensor_map_types = 13;

enum class tensor_map_swizzle : uint8_t { none, by_32, by_64, by_128 };
enum class tensor_map_l2 : uint8_t { none, by_64, by_128, by_256 };

constexpr size_t tensor_map_rank_max = 5;
/// Bytes of an encoded tensor map, as a kernel takes it.
constexpr uint64_t tensor_map_bytes = 128;

/// How a kernel's copies see a tensor, tiled, not interleaved: what the driver encodes. Lists are
/// innermost first.
struct tensor_map_spec {
  tensor_map_type type = tensor_map_type::uint8;
  std::vector<uint64_t> dims;
  /// In bytes, of the dimensions from 1 on: one less than `dims`.
  std::vector<uint64_t> strides;
  /// Elements of a tile.
  std::vector<uint32_t> box;
  /// Every n-th element of the box is copied. The first is ignored, as hardware does.
  std::vector<uint32_t> element_strides;
  tensor_map_swizzle swizzle = tensor_map_swizzle::none;
  tensor_map_l2 l2 = tensor_map_l2::none;
  /// Elements outside the tensor are NaN instead of zero.
  bool oob_nan = false;

  friend bool operator==(const tensor_map_spec&, const tensor_map_spec&) = default;
};

/// "uint8", "float16", "tfloat32_ftz", ...
std::string_view name(tensor_map_type type);
/// Whether the text names a type, which is then in `out`.
bool parse_tensor_map_type(std::string_view text, tensor_map_type& out);
uint32_t bytes_of(tensor_map_type type);
bool is_floating(tensor_map_type type);
/// Bytes over which a swizzle permutes chunks of 16; 0 for none.
uint32_t span_of(tensor_map_swizzle swizzle);

/// The first rule of the driver's encoder that the map breaks, as "box.1: 300 is not from 1 to
/// 256"; empty when it breaks none. The address is `address`.
std::string broken_rule(const tensor_map_spec& spec, uint64_t address);

/// Bytes from the base to the end of the last element; UINT64_MAX when that is more. Only for a
/// map that breaks no rule.
uint64_t reach_of(const tensor_map_spec& spec);

} // namespace gristmill
