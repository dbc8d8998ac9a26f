#include "tensors/generate.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

distribution kind_of(std::string_view name, std::string_view description = "",
  std::vector<int64_t> shape = {4, 8}, dtype type = dtype::bfloat16, std::string_view op = "") {
  return choose_distribution(name, description, type, shape, op).kind;
}

} // namespace

TEST_CASE("the weight and the bias of a norm are ones and zeros") {
  CHECK(kind_of("norm_weight") == distribution::ones);
  CHECK(kind_of("layer_norm12_weight") == distribution::ones);
  CHECK(kind_of("groupnorm_bias") == distribution::zeros);
  CHECK(kind_of("normal_weight") == distribution::scaled_normal);
  CHECK(kind_of("linear_bias") == distribution::normal);
}

TEST_CASE("a causal mask needs two equal last dimensions") {
  CHECK(kind_of("attention_mask", "", {2, 8, 8}) == distribution::causal_mask);
  CHECK(kind_of("causal_mask", "", {8, 8}) == distribution::causal_mask);
  CHECK(kind_of("m", "Causal additive Attention Mask", {8, 8}) == distribution::causal_mask);
  CHECK(kind_of("attention_mask", "", {2, 8}) == distribution::binary_mask);
  CHECK(kind_of("causal_mask", "", {8}) == distribution::normal);
}

TEST_CASE("a mask is binary by its name or by what is said of it") {
  for (const char* name : {"x_mask", "text_mask", "aspect_ratio_mask", "drop_mask"})
    CHECK(kind_of(name) == distribution::binary_mask);
  CHECK(kind_of("pad_mask", "1.0 for valid tokens") == distribution::binary_mask);
  CHECK(kind_of("pad_mask", "BINARY") == distribution::binary_mask);
  CHECK(kind_of("pad_mask", "anything") == distribution::normal);
  CHECK(kind_of("pad", "binary") == distribution::normal);
}

TEST_CASE("rotary tables, deviations and state-space parameters go by their names") {
  CHECK(kind_of("cos_cached") == distribution::cosine);
  CHECK(kind_of("rope_sin") == distribution::sine);
  CHECK(kind_of("cosine") == distribution::normal);
  for (const char* name : {"rstd", "var", "x_rstd2", "a_std", "b_var10", "running_variance"})
    CHECK(kind_of(name) == distribution::positive);
  CHECK(kind_of("running_variance2") == distribution::normal);
  CHECK(kind_of("A_cumsum") == distribution::cumsum_negative);
  CHECK(choose_distribution("A_log", "", dtype::float32, {4}, "")
    == input_distribution{distribution::uniform_range, -5, -1});
  CHECK(choose_distribution("A", "", dtype::float32, {4}, "")
    == input_distribution{distribution::uniform_range, -1, -0.001});
  CHECK(choose_distribution("g", "", dtype::float32, {4}, "")
    == input_distribution{distribution::uniform_range, -5, 0});
  CHECK(kind_of("a") == distribution::normal);
}

TEST_CASE("softmax outputs and sampling probabilities are softmax rows") {
  CHECK(kind_of("attn_weights") == distribution::softmax_rows);
  CHECK(kind_of("p", "Output of the softmax") == distribution::softmax_rows);
  CHECK(kind_of("probs") == distribution::normal);
  CHECK(kind_of("probs", "", {4, 8}, dtype::float32, "sampling") == distribution::softmax_rows);
}

TEST_CASE("weight matrices are scaled, vectors are not") {
  for (const char* name : {"weight", "up_weight", "q_proj", "kv_projs2", "x_proj_weight",
         "expert_weights", "conv_weight_matrix"})
    CHECK(kind_of(name) == distribution::scaled_normal);
  CHECK(kind_of("weight", "", {8}) == distribution::normal);
}

TEST_CASE("heuristics never touch fp8, fp4, integers and bools") {
  CHECK(kind_of("norm_weight", "", {4}, dtype::float8_e4m3fn) == distribution::clamped_normal);
  CHECK(kind_of("weight", "", {4, 4}, dtype::float4_e2m1) == distribution::fp4_normal);
  CHECK(kind_of("attention_mask", "", {4, 4}, dtype::boolean) == distribution::uniform_bool);
  CHECK(choose_distribution("x", "", dtype::int8, {4}, "")
    == input_distribution{distribution::uniform_int, -128, 127});
  CHECK(choose_distribution("x", "", dtype::int32, {4}, "")
    == input_distribution{distribution::uniform_int, -1024, 1023});
  CHECK(kind_of("x", "", {4}, dtype::float64) == distribution::normal);
}

TEST_CASE("the first heuristic that matches wins") {
  CHECK(kind_of("norm_weight", "binary softmax output", {4, 4}) == distribution::ones);
  CHECK(kind_of("attention_mask", "softmax output", {4, 4}) == distribution::causal_mask);
}

TEST_CASE(
  "held-out distributions are standard except where the standard ones are constant or known") {
  const auto held_out = [](std::string_view name, std::vector<int64_t> shape = {8, 8},
                          dtype type = dtype::bfloat16) {
    return choose_distribution_in(input_style::held_out, name, "", type, shape, "");
  };
  CHECK(held_out("norm_weight") == input_distribution{distribution::uniform_range, 0.5, 1.5});
  CHECK(held_out("norm_bias") == input_distribution{distribution::uniform_range, -0.5, 0.5});
  CHECK(held_out("attention_mask").kind == distribution::scattered_mask);
  CHECK(held_out("attention_mask", {2, 8}).kind == distribution::mostly_ones);
  CHECK(held_out("norm_weight", {8}, dtype::float8_e4m3fn).kind == distribution::clamped_normal);
  for (const char* name :
    {"x", "weight", "cos", "x_rstd", "A", "A_log", "A_cumsum", "attn_weights"})
    CHECK(held_out(name) == choose_distribution(name, "", dtype::bfloat16, {8, 8}, ""));
  CHECK(held_out("page_table", {8}, dtype::int32)
    == input_distribution{distribution::zipf_int, -1024, 1023});
}

TEST_CASE("a style changes plain normals, and keeps the other held-out forms") {
  const auto kind_in = [](input_style style, std::string_view name, dtype type) {
    return choose_distribution_in(style, name, "", type, {8, 8}, "").kind;
  };
  for (auto [style, kind] : {std::pair{input_style::tiny, distribution::stretched_normal},
         std::pair{input_style::large, distribution::stretched_normal},
         std::pair{input_style::constant_rows, distribution::constant_rows},
         std::pair{input_style::nan_rows, distribution::nan_rows}}) {
    CAPTURE(to_string(style));
    CHECK(kind_in(style, "x", dtype::bfloat16) == kind);
    CHECK(kind_in(style, "x", dtype::float8_e4m3fn) == distribution::clamped_normal);
    CHECK(kind_in(style, "weight", dtype::float32) == distribution::scaled_normal);
    CHECK(kind_in(style, "norm_weight", dtype::float32) == distribution::uniform_range);
  }
  CHECK(kind_in(input_style::standard, "norm_weight", dtype::float32) == distribution::ones);
}
