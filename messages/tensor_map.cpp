#include "messages/tensor_map.hpp"

#include <array>

namespace gristmill {

namespace {

struct type_row {
  std::string_view name;
  uint32_t bytes;
  bool floating;
};
constexpr std::array<type_row, tensor_map_types> rows{{
  {"uint8", 1, false},
  {"uint16", 2, false},
  {"uint32", 4, false},
  {"int32", 4, false},
  {"uint64", 8, false},
  {"int64", 8, false},
  {"float16", 2, true},
  {"float32", 4, true},
  {"float64", 8, true},
  {"bfloat16", 2, true},
  {"float32_ftz", 4, true},
  {"tfloat32", 4, true},
  {"tfloat32_ftz", 4, true},
}};

// The limits of cuTensorMapEncodeTiled, by its documentation. It also asks there that each stride
// holds the dimension below it; the driver does not enforce that, and permuted tensors need it not.
constexpr uint64_t address_align = 16;
constexpr uint64_t dimension_max = uint64_t{1} << 32;
constexpr uint64_t stride_align = 16;
constexpr uint64_t stride_end = uint64_t{1} << 40;
constexpr uint32_t box_max = 256;
constexpr uint32_t element_stride_max = 8;

std::string number(uint64_t value) {
  return std::to_string(value);
}

std::string place(std::string_view field, size_t index) {
  return std::string(field) + "." + number(index) + ": ";
}

std::string wrong_length(std::string_view field, size_t given, size_t needed) {
  return std::string(field) + ": " + number(given) + " numbers where " + number(needed)
    + " are needed";
}

std::string broken_lists(const tensor_map_spec& spec) {
  const size_t rank = spec.dims.size();
  if (rank == 0 || rank > tensor_map_rank_max)
    return "dims: " + number(rank) + " dimensions; a tensor map has 1 to 5";
  if (spec.strides.size() != rank - 1)
    return wrong_length("strides", spec.strides.size(), rank - 1);
  if (spec.box.size() != rank)
    return wrong_length("box", spec.box.size(), rank);
  if (spec.element_strides.size() != rank)
    return wrong_length("element_strides", spec.element_strides.size(), rank);
  return {};
}

} // namespace

std::string_view name(tensor_map_type type) {
  return rows[static_cast<size_t>(type)].name;
}

bool parse_tensor_map_type(std::string_view text, tensor_map_type& out) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == text) {
      out = static_cast<tensor_map_type>(i);
      return true;
    }
  return false;
}

uint32_t bytes_of(tensor_map_type type) {
  return rows[static_cast<size_t>(type)].bytes;
}

bool is_floating(tensor_map_type type) {
  return rows[static_cast<size_t>(type)].floating;
}

uint32_t span_of(tensor_map_swizzle swizzle) {
  return swizzle == tensor_map_swizzle::none ? 0 : 16U << static_cast<uint32_t>(swizzle);
}

std::string broken_rule(const tensor_map_spec& spec, uint64_t address) {
  if (std::string broken = broken_lists(spec); !broken.empty())
    return broken;
  if (address % address_align != 0)
    return "offset: the address is not a multiple of " + number(address_align);
  for (size_t i = 0; i < spec.dims.size(); ++i)
    if (spec.dims[i] == 0 || spec.dims[i] > dimension_max)
      return place("dims", i) + number(spec.dims[i]) + " is not from 1 to 2^32";
  for (size_t i = 0; i < spec.strides.size(); ++i) {
    if (spec.strides[i] % stride_align != 0)
      return place("strides", i) + number(spec.strides[i]) + " bytes are not a multiple of "
        + number(stride_align);
    if (spec.strides[i] >= stride_end)
      return place("strides", i) + number(spec.strides[i]) + " bytes are not below 2^40";
  }
  for (size_t i = 0; i < spec.box.size(); ++i)
    if (spec.box[i] == 0 || spec.box[i] > box_max)
      return place("box", i) + number(spec.box[i]) + " is not from 1 to " + number(box_max);
  for (size_t i = 0; i < spec.element_strides.size(); ++i)
    if (spec.element_strides[i] == 0 || spec.element_strides[i] > element_stride_max)
      return place("element_strides", i) + number(spec.element_strides[i]) + " is not from 1 to "
        + number(element_stride_max);
  const uint64_t inner = uint64_t{spec.box[0]} * bytes_of(spec.type);
  if (inner % 16 != 0)
    return place("box", 0) + number(inner) + " bytes are not a multiple of 16";
  if (const uint32_t span = span_of(spec.swizzle); span != 0 && inner > span)
    return place("box", 0) + number(inner) + " bytes are more than the " + number(span)
      + " of the swizzle";
  if (spec.oob_nan && !is_floating(spec.type))
    return "oob: nan needs a floating type, not " + std::string(name(spec.type));
  return {};
}

uint64_t reach_of(const tensor_map_spec& spec) {
  unsigned __int128 reach = static_cast<unsigned __int128>(spec.dims[0]) * bytes_of(spec.type);
  for (size_t i = 1; i < spec.dims.size(); ++i)
    reach += static_cast<unsigned __int128>(spec.dims[i] - 1) * spec.strides[i - 1];
  return reach > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(reach);
}

} // namespace gristmill
