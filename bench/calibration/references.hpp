#pragma once

// What each kernel of tests/corpus/device_kernels has to compute, in double on a CPU, written to be
// plainly right. Standard library only.

#include "bench/calibration/corpus_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace gristmill::calibration {

using numbers = std::vector<double>;

/// Inputs, axes, and one output to fill; it has its size and holds zeros.
struct reference_call {
  const std::map<std::string, int64_t>& axes;
  std::vector<numbers> in;
  numbers& out;

  size_t axis(const std::string& name) const { return static_cast<size_t>(axes.at(name)); }
};

using reference_function = std::function<void(const reference_call&)>;

namespace reference {

inline uint32_t word(double v) {
  return static_cast<uint32_t>(static_cast<int64_t>(v));
}
inline double signed_word(uint32_t v) {
  return static_cast<int32_t>(v);
}

inline void map_scale(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i)
    c.out[i] = c.in[0][i] * 1.5 + 0.25;
}
inline void map_gelu(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i) {
    const double v = c.in[0][i];
    c.out[i] = 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  }
}
inline void half2_poly(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i) {
    double sum = 0.25;
    for (int s = 0; s < 64; ++s)
      sum = half_value(half_bits(static_cast<float>(sum * c.in[0][i] + 0.25)));
    c.out[i] = sum;
  }
}
inline void int_hash(const reference_call& c, uint32_t rounds) {
  for (size_t i = 0; i < c.out.size(); ++i) {
    uint32_t h = word(c.in[0][i]);
    for (uint32_t r = 0; r < rounds; ++r) {
      h ^= h >> 16;
      h *= 0x7feb352dU;
      h ^= h >> 15;
      h *= 0x846ca68bU;
      h += r;
    }
    c.out[i] = signed_word(h ^ h >> 16);
  }
}
inline void row_sum(const reference_call& c) {
  const size_t columns = c.axis("C");
  for (size_t r = 0; r < c.out.size(); ++r)
    for (size_t i = 0; i < columns; ++i)
      c.out[r] += c.in[0][r * columns + i];
}
inline void column_sum(const reference_call& c) {
  const size_t columns = c.axis("C");
  for (size_t i = 0; i < c.in[0].size(); ++i)
    c.out[i % columns] += c.in[0][i];
}
inline void total_sum(const reference_call& c) {
  c.out[0] = std::accumulate(c.in[0].begin(), c.in[0].end(), 0.0);
}
inline void dot_shuffle(const reference_call& c) {
  const size_t columns = c.axis("C");
  for (size_t i = 0; i < c.in[0].size(); ++i)
    c.out[i / columns] += c.in[0][i] * c.in[1][i];
}
inline void row_argmax(const reference_call& c) {
  const auto columns = static_cast<std::ptrdiff_t>(c.axis("C"));
  for (size_t r = 0; r < c.out.size(); ++r) {
    const auto first = c.in[0].begin() + static_cast<std::ptrdiff_t>(r) * columns;
    c.out[r] = static_cast<double>(std::max_element(first, first + columns) - first);
  }
}
inline void running_sums(const reference_call& c, size_t row) {
  for (size_t i = 0; i < c.out.size(); ++i)
    c.out[i] = c.in[0][i] + (i % row == 0 ? 0 : c.out[i - 1]);
}
inline void scan_block(const reference_call& c) {
  running_sums(c, 1024);
}
inline void scan_whole(const reference_call& c) {
  running_sums(c, c.out.size());
}
inline void sort_bitonic(const reference_call& c) {
  c.out = c.in[0];
  for (auto i = c.out.begin(); i != c.out.end(); i += 2048)
    std::sort(i, i + 2048);
}
inline void sort_radix_pass(const reference_call& c) {
  c.out = c.in[0];
  std::stable_sort(
    c.out.begin(), c.out.end(), [](double a, double b) { return (word(a) & 15) < (word(b) & 15); });
}
inline void stencil_2d(const reference_call& c) {
  const size_t height = c.axis("H"), width = c.axis("W");
  const numbers& x = c.in[0];
  for (size_t i = 0; i < c.out.size(); ++i) {
    const size_t row = i / width, column = i % width;
    const bool edge = row == 0 || column == 0 || row + 1 == height || column + 1 == width;
    c.out[i] = edge ? x[i] : 0.2 * (x[i] + x[i - 1] + x[i + 1] + x[i - width] + x[i + width]);
  }
}
inline void stencil_3d(const reference_call& c) {
  const size_t depth = c.axis("D"), height = c.axis("H"), width = c.axis("W"),
               plane = height * width;
  const numbers& x = c.in[0];
  for (size_t i = 0; i < c.out.size(); ++i) {
    const size_t z = i / plane, row = i / width % height, column = i % width;
    const bool edge = z == 0 || row == 0 || column == 0 || z + 1 == depth || row + 1 == height
      || column + 1 == width;
    c.out[i] = edge ? x[i]
                    : 0.4 * x[i]
        + 0.1 * (x[i - 1] + x[i + 1] + x[i - width] + x[i + width] + x[i - plane] + x[i + plane]);
  }
}
inline void histogram(const reference_call& c) {
  for (const double v : c.in[0])
    ++c.out[word(v) & 255];
}
inline void transpose(const reference_call& c) {
  const size_t height = c.axis("H"), width = c.axis("W");
  for (size_t i = 0; i < c.out.size(); ++i)
    c.out[i % width * height + i / width] = c.in[0][i];
}
inline void softmax_of(const double* x, double* y, size_t n) {
  const double top = *std::max_element(x, x + n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i)
    sum += y[i] = std::exp(x[i] - top);
  for (size_t i = 0; i < n; ++i)
    y[i] /= sum;
}
inline void softmax(const reference_call& c) {
  const size_t columns = c.axis("C");
  for (size_t i = 0; i < c.out.size(); i += columns)
    softmax_of(&c.in[0][i], &c.out[i], columns);
}
inline void layernorm(const reference_call& c) {
  constexpr size_t n = 2048;
  for (size_t i = 0; i < c.out.size(); i += n) {
    double mean = 0, variance = 0;
    for (size_t j = 0; j < n; ++j)
      mean += c.in[0][i + j] / n;
    for (size_t j = 0; j < n; ++j)
      variance += (c.in[0][i + j] - mean) * (c.in[0][i + j] - mean) / n;
    for (size_t j = 0; j < n; ++j)
      c.out[i + j] = (c.in[0][i + j] - mean) / std::sqrt(variance + 1e-5) * c.in[1][j] + c.in[2][j];
  }
}
inline void rmsnorm(const reference_call& c) {
  constexpr size_t n = 4096;
  for (size_t i = 0; i < c.out.size(); i += n) {
    double squares = 0;
    for (size_t j = 0; j < n; ++j)
      squares += c.in[0][i + j] * c.in[0][i + j] / n;
    for (size_t j = 0; j < n; ++j)
      c.out[i + j] = c.in[0][i + j] / std::sqrt(squares + 1e-5) * c.in[1][j];
  }
}
inline void attention(const reference_call& c) {
  const size_t length = c.axis("L");
  numbers scores(length), weights(length);
  for (size_t r = 0; r < length; ++r) {
    for (size_t j = 0; j < length; ++j) {
      scores[j] = 0;
      for (size_t d = 0; d < 64; ++d)
        scores[j] += c.in[0][r * 64 + d] * c.in[1][j * 64 + d] / 8;
    }
    softmax_of(scores.data(), weights.data(), length);
    for (size_t j = 0; j < length; ++j)
      for (size_t d = 0; d < 64; ++d)
        c.out[r * 64 + d] += weights[j] * c.in[2][j * 64 + d];
  }
}
inline void gemm_nn(const reference_call& c) {
  const size_t m = c.axis("M"), n = c.axis("N"), k = c.axis("K");
  for (size_t row = 0; row < m; ++row)
    for (size_t i = 0; i < k; ++i)
      for (size_t column = 0; column < n; ++column)
        c.out[row * n + column] += c.in[0][row * k + i] * c.in[1][i * n + column];
}
inline void gemm_nt(const reference_call& c) {
  const size_t m = c.axis("M"), n = c.axis("N"), k = c.axis("K");
  for (size_t row = 0; row < m; ++row)
    for (size_t column = 0; column < n; ++column)
      for (size_t i = 0; i < k; ++i)
        c.out[row * n + column] += c.in[0][row * k + i] * c.in[1][column * k + i];
}
inline void twice(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i)
    c.out[i] = 2 * c.in[0][i];
}
inline void specialised_scale(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i)
    c.out[i] = 3 * c.in[0][i] - 1;
}
inline void grid_sync(const reference_call& c) {
  const size_t n = c.out.size();
  numbers now = c.in[0];
  for (int r = 0; r < 5; ++r) {
    for (size_t i = 0; i < n; ++i)
      c.out[i] = now[i] / 2 + (now[(i + n - 1) % n] + now[(i + 1) % n]) / 4;
    now = c.out;
  }
}
inline void pointer_chase(const reference_call& c) {
  const size_t n = c.axis("N"), chains = c.axis("C");
  for (size_t i = 0; i < chains; ++i) {
    auto at = static_cast<double>(i * n / chains);
    for (int s = 0; s < 64; ++s)
      at = c.in[0][static_cast<size_t>(at)];
    c.out[i] = at;
  }
}
inline void gemv(const reference_call& c) {
  const size_t columns = c.axis("C");
  for (size_t i = 0; i < c.in[0].size(); ++i)
    c.out[i / columns] += c.in[0][i] * c.in[1][i % columns];
}
inline void gather_rows(const reference_call& c) {
  const size_t width = c.axis("W");
  for (size_t i = 0; i < c.out.size(); ++i)
    c.out[i] = c.in[0][static_cast<size_t>(c.in[1][i / width]) * width + i % width];
}
inline void scatter_add(const reference_call& c) {
  const size_t width = c.axis("W");
  for (size_t i = 0; i < c.in[0].size(); ++i)
    c.out[static_cast<size_t>(c.in[1][i / width]) * width + i % width] += c.in[0][i];
}
inline void top_k(const reference_call& c) {
  const size_t columns = c.axis("C");
  for (size_t r = 0; r < c.axis("R"); ++r) {
    const auto first = c.in[0].begin() + static_cast<std::ptrdiff_t>(r * columns);
    numbers row(first, first + static_cast<std::ptrdiff_t>(columns));
    std::sort(row.begin(), row.end(), std::greater<>());
    std::copy(row.begin(), row.begin() + 8, c.out.begin() + static_cast<std::ptrdiff_t>(r * 8));
  }
}
inline void rope(const reference_call& c) {
  const size_t heads = c.axis("H");
  for (size_t i = 0; i < c.out.size() / 2; ++i) {
    const size_t pair = i % 64, at = i / 64 * 128 + pair;
    const double angle =
      static_cast<double>(i / 64 / heads) * std::pow(10000.0, -static_cast<double>(pair) / 64);
    const double a = c.in[0][at], b = c.in[0][at + 64];
    c.out[at] = a * std::cos(angle) - b * std::sin(angle);
    c.out[at + 64] = a * std::sin(angle) + b * std::cos(angle);
  }
}
inline void atomic_count(const reference_call& c) {
  const auto slots = static_cast<uint32_t>(c.out.size());
  for (size_t i = 0; i < c.in[0].size(); ++i)
    c.out[static_cast<uint32_t>(i) * 2654435761U % slots] += word(c.in[0][i]) & 15;
}
inline void constant_filter(const reference_call& c) {
  static const std::array<double, 32> taps = {0.5, 0.25, 0.125, 0.0625, -0.5, -0.25, -0.125,
    -0.0625, 0.1, 0.2, 0.3, 0.4, -0.1, -0.2, -0.3, -0.4, 0.05, 0.15, 0.35, 0.45, -0.05, -0.15,
    -0.35, -0.45, 0.75, 0.375, 0.1875, 0.09375, -0.75, -0.375, -0.1875, -0.09375};
  for (size_t i = 0; i < c.out.size(); ++i)
    for (size_t t = 0; t < 32 && i + t < c.out.size(); ++t)
      c.out[i] += c.in[0][i + t] * taps[t];
}
inline void local_ranks(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); i += 16) {
    std::array<uint32_t, 16> own{};
    for (size_t j = 0; j < 16; ++j)
      own[j] = word(c.in[0][i + j]);
    for (uint32_t r = 0; r < 4; ++r)
      for (uint32_t& v : own)
        v = own[v & 15] * 5 + r;
    for (size_t j = 0; j < 16; ++j)
      c.out[i + j] = signed_word(own[j]);
  }
}
inline void conv_2d(const reference_call& c) {
  const size_t channels = c.axis("C"), size = c.axis("S");
  for (size_t i = 0; i < c.out.size(); ++i) {
    const size_t filter = i / (size * size), row = i / size % size, column = i % size;
    for (size_t channel = 0; channel < channels; ++channel)
      for (size_t t = 0; t < 9; ++t) {
        const size_t r = row + t / 3, q = column + t % 3;
        if (r >= 1 && r <= size && q >= 1 && q <= size)
          c.out[i] += c.in[0][(channel * size + r - 1) * size + q - 1]
            * c.in[1][(filter * channels + channel) * 9 + t];
      }
  }
}
inline void conv_depthwise(const reference_call& c) {
  const size_t length = c.axis("L");
  for (size_t i = 0; i < c.out.size(); ++i)
    for (size_t t = 0; t < 4; ++t)
      if (i % length + t >= 3)
        c.out[i] += c.in[0][i + t - 3] * c.in[1][i / length * 4 + t];
}

inline void escape_time(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i) {
    const auto a = static_cast<float>(c.in[0][i]), b = static_cast<float>(c.in[1][i]);
    volatile float x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    int s = 0;
    // Through volatile, so that no compiler fuses what the kernel rounds one by one.
    for (; s < 200; ++s) {
      xx = x * x;
      yy = y * y;
      const volatile float away = xx + yy;
      if (!(away <= 4.0F))
        break;
      const volatile float difference = xx - yy;
      xy = 2.0F * x;
      xy = xy * y;
      y = xy + b;
      x = difference + a;
    }
    c.out[i] = s;
  }
}
inline void nbody_step(const reference_call& c) {
  const size_t n = c.axis("N");
  const numbers& b = c.in[0];
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double d[3], square = 0.01;
      for (size_t k = 0; k < 3; ++k) {
        d[k] = b[j * 4 + k] - b[i * 4 + k];
        square += d[k] * d[k];
      }
      for (size_t k = 0; k < 3; ++k)
        c.out[i * 3 + k] += d[k] * b[j * 4 + 3] / (square * std::sqrt(square));
    }
}
inline void sparse_rows(const reference_call& c) {
  for (size_t r = 0; r < c.out.size(); ++r)
    for (size_t i = 0; i < 4 + r % 29; ++i)
      c.out[r] += c.in[2][r * 32 + i] * c.in[3][static_cast<size_t>(c.in[1][r * 32 + i])];
}
inline void lower_bound(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i)
    c.out[i] = static_cast<double>(
      std::lower_bound(c.in[0].begin(), c.in[0].end(), c.in[1][i]) - c.in[0].begin());
}
inline void life_bits(const reference_call& c) {
  const size_t height = c.axis("H"), words = c.axis("W"), width = words * 32;
  const auto alive = [&](size_t row, size_t column) {
    return word(c.in[0][row % height * words + column % width / 32]) >> column % 32 & 1;
  };
  for (size_t row = 0; row < height; ++row)
    for (size_t w = 0; w < words; ++w) {
      uint32_t next = 0;
      for (size_t bit = 0; bit < 32; ++bit) {
        const size_t column = w * 32 + bit;
        uint32_t around = 0;
        for (size_t r = 0; r < 3; ++r)
          for (size_t q = 0; q < 3; ++q)
            if (r != 1 || q != 1)
              around += alive(row + height + r - 1, column + width + q - 1);
        if (around == 3 || (around == 2 && alive(row, column) != 0))
          next |= 1U << bit;
      }
      c.out[row * words + w] = signed_word(next);
    }
}
inline void horner_fp64(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i)
    for (int d = 32; d >= 0; --d)
      c.out[i] = std::fma(c.out[i], c.in[0][i], 1.0 / (d + 1));
}
inline void edit_distance(const reference_call& c) {
  for (size_t p = 0; p < c.out.size(); ++p) {
    std::vector<int> before(129), now(129);
    std::iota(before.begin(), before.end(), 0);
    for (size_t r = 1; r <= 128; ++r) {
      now[0] = static_cast<int>(r);
      for (size_t q = 1; q <= 128; ++q) {
        const bool same =
          (word(c.in[0][p * 128 + r - 1]) & 3) == (word(c.in[1][p * 128 + q - 1]) & 3);
        now[q] = std::min({before[q] + 1, now[q - 1] + 1, before[q - 1] + (same ? 0 : 1)});
      }
      before.swap(now);
    }
    c.out[p] = before[128];
  }
}
inline void shortest_paths(const reference_call& c) {
  const size_t n = c.axis("N");
  c.out = c.in[0];
  for (size_t p = 0; p < n; ++p)
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (i != p && j != p)
          c.out[i * n + j] = std::min(c.out[i * n + j], c.out[i * n + p] + c.out[p * n + j]);
}
inline void nearest_point(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i) {
    c.out[i] = INFINITY;
    for (size_t j = 0; j < c.axis("M"); ++j) {
      const double dx = c.in[1][j * 2] - c.in[0][i * 2];
      const double dy = c.in[1][j * 2 + 1] - c.in[0][i * 2 + 1];
      c.out[i] = std::min(c.out[i], dx * dx + dy * dy);
    }
  }
}
inline void collatz(const reference_call& c) {
  for (size_t i = 0; i < c.out.size(); ++i)
    for (auto v = static_cast<uint64_t>(c.in[0][i]) + 1; v != 1; ++c.out[i])
      v = v % 2 == 1 ? 3 * v + 1 : v / 2;
}
inline void fourier_256(const reference_call& c) {
  for (size_t r = 0; r < c.axis("R"); ++r)
    for (size_t k = 0; k < 256; ++k) {
      std::complex<double> sum = 0;
      for (size_t i = 0; i < 256; ++i)
        sum += std::complex<double>(c.in[0][(r * 256 + i) * 2], c.in[0][(r * 256 + i) * 2 + 1])
          * std::polar(1.0, -2 * 3.141592653589793 * static_cast<double>(k * i % 256) / 256);
      c.out[(r * 256 + k) * 2] = sum.real();
      c.out[(r * 256 + k) * 2 + 1] = sum.imag();
    }
}
inline void upsample(const reference_call& c) {
  const auto height = static_cast<int64_t>(c.axis("H")), width = static_cast<int64_t>(c.axis("W"));
  const auto at = [&](int64_t r, int64_t q) {
    r = std::clamp<int64_t>(r, 0, height - 1);
    q = std::clamp<int64_t>(q, 0, width - 1);
    return static_cast<int64_t>(word(c.in[0][static_cast<size_t>(r * width + q)]) & 255);
  };
  for (int64_t row = 0; row < 2 * height; ++row)
    for (int64_t column = 0; column < 2 * width; ++column) {
      const int64_t r = row / 2, q = column / 2, r2 = row % 2 == 0 ? r - 1 : r + 1;
      const int64_t q2 = column % 2 == 0 ? q - 1 : q + 1;
      const int64_t sum = 9 * at(r, q) + 3 * at(r2, q) + 3 * at(r, q2) + at(r2, q2);
      c.out[static_cast<size_t>(row * 2 * width + column)] = static_cast<int8_t>((sum + 8) / 16);
    }
}

/// By name; int_hash is not in it, because it depends on a define.
inline const std::map<std::string, reference_function>& known_references() {
  static const std::map<std::string, reference_function> known = {{"map_scale", map_scale},
    {"map_gelu", map_gelu}, {"half2_poly", half2_poly}, {"row_sum", row_sum},
    {"column_sum", column_sum}, {"total_sum", total_sum}, {"dot_shuffle", dot_shuffle},
    {"row_argmax", row_argmax}, {"scan_block", scan_block}, {"scan_whole", scan_whole},
    {"sort_bitonic", sort_bitonic}, {"sort_radix_pass", sort_radix_pass},
    {"stencil_2d", stencil_2d}, {"stencil_3d", stencil_3d}, {"histogram", histogram},
    {"transpose", transpose}, {"softmax", softmax}, {"layernorm", layernorm}, {"rmsnorm", rmsnorm},
    {"attention", attention}, {"gemm_nn", gemm_nn}, {"gemm_nt", gemm_nt}, {"double", twice},
    {"specialised_scale", specialised_scale}, {"grid_sync", grid_sync},
    {"pointer_chase", pointer_chase}, {"gemv", gemv}, {"gather_rows", gather_rows},
    {"scatter_add", scatter_add}, {"top_k", top_k}, {"rope", rope}, {"atomic_count", atomic_count},
    {"constant_filter", constant_filter}, {"local_ranks", local_ranks}, {"conv_2d", conv_2d},
    {"conv_depthwise", conv_depthwise}, {"escape_time", escape_time}, {"nbody_step", nbody_step},
    {"sparse_rows", sparse_rows}, {"lower_bound", lower_bound}, {"life_bits", life_bits},
    {"horner_fp64", horner_fp64}, {"edit_distance", edit_distance},
    {"shortest_paths", shortest_paths}, {"nearest_point", nearest_point}, {"collatz", collatz},
    {"fourier_256", fourier_256}, {"upsample", upsample}};
  return known;
}

} // namespace reference

/// Throws std::runtime_error when there is none of that name.
inline reference_function find_reference(const corpus_case& of) {
  const auto& known = reference::known_references();
  if (of.reference == "int_hash") {
    uint32_t rounds = 0;
    for (const auto& define : of.small.defines)
      if (define.first == "ROUNDS")
        rounds = static_cast<uint32_t>(std::stoul(define.second));
    return [rounds](const reference_call& c) { reference::int_hash(c, rounds); };
  }
  const auto found = known.find(of.reference);
  if (found == known.end())
    throw std::runtime_error("reference " + of.reference + " of " + of.name + " is not known");
  return found->second;
}

/// The output of a case at its small size, given the inputs in order.
inline numbers expected(const corpus_case& of, std::vector<numbers> inputs) {
  numbers out;
  for (const case_buffer& b : of.small.buffers)
    if (b.kind == case_buffer::role::output)
      out.assign(b.elements, 0.0);
  find_reference(of)({of.small.axes, std::move(inputs), out});
  return out;
}

} // namespace gristmill::calibration
