#include "gpu/mock/ptx/tensor_map.hpp"

#include <cstring>

namespace gristmill::ptx {
namespace {

/// What the 128 bytes hold. The address comes first and aligned: whoever looks for the buffers of a
/// launch finds it among the words of the parameters.
struct image_fields {
  uint64_t address = 0;
  uint64_t mark = 0;
  uint64_t dims[tensor_map_rank_max] = {};
  uint64_t strides[tensor_map_rank_max - 1] = {};
  uint16_t box[tensor_map_rank_max] = {};
  uint8_t element_strides[tensor_map_rank_max] = {};
  uint8_t rank = 0;
  uint8_t type = 0;
  uint8_t interleave = 0;
  uint8_t swizzle = 0;
  uint8_t l2 = 0;
  uint8_t fill = 0;
  uint8_t unused[19] = {};
};
static_assert(sizeof(image_fields) == tensor_map_bytes);

/// Tells a map from bytes that are none.
constexpr uint64_t image_mark = 0x3150'414d'534f'5447;

} // namespace

uint64_t tensor_map::box_bytes() const {
  uint64_t bytes = bytes_of(type);
  for (size_t i = 0; i < tensor_map_rank_max; ++i)
    bytes *= count(i);
  return bytes;
}

tensor_map_image encode_tensor_map(uint64_t address, const tensor_map_spec& spec) {
  image_fields f;
  f.address = address;
  f.mark = image_mark;
  f.rank = static_cast<uint8_t>(spec.dims.size());
  f.type = static_cast<uint8_t>(spec.type);
  f.swizzle = static_cast<uint8_t>(spec.swizzle);
  f.l2 = static_cast<uint8_t>(spec.l2);
  f.fill = spec.oob_nan ? 1 : 0;
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    f.dims[i] = spec.dims[i];
    f.box[i] = static_cast<uint16_t>(spec.box[i]);
    f.element_strides[i] = static_cast<uint8_t>(spec.element_strides[i]);
    if (i > 0)
      f.strides[i - 1] = spec.strides[i - 1];
  }
  tensor_map_image out;
  std::memcpy(out.data(), &f, sizeof f);
  return out;
}

std::string decode_tensor_map(const uint8_t* image, tensor_map& out) {
  image_fields f;
  std::memcpy(&f, image, sizeof f);
  if (f.mark != image_mark)
    return "the 128 bytes there are no tensor map";
  if (f.rank == 0 || f.rank > tensor_map_rank_max)
    return "dims: " + std::to_string(f.rank) + " dimensions; a tensor map has 1 to 5";
  if (f.type >= tensor_map_types)
    return "dtype: number " + std::to_string(f.type) + " is not supported";
  if (f.interleave != 0)
    return "interleave: only none is supported";
  if (f.swizzle > static_cast<uint8_t>(tensor_map_swizzle::by_128))
    return "swizzle: number " + std::to_string(f.swizzle) + " is not supported";
  tensor_map_spec spec;
  spec.type = static_cast<tensor_map_type>(f.type);
  spec.swizzle = static_cast<tensor_map_swizzle>(f.swizzle);
  spec.oob_nan = f.fill != 0;
  out = tensor_map{};
  for (size_t i = 0; i < f.rank; ++i) {
    spec.dims.push_back(out.dims[i] = f.dims[i]);
    spec.box.push_back(out.box[i] = f.box[i]);
    spec.element_strides.push_back(out.element_strides[i] = f.element_strides[i]);
    if (i > 0)
      spec.strides.push_back(out.strides[i] = f.strides[i - 1]);
  }
  if (std::string broken = broken_rule(spec, f.address); !broken.empty())
    return broken;
  out.type = spec.type;
  out.swizzle = spec.swizzle;
  out.oob_nan = spec.oob_nan;
  out.rank = f.rank;
  out.address = f.address;
  out.strides[0] = bytes_of(spec.type);
  out.element_strides[0] = 1;
  return {};
}

bool is_indexed(tensor_map_field field) {
  return field == tensor_map_field::box_dim || field == tensor_map_field::global_dim
    || field == tensor_map_field::global_stride || field == tensor_map_field::element_stride;
}

std::string replace_field(uint8_t* image, tensor_map_field field, uint32_t index, uint64_t value) {
  image_fields f;
  std::memcpy(&f, image, sizeof f);
  if (f.mark != image_mark)
    return "the 128 bytes there are no tensor map";
  const size_t places =
    field == tensor_map_field::global_stride ? tensor_map_rank_max - 1 : tensor_map_rank_max;
  if (is_indexed(field) && index >= places)
    return "there is no dimension " + std::to_string(index);
  const bool small = field != tensor_map_field::global_address
    && field != tensor_map_field::global_dim && field != tensor_map_field::global_stride
    && field != tensor_map_field::box_dim;
  if ((small && value >= 255) || (field == tensor_map_field::box_dim && value > UINT16_MAX))
    return "the value " + std::to_string(value) + " is too large for the field";
  const auto byte = static_cast<uint8_t>(value);
  switch (field) {
  case tensor_map_field::global_address:
    f.address = value;
    break;
  case tensor_map_field::rank:
    f.rank = static_cast<uint8_t>(byte + 1); // The instruction counts dimensions from zero.
    break;
  case tensor_map_field::box_dim:
    f.box[index] = static_cast<uint16_t>(value);
    break;
  case tensor_map_field::global_dim:
    f.dims[index] = value;
    break;
  case tensor_map_field::global_stride:
    f.strides[index] = value;
    break;
  case tensor_map_field::element_stride:
    f.element_strides[index] = byte;
    break;
  case tensor_map_field::elemtype: {
    // The instruction's numbers; the driver's differ after the seventh.
    constexpr tensor_map_type types[] = {tensor_map_type::uint8, tensor_map_type::uint16,
      tensor_map_type::uint32, tensor_map_type::int32, tensor_map_type::uint64,
      tensor_map_type::int64, tensor_map_type::float16, tensor_map_type::float32,
      tensor_map_type::float32_ftz, tensor_map_type::float64, tensor_map_type::bfloat16,
      tensor_map_type::tfloat32, tensor_map_type::tfloat32_ftz};
    f.type = value < std::size(types) ? static_cast<uint8_t>(types[value]) : byte;
    break;
  }
  case tensor_map_field::interleave_layout:
    f.interleave = byte;
    break;
  case tensor_map_field::swizzle_mode:
    f.swizzle = byte;
    break;
  case tensor_map_field::fill_mode:
    f.fill = byte;
    break;
  }
  std::memcpy(image, &f, sizeof f);
  return {};
}

} // namespace gristmill::ptx
