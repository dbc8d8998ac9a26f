#include "protocol/exporter/step_text.hpp"

#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>

// The part of step_text that writes tensor maps.
namespace gristmill {

namespace {

struct map_type {
  std::string code;
  uint64_t bits = 8;
};

/// The driver's name of an element type.
result<map_type> map_type_of(const plan_tensor_map& map, dtype tensor) {
  auto type = tensor;
  std::string special;
  if (map.type == "tf32")
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_TFLOAT32", 32};
  if (map.type == "fp4_align8" || map.type == "fp4_align16")
    return map_type{map.type == "fp4_align8" ? "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B"
                                             : "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B",
      4};
  if (map.type != "auto")
    type = parse_dtype(map.type).value_or(tensor);
  switch (type) {
  case dtype::float64:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_FLOAT64", 64};
  case dtype::float32:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_FLOAT32", 32};
  case dtype::float16:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_FLOAT16", 16};
  case dtype::bfloat16:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", 16};
  case dtype::int64:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_INT64", 64};
  case dtype::int32:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_INT32", 32};
  case dtype::int16:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_UINT16", 16};
  case dtype::float8_e4m3fn:
  case dtype::float8_e5m2:
  case dtype::int8:
  case dtype::boolean:
    return map_type{"CU_TENSOR_MAP_DATA_TYPE_UINT8", 8};
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    return fail(errc::invalid_input,
      "a packed fp4 tensor needs the dtype `fp4_align8` or `fp4_align16` in its map");
  }
  return map_type{};
}

} // namespace

result<void> step_text::add_maps() {
  for (size_t i = 0; i < source_.tensor_maps.size(); ++i)
    if (auto done = add_map(source_.tensor_maps[i], i); !done)
      return fail(done.error().code,
        fmt::format("tensor_maps.{}: {}", source_.tensor_maps[i].name, done.error().what));
  return {};
}

result<void> step_text::add_map(const plan_tensor_map& map, size_t index) {
  auto of = names_.tensor(map.of);
  if (!of)
    return pass(of);
  auto type = map_type_of(map, (*of)->type);
  if (!type)
    return pass(type);
  auto count = code(map.count, "count");
  if (!count)
    return pass(count);
  line(fmt::format("const auto map_{} = [&]() {{", index));
  line(fmt::format("const int64_t gm_count = gm::to_int({});", *count));
  line("if (gm_count < 1 || gm_count > 255)");
  line(fmt::format("  gm::refuse({});", c_string("tensor map " + map.name + ": 1 to 255 maps")));
  line("std::vector<CUtensorMap> gm_maps;");
  line("for (int64_t gm_i = 0; gm_i < gm_count; ++gm_i) {");
  const auto begin = names_.mark();
  if (!names_.knows("i"))
    names_.add({"", "i", "gm::integer(gm_i)", false, dtype::int64});
  line("gm::map_spec spec;");
  line(fmt::format("spec.type = {};", type->code));
  line(fmt::format("spec.element_bits = {};", type->bits));
  using list = std::pair<const char*, const std::vector<expression>*>;
  for (const auto& [field, from] : {list{"dims", &map.dims}, list{"strides", &map.strides},
         list{"box", &map.box}, list{"element_strides", &map.element_strides}}) {
    auto values = codes(*from, field);
    if (!values)
      return pass(values);
    if (!from->empty())
      line(fmt::format("spec.{} = {{{}}};", field, *values));
  }
  const auto choice = [&](const char* field, const char* prefix, std::string value) {
    std::transform(value.begin(), value.end(), value.begin(),
      [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    line(fmt::format("spec.{} = CU_TENSOR_MAP_{}_{};", field, prefix, value));
  };
  choice("swizzle", "SWIZZLE", map.swizzle);
  choice("interleave", "INTERLEAVE", map.interleave);
  choice("l2", "L2_PROMOTION", map.l2 == "none" ? "NONE" : "L2_" + map.l2);
  choice("oob", "FLOAT_OOB_FILL", map.oob == "nan" ? "NAN_REQUEST_ZERO_FMA" : "NONE");
  if (map.im2col) {
    auto lower = codes(map.im2col->lower, "im2col.lower");
    auto upper = codes(map.im2col->upper, "im2col.upper");
    auto channels = code(map.im2col->channels, "im2col.channels");
    auto pixels = code(map.im2col->pixels, "im2col.pixels");
    for (const auto* each : {&lower, &upper, &channels, &pixels})
      if (!*each)
        return pass(*each);
    line("spec.im2col = true;");
    line(fmt::format("spec.lower = {{{}}};", *lower));
    line(fmt::format("spec.upper = {{{}}};", *upper));
    line(fmt::format("spec.channels = gm::to_int({});", *channels));
    line(fmt::format("spec.pixels = gm::to_int({});", *pixels));
  }
  auto offset = code(map.offset, "offset");
  if (!offset)
    return pass(offset);
  line(fmt::format("gm_maps.push_back(gm::encode_map({}, {}, spec));", (*of)->code, *offset));
  names_.reset(begin);
  line("}");
  line("return gm_maps;");
  line("};");
  // A map that no step of this variant uses is no mistake.
  line(fmt::format("(void)map_{};", index));
  return {};
}

} // namespace gristmill
