#include "kernels/native/native_call.hpp"
#include "kernels/native/native_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace gristmill {

namespace {

void softmax(native_call& call) {
  const size_t width = call.inputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * width;
    float* y = call.out(0).data() + row * width;
    const float top = width == 0 ? 0 : *std::max_element(x, x + width);
    double sum = 0;
    for (size_t i = 0; i < width; ++i)
      sum += static_cast<double>(y[i] = std::exp(x[i] - top));
    for (size_t i = 0; i < width; ++i)
      y[i] = static_cast<float>(static_cast<double>(y[i]) / sum);
  }
}

void softmax_backward(native_call& call) {
  const size_t width = call.inputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* y = call.in(0).data() + row * width;
    const float* dy = call.in(1).data() + row * width;
    double weighted = 0;
    for (size_t i = 0; i < width; ++i)
      weighted += static_cast<double>(y[i] * dy[i]);
    for (size_t i = 0; i < width; ++i)
      call.out(0)[row * width + i] = y[i] * (dy[i] - static_cast<float>(weighted));
  }
}

/// 1 / root of the mean square plus 1e-6.
float inverse_root_mean_square(const float* x, size_t width) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i)
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(width) + 1e-6));
}

void rmsnorm(native_call& call) {
  const size_t width = call.inputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * width;
    const float inverse = inverse_root_mean_square(x, width);
    for (size_t i = 0; i < width; ++i)
      call.out(0)[row * width + i] = x[i] * inverse * call.in(1)[i];
  }
}

void residual_add_rmsnorm(native_call& call) {
  const size_t width = call.inputs[0].last();
  std::vector<float> total(width);
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    for (size_t i = 0; i < width; ++i)
      total[i] = call.in(0)[row * width + i] + call.in(1)[row * width + i];
    const float inverse = inverse_root_mean_square(total.data(), width);
    for (size_t i = 0; i < width; ++i) {
      call.out(0)[row * width + i] = total[i] * inverse * call.in(2)[i];
      call.out(1)[row * width + i] = total[i];
    }
  }
}

void rmsnorm_backward(native_call& call) {
  const size_t width = call.inputs[0].last();
  std::vector<double> grad_gain(width);
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * width;
    const float* dy = call.in(2).data() + row * width;
    const float inverse = inverse_root_mean_square(x, width);
    double share = 0;
    for (size_t i = 0; i < width; ++i) {
      const float normalised = x[i] * inverse;
      share += static_cast<double>(dy[i] * call.in(1)[i] * normalised);
      grad_gain[i] += static_cast<double>(dy[i] * normalised);
    }
    const auto mean = static_cast<float>(share / static_cast<double>(width));
    for (size_t i = 0; i < width; ++i)
      call.out(0)[row * width + i] = (dy[i] * call.in(1)[i] - x[i] * inverse * mean) * inverse;
  }
  for (size_t i = 0; i < width; ++i)
    call.out(1)[i] = static_cast<float>(grad_gain[i]);
}

struct mean_and_inverse {
  double mean = 0;
  double inverse = 0;
};

mean_and_inverse moments(const float* x, size_t count, double epsilon) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const double off = static_cast<double>(x[i]) - mean;
    squares += off * off;
  }
  return {mean, 1 / std::sqrt(squares / static_cast<double>(count) + epsilon)};
}

float normalised(float x, const mean_and_inverse& of) {
  return static_cast<float>((static_cast<double>(x) - of.mean) * of.inverse);
}

void layernorm(native_call& call) {
  const size_t width = call.inputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * width;
    const auto of = moments(x, width, 1e-5);
    for (size_t i = 0; i < width; ++i)
      call.out(0)[row * width + i] = normalised(x[i], of) * call.in(1)[i] + call.in(2)[i];
  }
}

void adaln_modulate(native_call& call) {
  const size_t width = call.inputs[0].last();
  const size_t tokens = call.inputs[0].shape[1];
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * width;
    const float* shift = call.in(1).data() + row / tokens * width;
    const float* scale = call.in(2).data() + row / tokens * width;
    const auto of = moments(x, width, 1e-6);
    for (size_t i = 0; i < width; ++i)
      call.out(0)[row * width + i] = normalised(x[i], of) * (1 + scale[i]) + shift[i];
  }
}

void group_norm_silu(native_call& call) {
  constexpr size_t groups = 32;
  const auto& shape = call.inputs[0].shape;
  const size_t channels = shape[1];
  const size_t pixels = shape[2] * shape[3];
  const size_t in_group = channels / groups;
  for (size_t group = 0; group < shape[0] * groups; ++group) {
    const size_t start = group * in_group * pixels;
    const auto of = moments(call.in(0).data() + start, in_group * pixels, 1e-5);
    for (size_t i = 0; i < in_group * pixels; ++i) {
      const size_t channel = group % groups * in_group + i / pixels;
      const float y =
        normalised(call.in(0)[start + i], of) * call.in(1)[channel] + call.in(2)[channel];
      call.out(0)[start + i] = silu(y);
    }
  }
}

void column_sum(native_call& call) {
  const size_t width = call.inputs[0].last();
  std::vector<double> sums(width);
  for (size_t i = 0; i < call.in(0).size(); ++i)
    sums[i % width] += static_cast<double>(call.in(0)[i]);
  std::transform(sums.begin(), sums.end(), call.out(0).begin(),
    [](double sum) { return static_cast<float>(sum); });
}

void global_average_pool(native_call& call) {
  const size_t pixels = call.inputs[0].shape[2] * call.inputs[0].shape[3];
  for (size_t map = 0; map < call.out(0).size(); ++map) {
    double sum = 0;
    for (size_t i = 0; i < pixels; ++i)
      sum += static_cast<double>(call.in(0)[map * pixels + i]);
    call.out(0)[map] = static_cast<float>(sum / static_cast<double>(pixels));
  }
}

void cumsum_scan(native_call& call) {
  const size_t width = call.inputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i)
      call.out(0)[row * width + i] =
        static_cast<float>(sum += static_cast<double>(call.in(0)[row * width + i]));
  }
}

void topk_gating(native_call& call) {
  const size_t experts = call.inputs[0].last();
  const size_t chosen = call.outputs[0].last();
  std::vector<size_t> order(experts);
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * experts;
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
    // The softmax's own sum cancels out.
    double sum = 0;
    for (size_t i = 0; i < chosen && i < experts; ++i)
      sum += static_cast<double>(std::exp(x[order[i]] - x[order[0]]));
    for (size_t i = 0; i < chosen && i < experts; ++i) {
      const auto power = static_cast<double>(std::exp(x[order[i]] - x[order[0]]));
      call.out(0)[row * chosen + i] = static_cast<float>(power / sum);
      call.outputs[1].integers[row * chosen + i] = static_cast<int64_t>(order[i]);
    }
  }
}

void quantise_rows_int8(native_call& call) {
  const size_t width = call.inputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * width;
    float top = 0;
    for (size_t i = 0; i < width; ++i)
      top = std::max(top, std::abs(x[i]));
    const float scale = std::max(top, 1e-8F) / 127.0F;
    for (size_t i = 0; i < width; ++i)
      call.outputs[0].integers[row * width + i] =
        static_cast<int64_t>(std::clamp(std::nearbyint(x[i] / scale), -127.0F, 127.0F));
    call.out(1)[row] = scale;
  }
}

void cross_entropy(native_call& call) {
  const size_t width = call.inputs[0].last();
  if (width == 0)
    return; // There is no label that a token could have.
  const auto labels = static_cast<int64_t>(width);
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const float* x = call.in(0).data() + row * width;
    const float top = *std::max_element(x, x + width);
    double sum = 0;
    for (size_t i = 0; i < width; ++i)
      sum += static_cast<double>(std::exp(x[i] - top));
    const int64_t label = (call.inputs[1].integers[row] % labels + labels) % labels;
    call.out(0)[row] =
      static_cast<float>(std::log(sum) + static_cast<double>(top) - static_cast<double>(x[label]));
  }
}

constexpr auto references = std::to_array<native_entry>({
  {"adaln_modulate", adaln_modulate},
  {"column_sum", column_sum},
  {"cross_entropy", cross_entropy},
  {"cumsum_scan", cumsum_scan},
  {"global_average_pool", global_average_pool},
  {"group_norm_silu", group_norm_silu},
  {"layernorm", layernorm},
  {"quantise_rows_int8", quantise_rows_int8},
  {"residual_add_rmsnorm", residual_add_rmsnorm},
  {"rmsnorm", rmsnorm},
  {"rmsnorm_backward", rmsnorm_backward},
  {"softmax", softmax},
  {"softmax_backward", softmax_backward},
  {"topk_gating", topk_gating},
});

} // namespace

std::span<const native_entry> native_row_references() {
  return references;
}

} // namespace gristmill
