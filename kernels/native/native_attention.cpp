#include "kernels/native/native_call.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gristmill {

namespace {

/// Which cached positions a query may look at.
struct span_of_keys {
  size_t begin = 0;
  size_t end = 0;
};

/// One query over the keys and values of its head.
void attend(const float* query, const float* keys, const float* values, span_of_keys seen,
  size_t head_dim, float scale, float* out) {
  std::vector<float> weights(seen.end - seen.begin);
  float top = -INFINITY;
  for (size_t i = seen.begin; i < seen.end; ++i) {
    double sum = 0;
    for (size_t d = 0; d < head_dim; ++d)
      sum += static_cast<double>(query[d]) * static_cast<double>(keys[i * head_dim + d]);
    top = std::max(top, weights[i - seen.begin] = static_cast<float>(sum) * scale);
  }
  double total = 0;
  for (float& weight : weights)
    total += static_cast<double>(weight = std::exp(weight - top));
  for (size_t d = 0; d < head_dim; ++d) {
    double sum = 0;
    for (size_t i = seen.begin; i < seen.end; ++i)
      sum += static_cast<double>(weights[i - seen.begin])
        * static_cast<double>(values[i * head_dim + d]);
    out[d] = static_cast<float>(sum / total);
  }
}

/// Queries [batch, heads, tokens, d] over keys and values [batch, kv_heads, cached, d].
template <class Seen>
void attend_all(native_call& call, float scale, Seen seen) {
  const auto& shape = call.inputs[0].shape;
  const size_t heads = shape[1], tokens = shape[2], head_dim = shape[3];
  const size_t kv_heads = call.inputs[1].shape[1];
  const size_t cached = call.inputs[1].shape[2];
  for (size_t head = 0; head < shape[0] * heads; ++head) {
    const size_t shared = head / heads * kv_heads + head % heads / (heads / kv_heads);
    const float* keys = call.in(1).data() + shared * cached * head_dim;
    const float* values = call.in(2).data() + shared * cached * head_dim;
    for (size_t token = 0; token < tokens; ++token) {
      const size_t at = (head * tokens + token) * head_dim;
      attend(call.in(0).data() + at, keys, values, seen(token, cached), head_dim, scale,
        call.out(0).data() + at);
    }
  }
}

void attention_causal_gqa(native_call& call) {
  attend_all(call, 0.125F, [](size_t token, size_t) { return span_of_keys{0, token + 1}; });
}

void attention_window(native_call& call) {
  attend_all(call, 0.125F, [](size_t token, size_t) {
    constexpr size_t window = 128;
    return span_of_keys{token < window ? 0 : token + 1 - window, token + 1};
  });
}

void attention_decode(native_call& call) {
  attend_all(call, 0.08838834764831845F, [](size_t, size_t cached) {
    return span_of_keys{0, cached};
  });
}

constexpr auto references = std::to_array<native_entry>({
  {"attention_causal_gqa", attention_causal_gqa},
  {"attention_decode", attention_decode},
  {"attention_window", attention_window},
});

} // namespace

std::span<const native_entry> native_attention_references() {
  return references;
}

} // namespace gristmill
