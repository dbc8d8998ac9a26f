#pragma once

#include "tests/gpu/mock/ptx/setup.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// The ten kernels of tests/corpus/ptx: inputs, launch, and how far the result is from a reference
/// that is computed here in double precision.
namespace gristmill::ptx::testing {

struct corpus_case {
  std::string name;
  setup with;
  /// Largest error divided by its tolerance, after a run.
  std::function<double()> error;
  /// Restores the inputs that a run changes.
  std::function<void()> reset;
};

inline float from_bf16(uint16_t h) {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}
inline uint16_t to_bf16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
/// For normal numbers of moderate size.
inline double from_f16(uint16_t h) {
  const int exponent = h >> 10 & 31;
  const double value =
    exponent == 0 ? std::ldexp(h & 1023, -24) : std::ldexp(1024 + (h & 1023), exponent - 25);
  return h & 0x8000 ? -value : value;
}
inline uint16_t to_f16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  const int exponent = static_cast<int>(u >> 23 & 255) - 112;
  if (exponent <= 0)
    return 0;
  return static_cast<uint16_t>(
    (u >> 16 & 0x8000) | static_cast<uint32_t>(exponent) << 10 | (u >> 13 & 1023));
}

template <class T, class F>
std::shared_ptr<std::vector<T>> made(size_t count, F f) {
  auto v = std::make_shared<std::vector<T>>(count);
  for (T& x : *v)
    x = f();
  return v;
}

inline double off(double got, double want, double tolerance) {
  return std::isfinite(got) ? std::fabs(got - want) / (tolerance * (1 + std::fabs(want))) : 1e30;
}

/// `scale` multiplies the amount of work, for the benchmark.
inline std::vector<corpus_case> corpus_cases(uint32_t scale = 1) {
  std::vector<corpus_case> all;
  auto random = std::make_shared<numbers>(42);
  const auto unit = [random] { return random->unit(); };
  const auto start = [&](const std::string& name) -> corpus_case& {
    all.push_back({name, setup(name), {}, [] {}});
    return all.back();
  };
  using std::vector;
  {
    corpus_case& c = start("vector_add");
    const uint32_t n = 10000 * scale + 7;
    auto a = made<float>(n, unit), b = made<float>(n, unit),
         d = made<float>(n, [] { return 0.0F; });
    c.with.buffer(*a, false).buffer(*b, false).buffer(*d).value(n);
    c.with.grid((n + 255) / 256).block(256);
    c.error = [=] {
      double e = 0;
      for (size_t i = 0; i < n; ++i)
        e = std::max(e, off((*d)[i], (*a)[i] + (*b)[i], 1e-7));
      return e;
    };
  }
  {
    corpus_case& c = start("transpose");
    const uint32_t w = 100, h = 70 * scale;
    auto a = made<float>(w * h, unit), d = made<float>(w * h, [] { return 0.0F; });
    c.with.buffer(*a, false).buffer(*d).value(w).value(h);
    c.with.grid((w + 31) / 32, (h + 31) / 32).block(32, 8);
    c.error = [=] {
      double e = 0;
      for (size_t y = 0; y < h; ++y)
        for (size_t x = 0; x < w; ++x)
          e = std::max(e, off((*d)[x * h + y], (*a)[y * w + x], 1e-9));
      return e;
    };
  }
  {
    corpus_case& c = start("block_sum");
    const uint32_t n = 20000 * scale + 3;
    auto a = made<float>(n, unit);
    auto d = std::make_shared<vector<float>>(1);
    c.with.buffer(*a, false).buffer(*d).value(n);
    c.with.grid(12).block(128);
    c.error = [=] {
      double sum = 0;
      for (const float x : *a)
        sum += static_cast<double>(x);
      return std::fabs(static_cast<double>((*d)[0]) - sum) / 0.01;
    };
    c.reset = [=] { (*d)[0] = 0; };
  }
  {
    corpus_case& c = start("softmax_row");
    const uint32_t rows = 6 * scale, columns = 333;
    auto a = made<float>(rows * columns, [=] { return 8 * unit(); });
    auto d = made<float>(rows * columns, [] { return 0.0F; });
    c.with.buffer(*a, false).buffer(*d).value(columns);
    c.with.grid(rows).block(128);
    c.with.what.dynamic_shared = 128 * 4;
    c.error = [=] {
      double e = 0;
      for (size_t r = 0; r < rows; ++r) {
        double best = -1e30, sum = 0;
        const float* x = a->data() + r * columns;
        for (size_t i = 0; i < columns; ++i)
          best = std::max(best, static_cast<double>(x[i]));
        for (size_t i = 0; i < columns; ++i)
          sum += std::exp(static_cast<double>(x[i]) - best);
        for (size_t i = 0; i < columns; ++i)
          e = std::max(
            e, off((*d)[r * columns + i], std::exp(static_cast<double>(x[i]) - best) / sum, 1e-6));
      }
      return e;
    };
  }
  {
    corpus_case& c = start("rmsnorm_bf16");
    const uint32_t rows = 5 * scale, columns = 1200;
    auto a = made<uint16_t>(rows * columns, [=] { return to_bf16(unit()); });
    auto w = made<float>(columns, unit);
    auto d = made<uint16_t>(rows * columns, [] { return uint16_t{0}; });
    c.with.buffer(*a, false).buffer(*w, false).buffer(*d).value(columns).value(1e-5F);
    c.with.grid(rows).block(128);
    c.error = [=] {
      double e = 0;
      for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (size_t i = 0; i < columns; ++i)
          sum += std::pow(static_cast<double>(from_bf16((*a)[r * columns + i])), 2);
        const double s = 1 / std::sqrt(sum / columns + 1e-5);
        for (size_t i = 0; i < columns; ++i)
          e = std::max(e,
            off(from_bf16((*d)[r * columns + i]),
              static_cast<double>(from_bf16((*a)[r * columns + i])) * s
                * static_cast<double>((*w)[i]),
              4e-3));
      }
      return e;
    };
  }
  {
    corpus_case& c = start("sgemm_tile");
    const uint32_t m = 64 * scale, n = 96, k = 64;
    auto a = made<float>(m * k, unit), b = made<float>(k * n, unit);
    auto d = made<float>(m * n, [] { return 0.0F; });
    c.with.buffer(*a, false).buffer(*b, false).buffer(*d).value(n).value(k);
    c.with.grid(n / 32, m / 32).block(16, 16);
    c.error = [=] {
      double e = 0;
      for (size_t y = 0; y < m; ++y)
        for (size_t x = 0; x < n; ++x) {
          double sum = 0;
          for (size_t i = 0; i < k; ++i)
            sum += static_cast<double>((*a)[y * k + i]) * static_cast<double>((*b)[i * n + x]);
          e = std::max(e, off((*d)[y * n + x], sum, 1e-5));
        }
      return e;
    };
  }
  {
    corpus_case& c = start("attention_f16");
    const uint32_t length = 96 * scale, depth = 32;
    const auto h = [=] { return to_f16(unit()); };
    auto q = made<uint16_t>(length * depth, h), k = made<uint16_t>(length * depth, h),
         v = made<uint16_t>(length * depth, h),
         d = made<uint16_t>(length * depth, [] { return uint16_t{0}; });
    c.with.buffer(*q, false).buffer(*k, false).buffer(*v, false).buffer(*d);
    c.with.value(length).value(0.25F);
    c.with.grid(length / 32).block(32);
    c.with.what.dynamic_shared = 2 * 16 * 32 * 2;
    c.error = [=] {
      double e = 0;
      std::vector<double> p(length);
      for (size_t i = 0; i < length; i += 5) {
        double best = -1e30, sum = 0;
        for (size_t j = 0; j < length; ++j) {
          p[j] = 0;
          for (size_t x = 0; x < depth; ++x)
            p[j] += from_f16((*q)[i * depth + x]) * from_f16((*k)[j * depth + x]) * 0.25;
          best = std::max(best, p[j]);
        }
        for (double& x : p)
          sum += x = std::exp(x - best);
        for (size_t x = 0; x < depth; ++x) {
          double want = 0;
          for (size_t j = 0; j < length; ++j)
            want += p[j] / sum * from_f16((*v)[j * depth + x]);
          e = std::max(e, off(from_f16((*d)[i * depth + x]), want, 1e-3));
        }
      }
      return e;
    };
  }
  {
    corpus_case& c = start("histogram");
    const uint32_t n = 20000 * scale;
    auto a = made<uint8_t>(n, [=] { return static_cast<uint8_t>(random->next() >> 33); });
    auto d = std::make_shared<vector<uint32_t>>(256);
    c.with.buffer(*a, false).buffer(*d).value(n);
    c.with.grid(7).block(192);
    c.error = [=] {
      vector<uint32_t> want(256);
      for (const uint8_t x : *a)
        ++want[x];
      return want == *d ? 0.0 : 1e9;
    };
    c.reset = [=] { d->assign(256, 0); };
  }
  {
    corpus_case& c = start("mma_gemm_bf16");
    const uint32_t m = 64 * scale, n = 48, k = 80;
    const auto h = [=] { return to_bf16(unit()); };
    auto a = made<uint16_t>(m * k, h), b = made<uint16_t>(n * k, h);
    auto d = made<float>(m * n, [] { return 0.0F; });
    c.with.buffer(*a, false).buffer(*b, false).buffer(*d).value(n).value(k);
    c.with.grid(n / 16, m / 16).block(32);
    c.error = [=] {
      double e = 0;
      for (size_t y = 0; y < m; ++y)
        for (size_t x = 0; x < n; ++x) {
          double sum = 0;
          for (size_t i = 0; i < k; ++i)
            sum += static_cast<double>(from_bf16((*a)[y * k + i]))
              * static_cast<double>(from_bf16((*b)[x * k + i]));
          e = std::max(e, off((*d)[y * n + x], sum, 1e-5));
        }
      return e;
    };
  }
  {
    corpus_case& c = start("bulk_scale");
    const uint32_t tiles = 30 * scale;
    auto a = made<float>(tiles * 256, unit), d = made<float>(tiles * 256, [] { return 0.0F; });
    c.with.buffer(*a, false).buffer(*d).value(tiles);
    c.with.grid(8).block(128);
    c.error = [=] {
      double e = 0;
      for (size_t i = 0; i < a->size(); ++i)
        e = std::max(e, off((*d)[i], 3 * (*a)[i], 1e-7));
      return e;
    };
  }
  return all;
}

} // namespace gristmill::ptx::testing
