#include "kernels/native/native_call.hpp"
#include "kernels/native/native_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gristmill {

namespace {

/// Four sums beside each other, so that additions do not wait for one another.
double dot(const float* a, const float* b, size_t count) {
  std::array<double, 4> sums{};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t lane = 0; lane < 4; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  for (; i < count; ++i)
    sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

std::vector<float> transposed(const float* matrix, size_t rows, size_t columns) {
  std::vector<float> out(rows * columns);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      out[column * rows + row] = matrix[row * columns + column];
  return out;
}

/// [m, k] times [k, n], for each of `batch` pairs.
void multiply_pairs(native_call& call, size_t batch, size_t m, size_t k, size_t n) {
  for (size_t pair = 0; pair < batch; ++pair) {
    const auto b = transposed(call.in(1).data() + pair * k * n, k, n);
    for (size_t row = 0; row < m; ++row)
      for (size_t column = 0; column < n; ++column)
        call.out(0)[(pair * m + row) * n + column] = static_cast<float>(
          dot(call.in(0).data() + (pair * m + row) * k, b.data() + column * k, k));
  }
}

void gemm_float32(native_call& call) {
  const auto& a = call.inputs[0].shape;
  multiply_pairs(call, 1, a[0], a[1], call.inputs[1].last());
}

void batched_gemm(native_call& call) {
  const auto& a = call.inputs[0].shape;
  multiply_pairs(call, a[0], a[1], a[2], call.inputs[1].last());
}

/// Every row of the input with every row of that weight.
std::vector<float> linear(const native_call& call, size_t weight) {
  const size_t width = call.inputs[0].last();
  const size_t features = call.inputs[weight].shape[0];
  std::vector<float> out(call.inputs[0].rows() * features);
  for (size_t row = 0; row < call.inputs[0].rows(); ++row)
    for (size_t i = 0; i < features; ++i)
      out[row * features + i] = static_cast<float>(
        dot(call.in(0).data() + row * width, call.in(weight).data() + i * width, width));
  return out;
}

void gemv_decode(native_call& call) {
  call.out(0) = linear(call, 1);
}

void gemm_bias_gelu(native_call& call) {
  const auto sums = linear(call, 1);
  const size_t features = call.outputs[0].last();
  for (size_t i = 0; i < sums.size(); ++i)
    call.out(0)[i] = gelu_tanh(rounded_to_bf16(sums[i] + call.in(2)[i % features]));
}

void swiglu_mlp_gate(native_call& call) {
  const auto gate = linear(call, 1);
  const auto up = linear(call, 2);
  for (size_t i = 0; i < gate.size(); ++i)
    call.out(0)[i] = rounded_to_bf16(silu(rounded_to_bf16(gate[i]))) * rounded_to_bf16(up[i]);
}

void log_mel(native_call& call) {
  const size_t batch = call.inputs[0].shape[0];
  const size_t bins = call.inputs[0].shape[1];
  const size_t frames = call.inputs[0].last();
  const size_t mels = call.inputs[2].shape[0];
  std::vector<float> filters = call.in(2);
  for (float& one : filters)
    one = std::abs(one);
  std::vector<float> power(bins * frames);
  for (size_t image = 0; image < batch; ++image) {
    for (size_t i = 0; i < power.size(); ++i) {
      const float real = call.in(0)[image * power.size() + i];
      const float imaginary = call.in(1)[image * power.size() + i];
      power[i] = real * real + imaginary * imaginary;
    }
    const auto columns = transposed(power.data(), bins, frames);
    for (size_t mel = 0; mel < mels; ++mel)
      for (size_t frame = 0; frame < frames; ++frame) {
        const auto energy =
          static_cast<float>(dot(filters.data() + mel * bins, columns.data() + frame * bins, bins));
        call.out(0)[(image * mels + mel) * frames + frame] = std::log10(std::max(energy, 1e-10F));
      }
  }
}

void conv2d_bias_relu(native_call& call) {
  const auto& shape = call.inputs[0].shape;
  const size_t channels = shape[1], height = shape[2], width = shape[3];
  const size_t filters = call.inputs[1].shape[0];
  constexpr size_t taps = 3;
  // An image with its border of zeros, so that no tap needs a test.
  const size_t wide = width + 2;
  std::vector<float> padded(channels * (height + 2) * wide);
  for (size_t image = 0; image < shape[0]; ++image) {
    for (size_t channel = 0; channel < channels; ++channel)
      for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x)
          padded[(channel * (height + 2) + y + 1) * wide + x + 1] =
            call.in(0)[((image * channels + channel) * height + y) * width + x];
    for (size_t filter = 0; filter < filters; ++filter)
      for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x) {
          auto sum = static_cast<double>(call.in(2)[filter]);
          for (size_t channel = 0; channel < channels; ++channel)
            for (size_t tap = 0; tap < taps; ++tap)
              sum += dot(call.in(1).data() + ((filter * channels + channel) * taps + tap) * taps,
                padded.data() + (channel * (height + 2) + y + tap) * wide + x, taps);
          call.out(0)[((image * filters + filter) * height + y) * width + x] =
            std::max(static_cast<float>(sum), 0.0F);
        }
  }
}

void depthwise_conv1d(native_call& call) {
  constexpr size_t taps = 4;
  const size_t channels = call.inputs[0].shape[1];
  const size_t time = call.inputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row) {
    const size_t channel = row % channels;
    for (size_t t = 0; t < time; ++t) {
      auto sum = static_cast<double>(call.in(2)[channel]);
      for (size_t tap = 0; tap < taps; ++tap)
        if (t + tap + 1 >= taps)
          sum += static_cast<double>(call.in(1)[channel * taps + tap])
            * static_cast<double>(call.in(0)[row * time + t + tap + 1 - taps]);
      call.out(0)[row * time + t] = silu(static_cast<float>(sum));
    }
  }
}

constexpr auto references = std::to_array<native_entry>({
  {"batched_gemm", batched_gemm},
  {"conv2d_bias_relu", conv2d_bias_relu},
  {"depthwise_conv1d", depthwise_conv1d},
  {"gemm_bias_gelu", gemm_bias_gelu},
  {"gemm_float32", gemm_float32},
  {"gemv_decode", gemv_decode},
  {"log_mel", log_mel},
  {"swiglu_mlp_gate", swiglu_mlp_gate},
});

} // namespace

std::span<const native_entry> native_product_references() {
  return references;
}

} // namespace gristmill
