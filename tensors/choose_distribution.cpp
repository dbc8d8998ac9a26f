#include "tensors/generate.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace gristmill {

namespace {

using names = std::initializer_list<std::string_view>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view without_trailing_digits(std::string_view text) {
  while (!text.empty() && is_digit(text.back()))
    text.remove_suffix(1);
  return text;
}

bool is_one_of(std::string_view text, names choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

bool ends_with_one_of(std::string_view text, names suffixes) {
  return std::any_of(
    suffixes.begin(), suffixes.end(), [&](std::string_view each) { return text.ends_with(each); });
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// `X_weight` where X, without trailing digits, ends in "norm"; the same for `X_bias`.
bool belongs_to_norm(std::string_view input_name, std::string_view suffix) {
  if (!input_name.ends_with(suffix))
    return false;
  input_name.remove_suffix(suffix.size());
  return without_trailing_digits(input_name).ends_with("norm");
}

bool has_square_end(const std::vector<int64_t>& shape) {
  return shape.size() >= 2 && shape[shape.size() - 1] == shape[shape.size() - 2];
}

bool describes_binary(const std::string& text) {
  const names marks{"binary", "{0, 1}", "0 or 1", "1.0 for valid", "0.0 for masked"};
  return std::any_of(
    marks.begin(), marks.end(), [&](std::string_view each) { return contains(text, each); });
}

// What a type is without any hint.
input_distribution plain(dtype type) {
  switch (type) {
  case dtype::float64:
  case dtype::float32:
  case dtype::float16:
  case dtype::bfloat16:
    return {distribution::normal, 0, 0};
  case dtype::float8_e4m3fn:
  case dtype::float8_e5m2:
    return {distribution::clamped_normal, -2, 2};
  case dtype::float4_e2m1:
  case dtype::float4_e2m1fn_x2:
    return {distribution::fp4_normal, 0, 0};
  case dtype::int64:
  case dtype::int32:
  case dtype::int16:
    return {distribution::uniform_int, -1024, 1023};
  case dtype::int8:
    return {distribution::uniform_int, -128, 127};
  case dtype::boolean:
    return {distribution::uniform_bool, 0, 1};
  }
  return {};
}

} // namespace

input_distribution choose_distribution(std::string_view name, std::string_view description,
  dtype type, const std::vector<int64_t>& shape, std::string_view op_type) {
  const bool has_heuristics = is_float(type) && element_bits(type) >= 16;
  if (!has_heuristics)
    return plain(type);
  std::string text{description};
  for (char& c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  const std::string_view stem = without_trailing_digits(name);

  if (belongs_to_norm(name, "_weight"))
    return {distribution::ones, 0, 0};
  if (belongs_to_norm(name, "_bias"))
    return {distribution::zeros, 0, 0};
  if (has_square_end(shape)
    && (is_one_of(name, {"attention_mask", "causal_mask"})
      || (contains(text, "attention mask") && contains(text, "causal"))))
    return {distribution::causal_mask, 0, 0};
  if (is_one_of(name, {"x_mask", "text_mask", "aspect_ratio_mask", "drop_mask", "attention_mask"})
    || (name.ends_with("_mask") && describes_binary(text)))
    return {distribution::binary_mask, 0, 1};
  if (is_one_of(name, {"cos", "cos_cached", "rope_cos"}))
    return {distribution::cosine, 0, 0};
  if (is_one_of(name, {"sin", "sin_cached", "rope_sin"}))
    return {distribution::sine, 0, 0};
  if (is_one_of(name, {"rstd", "std", "variance", "var"})
    || ends_with_one_of(stem, {"_rstd", "_std", "_var"}) || name.ends_with("_variance"))
    return {distribution::positive, 0, 0};
  if (name == "A_cumsum")
    return {distribution::cumsum_negative, -0.1, 0};
  if (name == "A_log")
    return {distribution::uniform_range, -5, -1};
  if (name == "A")
    return {distribution::uniform_range, -1, -0.001};
  if (name == "g")
    return {distribution::uniform_range, -5, 0};
  if (is_one_of(name, {"attn_weights", "attention_weights", "routing_weights"})
    || (contains(text, "softmax") && contains(text, "output")))
    return {distribution::softmax_rows, 0, 0};
  if (shape.size() >= 2
    && (name == "weight"
      || ends_with_one_of(stem,
        {"_weight", "_weights", "_proj", "_projs", "_proj_weight", "_proj_weights",
          "_weight_matrix"})))
    return {distribution::scaled_normal, 0, 0};
  if (op_type == "sampling" && name == "probs")
    return {distribution::softmax_rows, 0, 0};
  return plain(type);
}

namespace {

/// Of a plain normal, in the styles that are about the size and the place of values.
input_distribution normal_in(input_style style) {
  switch (style) { // no default: the compiler reports a missing case
  case input_style::standard:
  case input_style::held_out:
    break;
  case input_style::tiny:
    return {distribution::stretched_normal, 1.0 / 4096, 0};
  case input_style::large:
    return {distribution::stretched_normal, 32, 0};
  case input_style::constant_rows:
    return {distribution::constant_rows, 0, 0};
  case input_style::nan_rows:
    return {distribution::nan_rows, 0, 0};
  }
  return {distribution::normal, 0, 0};
}

} // namespace

std::string_view to_string(input_style style) {
  switch (style) { // no default: the compiler reports a missing case
  case input_style::standard:
    return "standard";
  case input_style::held_out:
    return "held-out";
  case input_style::tiny:
    return "tiny";
  case input_style::large:
    return "large";
  case input_style::constant_rows:
    return "constant rows";
  case input_style::nan_rows:
    return "NaN rows";
  }
  return "unknown";
}

input_distribution choose_distribution_in(input_style style, std::string_view name,
  std::string_view description, dtype type, const std::vector<int64_t>& shape,
  std::string_view op_type) {
  const auto standard = choose_distribution(name, description, type, shape, op_type);
  if (style == input_style::standard)
    return standard;
  switch (standard.kind) {
  case distribution::normal:
    return normal_in(style);
  case distribution::uniform_int:
    return {distribution::zipf_int, standard.lo, standard.hi};
  case distribution::ones:
    return {distribution::uniform_range, 0.5, 1.5};
  case distribution::zeros:
    return {distribution::uniform_range, -0.5, 0.5};
  case distribution::causal_mask:
    return {distribution::scattered_mask, 0, 0};
  case distribution::binary_mask:
    return {distribution::mostly_ones, 0, 1};
  default:
    return standard;
  }
}

} // namespace gristmill
