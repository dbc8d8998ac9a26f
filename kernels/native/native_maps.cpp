#include "kernels/native/native_call.hpp"
#include "kernels/native/native_math.hpp"

#include <array>
#include <cmath>

namespace gristmill {

namespace {

void silu_and_mul(native_call& call) {
  const size_t width = call.outputs[0].last();
  for (size_t row = 0; row < call.inputs[0].rows(); ++row)
    for (size_t i = 0; i < width; ++i) {
      const float gate = call.in(0)[row * 2 * width + i];
      const float value = call.in(0)[row * 2 * width + width + i];
      call.out(0)[row * width + i] = silu(gate) * value;
    }
}

void gelu_bias(native_call& call) {
  const size_t width = call.inputs[0].last();
  for (size_t i = 0; i < call.out(0).size(); ++i)
    call.out(0)[i] = gelu_tanh(call.in(0)[i] + call.in(1)[i % width]);
}

void rope(native_call& call) {
  const auto& shape = call.inputs[0].shape;
  const size_t heads = shape[1];
  const size_t half = shape[2] / 2;
  for (size_t head = 0; head < call.inputs[0].rows(); ++head) {
    const float* x = call.in(0).data() + head * 2 * half;
    const float* c = call.in(1).data() + head / heads * half;
    const float* s = call.in(2).data() + head / heads * half;
    float* y = call.out(0).data() + head * 2 * half;
    for (size_t i = 0; i < half; ++i) {
      y[i] = x[i] * c[i] - x[half + i] * s[i];
      y[half + i] = x[half + i] * c[i] + x[i] * s[i];
    }
  }
}

void transpose(native_call& call) {
  const size_t rows = call.inputs[0].shape[0];
  const size_t columns = call.inputs[0].shape[1];
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      call.out(0)[column * rows + row] = call.in(0)[row * columns + column];
}

void embedding_gather(native_call& call) {
  const auto rows = static_cast<int64_t>(call.inputs[1].shape[0]);
  const size_t width = call.inputs[1].last();
  for (size_t token = 0; token < call.inputs[0].integers.size(); ++token) {
    const int64_t id = (call.inputs[0].integers[token] % rows + rows) % rows;
    for (size_t i = 0; i < width; ++i)
      call.out(0)[token * width + i] = call.in(1)[static_cast<size_t>(id) * width + i];
  }
}

constexpr auto references = std::to_array<native_entry>({
  {"embedding_gather", embedding_gather},
  {"gelu_bias", gelu_bias},
  {"rope", rope},
  {"silu_and_mul", silu_and_mul},
  {"transpose", transpose},
});

} // namespace

std::span<const native_entry> native_map_references() {
  return references;
}

} // namespace gristmill
