#include "protocol/plan.hpp"

#include "protocol/nearest.hpp"
#include "protocol/plan_reader.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::string_view schema = "gristmill.plan/1";

const std::vector<std::string> swizzles{"none", "32B", "64B", "128B"};
const std::vector<std::string> interleaves{"none", "16B", "32B"};
const std::vector<std::string> l2_promotions{"none", "64B", "128B", "256B"};

} // namespace

std::string_view name(scratch_init init) {
  switch (init) {
  case scratch_init::undefined:
    return "undefined";
  case scratch_init::restored:
    return "restored";
  case scratch_init::zero:
    return "zero";
  }
  return "undefined";
}

plan plan_reader::read(const ordered_json& document) {
  plan out;
  if (!is_object(document, ""))
    return out;
  const auto found = read_text(document, "", "schema", "");
  if (!failed_ && found != schema)
    refuse("schema", fmt::format("{} is unknown; expected `{}`", excerpt(found), schema));
  known_keys(
    document, "", {"schema", "options", "domain", "let", "scratch", "tensor_maps", "variants"});
  if (const auto* options = member(document, "", "options", false))
    out.options = read_options(*options);
  out.domain = read_expression(document, "", "domain", "true");
  if (const auto* let = member(document, "", "let", false); let && is_object(*let, "let")) {
    for (const auto& [let_name, value] : let->items()) {
      const auto path = join_path("let", let_name);
      check_new_name(path, let_name);
      out.let.emplace_back(let_name, to_expression(value, path, use::plain));
    }
  }
  if (const auto* scratch = member(document, "", "scratch", false))
    out.scratch = read_scratch(*scratch);
  if (const auto* maps = member(document, "", "tensor_maps", false);
      maps && is_object(*maps, "tensor_maps")) {
    if (maps->size() > plan_limits::tensor_maps)
      refuse("tensor_maps", fmt::format("more than {} maps", plan_limits::tensor_maps));
    else
      for (const auto& [map_name, value] : maps->items())
        out.tensor_maps.push_back(read_map(map_name, value, join_path("tensor_maps", map_name)));
  }
  const auto* variants = member(document, "", "variants", true);
  if (variants == nullptr)
    return out;
  if (!variants->is_array() || variants->empty() || variants->size() > plan_limits::variants) {
    refuse("variants", fmt::format("must be a list of 1 to {} variants", plan_limits::variants));
    return out;
  }
  for (size_t i = 0; i < variants->size(); ++i) {
    out.variants.push_back(read_variant((*variants)[i], fmt::format("variants.{}", i), i));
    for (size_t earlier = 0; earlier < i; ++earlier)
      if (out.variants[earlier].name == out.variants[i].name)
        refuse(fmt::format("variants.{}.name", i),
          fmt::format("{} is the name of an earlier variant", excerpt(out.variants[i].name)));
  }
  return out;
}

plan_options plan_reader::read_options(const ordered_json& from) {
  plan_options out;
  if (!is_object(from, "options"))
    return out;
  known_keys(from, "options", {"std", "fast_math", "maxrregcount", "headers"});
  out.standard = read_choice(from, "options", "std", "c++20", {"c++17", "c++20"});
  out.fast_math = read_flag(from, "options", "fast_math", false);
  out.max_registers = static_cast<uint32_t>(read_int(from, "options", "maxrregcount", 0, 0, 255));
  const auto* headers = member(from, "options", "headers", false);
  if (headers == nullptr)
    return out;
  if (!headers->is_array()) {
    refuse("options.headers", fmt::format("must be a list, not {}", kind_text(*headers)));
    return out;
  }
  for (const auto& each : *headers) {
    const auto text = each.is_string() ? each.get<std::string>() : std::string{};
    if (text != "cutlass" && text != "cccl")
      refuse("options.headers",
        fmt::format("{} is not a choice{}", excerpt(text), suggestion(text, {"cutlass", "cccl"})));
    else if (std::find(out.headers.begin(), out.headers.end(), text) == out.headers.end())
      out.headers.push_back(text);
  }
  return out;
}

std::vector<plan_scratch> plan_reader::read_scratch(const ordered_json& from) {
  std::vector<plan_scratch> out;
  if (!is_object(from, "scratch"))
    return out;
  if (from.size() > 64) {
    refuse("scratch", "more than 64 scratch tensors");
    return out;
  }
  for (const auto& [scratch_name, value] : from.items()) {
    const auto path = join_path("scratch", scratch_name);
    check_new_name(path, scratch_name);
    if (!is_object(value, path))
      return out;
    known_keys(value, path, {"dtype", "shape", "init", "align"});
    plan_scratch row;
    row.name = scratch_name;
    const auto type_text = read_choice(value, path, "dtype", "", dtype_names());
    row.type = parse_dtype(type_text).value_or(dtype::float32);
    row.shape = read_list(value, path, "shape", true, use::with_occupancy);
    const auto init =
      read_choice(value, path, "init", "undefined", {"undefined", "restored", "zero"});
    row.init = init == "restored" ? scratch_init::restored
      : init == "zero"            ? scratch_init::zero
                                  : scratch_init::undefined;
    row.align = static_cast<uint64_t>(read_int(value, path, "align", 256, 1, 1 << 20));
    if ((row.align & (row.align - 1)) != 0)
      refuse(path + ".align", "must be a power of two");
    out.push_back(std::move(row));
  }
  return out;
}

plan_tensor_map plan_reader::read_map(
  const std::string& map_name, const ordered_json& from, const std::string& path) {
  plan_tensor_map out;
  out.name = map_name;
  check_new_name(path, map_name);
  if (!is_object(from, path))
    return out;
  known_keys(from, path,
    {"of", "offset", "dtype", "dims", "strides", "box", "element_strides", "swizzle", "interleave",
      "l2", "oob", "im2col", "count"});
  auto types = dtype_names();
  types.insert(types.end(), {"auto", "tf32", "fp4_align8", "fp4_align16"});
  out.of = read_name(from, path, "of");
  out.offset = read_expression(from, path, "offset", "0");
  out.type = read_choice(from, path, "dtype", "auto", types);
  out.dims = read_list(from, path, "dims", false);
  out.strides = read_list(from, path, "strides", false);
  out.box = read_list(from, path, "box", true);
  out.element_strides = read_list(from, path, "element_strides", false);
  for (const auto* list : {&out.dims, &out.strides, &out.box, &out.element_strides})
    if (list->size() > 5)
      refuse(path, "a tensor map has at most 5 dimensions");
  out.swizzle = read_choice(from, path, "swizzle", "none", swizzles);
  out.interleave = read_choice(from, path, "interleave", "none", interleaves);
  out.l2 = read_choice(from, path, "l2", "none", l2_promotions);
  out.oob = read_choice(from, path, "oob", "zero", {"zero", "nan"});
  out.count = read_expression(from, path, "count", "1");
  if (const auto* im2col = member(from, path, "im2col", false); im2col && !im2col->is_null())
    out.im2col = read_im2col(*im2col, path + ".im2col");
  return out;
}

plan_im2col plan_reader::read_im2col(const ordered_json& from, const std::string& path) {
  plan_im2col out;
  if (!is_object(from, path))
    return out;
  known_keys(from, path, {"lower", "upper", "channels", "pixels"});
  out.lower = read_list(from, path, "lower", true);
  out.upper = read_list(from, path, "upper", true);
  out.channels = read_expression(from, path, "channels", "");
  out.pixels = read_expression(from, path, "pixels", "");
  return out;
}

plan_variant plan_reader::read_variant(
  const ordered_json& from, const std::string& path, size_t index) {
  plan_variant out;
  if (!is_object(from, path))
    return out;
  known_keys(from, path, {"name", "when", "defines", "steps"});
  out.name = read_text(from, path, "name", fmt::format("variant {}", index));
  // `|` separates the parts of a unit's key.
  const bool odd = std::any_of(out.name.begin(), out.name.end(),
    [](char c) { return c == '|' || static_cast<unsigned char>(c) < 0x20; });
  if (odd || out.name.size() > 64)
    refuse(path + ".name",
      fmt::format("{} is no name for a variant: at most 64 bytes, no `|`", excerpt(out.name)));
  out.when = read_expression(from, path, "when", "true");
  if (const auto* defines = member(from, path, "defines", false))
    out.defines = read_defines(*defines, path + ".defines");
  step_ids_.clear();
  step_count_ = 0;
  out.steps = read_steps(from, path, 0);
  return out;
}

named_expressions plan_reader::read_defines(const ordered_json& from, const std::string& path) {
  named_expressions out;
  if (!is_object(from, path))
    return out;
  if (from.size() > 64)
    refuse(path, "more than 64 defines");
  for (const auto& [define_name, value] : from.items()) {
    const auto at = join_path(path, define_name);
    check_new_name(at, define_name);
    // A macro that starts so belongs to the compiler or to us.
    if (define_name.starts_with('_') || define_name.starts_with("gm_")
      || define_name.starts_with("GM_"))
      refuse(at, "a define must not begin with `_`, `gm_` or `GM_`");
    out.emplace_back(define_name, to_expression(value, at, use::plain));
  }
  return out;
}

result<plan> parse_plan(std::string_view text) {
  json_limits limits;
  limits.bytes = plan_limits::text_bytes;
  limits.depth = 24;
  limits.keys = 256;
  limits.unique_keys = true;
  auto document = parse_json(text, "plan", limits);
  if (!document)
    return pass(document);
  plan_reader reader;
  auto out = reader.read(*document);
  if (reader.failed())
    return tl::unexpected(*reader.failed());
  return out;
}

} // namespace gristmill
