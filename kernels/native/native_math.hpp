#pragma once

#include <cmath>

namespace gristmill {

/// x times the logistic function of x.
inline float silu(float x) {
  return x / (1.0F + std::exp(-x));
}

/// GELU in its tanh form.
inline float gelu_tanh(float x) {
  constexpr float root_of_2_over_pi = 0.7978845608028654F;
  return 0.5F * x * (1.0F + std::tanh(root_of_2_over_pi * (x + 0.044715F * x * x * x)));
}

} // namespace gristmill
