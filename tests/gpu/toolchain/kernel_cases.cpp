#include "tests/gpu/toolchain/kernel_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace gristmill::test {

namespace {

using outputs = std::vector<std::vector<uint8_t>>;

/// xorshift: any fixed numbers do.
class dice {
public:
  uint32_t bits() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }
  /// In [-1, 1).
  float number() { return static_cast<float>(bits() >> 8) / 8388608.F - 1.F; }

private:
  uint32_t state_ = 2463534242U;
};

uint16_t to_bf16(float f) {
  uint32_t bits = 0;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float from_bf16(uint16_t h) {
  const uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f = 0;
  std::memcpy(&f, &bits, 4);
  return f;
}
uint16_t to_half(float f) {
  const _Float16 h = static_cast<_Float16>(f);
  uint16_t bits = 0;
  std::memcpy(&bits, &h, 2);
  return bits;
}
float from_half(uint16_t bits) {
  _Float16 h = 0;
  std::memcpy(&h, &bits, 2);
  return static_cast<float>(h);
}

template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const std::vector<uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

double miss(double got, double want, double tolerance) {
  return std::isfinite(got) ? std::fabs(got - want) / (tolerance * (1 + std::fabs(want))) : 1e30;
}

/// The pattern of a large input: 4 MiB, a multiple of every page size.
constexpr size_t pattern_bytes = 4 << 20;

class builder {
public:
  builder(std::string name, bool large) : large_(large) {
    made_.name = name;
    made_.unit.key = name;
    made_.unit.entries.push_back({std::move(name), {}, {}, {}});
  }

  std::vector<float> floats(const std::string& name, size_t count, float scale = 1) {
    return input<float>(name, "float", count, [scale](dice& d) { return d.number() * scale; });
  }
  std::vector<uint16_t> bf16s(const std::string& name, size_t count) {
    return input<uint16_t>(
      name, "__nv_bfloat16", count, [](dice& d) { return to_bf16(d.number()); });
  }
  std::vector<uint16_t> halves(const std::string& name, size_t count) {
    return input<uint16_t>(name, "__half", count, [](dice& d) { return to_half(d.number()); });
  }
  std::vector<uint8_t> octets(const std::string& name, size_t count) {
    return input<uint8_t>(
      name, "uint8_t", count, [](dice& d) { return static_cast<uint8_t>(d.bits() >> 24); });
  }
  void output(const std::string& name, const std::string& type, uint64_t bytes) {
    made_.buffers.push_back({name, false, bytes, {}});
    describe(type + "*", name, false);
  }
  void value(const std::string& name, int32_t v) {
    made_.values.emplace_back(bytes_of(std::vector<int32_t>{v}));
    describe("int32_t", name, false);
  }
  void value(const std::string& name, float v) {
    made_.values.emplace_back(bytes_of(std::vector<float>{v}));
    describe("float", name, false);
  }
  void shape(uint32_t gx, uint32_t gy, uint32_t bx, uint32_t by, uint32_t shared = 0) {
    made_.grid = {gx, gy, 1};
    made_.block = {bx, by, 1};
    made_.dynamic_shared = shared;
  }
  kernel_case finish(std::function<double(const outputs&)> error) {
    made_.error = std::move(error);
    return std::move(made_);
  }

private:
  template <class T, class Make>
  std::vector<T> input(const std::string& name, const std::string& type, size_t count, Make make) {
    std::vector<T> values(large_ ? std::min(count, pattern_bytes / sizeof(T)) : count);
    for (T& value : values)
      value = make(dice_);
    made_.buffers.push_back({name, true, count * sizeof(T), bytes_of(values)});
    describe("const " + type + "*", name, true);
    return values;
  }
  void describe(const std::string& type, const std::string& name, bool is_const) {
    entry_use& entry = made_.unit.entries.front();
    entry.parameter_abi.push_back(type);
    entry.argument_names.push_back(name);
    entry.parameter_const.push_back(is_const);
  }

  kernel_case made_;
  bool large_;
  dice dice_;
};

kernel_case vadd(bool large) {
  builder b("vadd", large);
  const size_t n = large ? 1U << 26 : 1U << 18;
  const auto x = b.floats("a", n), y = b.floats("b", n);
  b.output("c", "float", n * 4);
  b.value("count", static_cast<int32_t>(n));
  b.shape(static_cast<uint32_t>(n / 256), 1, 256, 1);
  return b.finish([=](const outputs& out) {
    const auto c = values_of<float>(out[0]);
    double worst = 0;
    for (size_t i = 0; i < c.size(); ++i)
      worst = std::max(worst, miss(c[i], x[i] + y[i], 1e-7));
    return worst;
  });
}

kernel_case transpose(bool large) {
  builder b("transpose", large);
  const uint32_t width = large ? 8192 : 512, height = large ? 8192 : 320;
  const size_t n = size_t{width} * height;
  const auto x = b.floats("in", n);
  b.output("out", "float", n * 4);
  b.value("width", static_cast<int32_t>(width));
  b.value("height", static_cast<int32_t>(height));
  b.shape(width / 32, height / 32, 32, 8);
  return b.finish([=](const outputs& out) {
    const auto y = values_of<float>(out[0]);
    for (size_t row = 0; row < height; ++row)
      for (size_t column = 0; column < width; ++column)
        if (y[column * height + row] != x[row * width + column])
          return 1e9;
    return 0.0;
  });
}

kernel_case block_reduce(bool large) {
  builder b("block_reduce", large);
  const size_t n = large ? 1U << 26 : 1U << 18;
  const auto x = b.floats("x", n);
  b.output("sum", "float", 4);
  b.value("count", static_cast<int32_t>(n));
  b.shape(large ? 1056 : 66, 1, 256, 1);
  return b.finish([=](const outputs& out) {
    double sum = 0;
    for (const float v : x)
      sum += v;
    return std::fabs(static_cast<double>(values_of<float>(out[0])[0]) - sum) / 0.01;
  });
}

kernel_case softmax_row(bool large) {
  builder b("softmax_row", large);
  const size_t rows = large ? 16384 : 64, columns = 2048;
  const auto x = b.floats("x", rows * columns, 8);
  b.output("y", "float", rows * columns * 4);
  b.value("columns", static_cast<int32_t>(columns));
  b.shape(static_cast<uint32_t>(rows), 1, 256, 1, 1024);
  return b.finish([=](const outputs& out) {
    const auto y = values_of<float>(out[0]);
    double worst = 0;
    for (size_t r = 0; r < rows; ++r) {
      const float* row = x.data() + r * columns;
      const double largest = *std::max_element(row, row + columns);
      double sum = 0;
      for (size_t i = 0; i < columns; ++i)
        sum += std::exp(row[i] - largest);
      for (size_t i = 0; i < columns; ++i)
        worst =
          std::max(worst, std::fabs(y[r * columns + i] - std::exp(row[i] - largest) / sum) / 1e-6);
    }
    return worst;
  });
}

kernel_case rmsnorm(bool large) {
  builder b("rmsnorm", large);
  const size_t rows = large ? 16384 : 48, columns = 4096;
  const auto x = b.bf16s("x", rows * columns);
  const auto weight = b.floats("weight", columns);
  b.output("y", "__nv_bfloat16", rows * columns * 2);
  b.value("columns", static_cast<int32_t>(columns));
  b.value("eps", 1e-5F);
  b.shape(static_cast<uint32_t>(rows), 1, 256, 1);
  return b.finish([=](const outputs& out) {
    const auto y = values_of<uint16_t>(out[0]);
    double worst = 0;
    for (size_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (size_t i = 0; i < columns; ++i)
        squares += std::pow(from_bf16(x[r * columns + i]), 2);
      const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + 1e-5);
      for (size_t i = 0; i < columns; ++i)
        worst = std::max(worst,
          miss(from_bf16(y[r * columns + i]), from_bf16(x[r * columns + i]) * scale * weight[i],
            5e-3));
    }
    return worst;
  });
}

kernel_case sgemm(bool large) {
  builder b("sgemm", large);
  const size_t m = large ? 4096 : 128, n = large ? 4096 : 192, k = large ? 4096 : 160;
  const auto x = b.floats("a", m * k), y = b.floats("b", k * n);
  b.output("c", "float", m * n * 4);
  for (const auto& [name, size] : {std::pair{"m", m}, {"n", n}, {"k", k}})
    b.value(name, static_cast<int32_t>(size));
  b.shape(static_cast<uint32_t>(n / 64), static_cast<uint32_t>(m / 64), 16, 16);
  return b.finish([=](const outputs& out) {
    const auto c = values_of<float>(out[0]);
    double worst = 0;
    for (size_t row = 0; row < m; ++row)
      for (size_t column = 0; column < n; ++column) {
        double sum = 0;
        for (size_t i = 0; i < k; ++i)
          sum += static_cast<double>(x[row * k + i]) * static_cast<double>(y[i * n + column]);
        worst = std::max(worst, miss(c[row * n + column], sum, 1e-4));
      }
    return worst;
  });
}

kernel_case flash(bool large) {
  builder b("flash", large);
  const size_t length = large ? 16384 : 256, head = 64;
  const auto q = b.halves("q", length * head), k = b.halves("k", length * head);
  const auto v = b.halves("v", length * head);
  b.output("out", "__half", length * head * 2);
  b.value("length", static_cast<int32_t>(length));
  b.value("scale", 0.125F);
  b.shape(static_cast<uint32_t>(length / 64), 1, 64, 1, 8192);
  return b.finish([=](const outputs& out) {
    const auto o = values_of<uint16_t>(out[0]);
    double worst = 0;
    for (size_t row = 0; row < length; row += 3) {
      std::vector<double> p(length);
      double largest = -1e30, sum = 0;
      for (size_t j = 0; j < length; ++j) {
        for (size_t d = 0; d < head; ++d)
          p[j] += static_cast<double>(from_half(q[row * head + d])) * from_half(k[j * head + d]);
        p[j] *= 0.125;
        largest = std::max(largest, p[j]);
      }
      for (double& x : p)
        sum += x = std::exp(x - largest);
      for (size_t d = 0; d < head; ++d) {
        double want = 0;
        for (size_t j = 0; j < length; ++j)
          want += p[j] * from_half(v[j * head + d]);
        worst = std::max(worst, miss(from_half(o[row * head + d]), want / sum, 2e-3));
      }
    }
    return worst;
  });
}

kernel_case histogram(bool large) {
  builder b("histogram", large);
  const size_t n = large ? 1U << 27 : 1U << 18;
  const auto x = b.octets("x", n);
  b.output("bins", "uint32_t", 1024);
  b.value("count", static_cast<int32_t>(n));
  b.shape(large ? 1056 : 66, 1, 256, 1);
  return b.finish([=](const outputs& out) {
    std::vector<uint32_t> want(256);
    for (const uint8_t v : x)
      ++want[v];
    return values_of<uint32_t>(out[0]) == want ? 0.0 : 1e9;
  });
}

kernel_case mma_gemm(bool large) {
  builder b("mma_gemm", large);
  const size_t m = large ? 4096 : 128, n = m, k = large ? 4096 : 192;
  const auto x = b.bf16s("a", m * k), y = b.bf16s("b", n * k);
  b.output("c", "float", m * n * 4);
  for (const auto& [name, size] : {std::pair{"m", m}, {"n", n}, {"k", k}})
    b.value(name, static_cast<int32_t>(size));
  b.shape(static_cast<uint32_t>(n / 64), static_cast<uint32_t>(m / 64), 128, 1);
  return b.finish([=](const outputs& out) {
    const auto c = values_of<float>(out[0]);
    double worst = 0;
    for (size_t row = 0; row < m; ++row)
      for (size_t column = 0; column < n; ++column) {
        double sum = 0;
        for (size_t i = 0; i < k; ++i)
          sum += static_cast<double>(from_bf16(x[row * k + i])) * from_bf16(y[column * k + i]);
        worst = std::max(worst, miss(c[row * n + column], sum, 1e-4));
      }
    return worst;
  });
}

kernel_case bulk_scale(bool large) {
  builder b("bulk_scale", large);
  const size_t n = large ? 1U << 26 : 1U << 18;
  const auto x = b.floats("x", n);
  b.output("y", "float", n * 4);
  b.value("tiles", static_cast<int32_t>(n / 1024));
  b.shape(large ? 264 : 66, 1, 256, 1);
  return b.finish([=](const outputs& out) {
    const auto y = values_of<float>(out[0]);
    for (size_t i = 0; i < y.size(); ++i)
      if (y[i] != 2 * x[i])
        return 1e9;
    return 0.0;
  });
}

struct known_case {
  const char* name;
  kernel_case (*make)(bool);
};
constexpr known_case known[] = {{"vadd", vadd}, {"transpose", transpose},
  {"block_reduce", block_reduce}, {"softmax_row", softmax_row}, {"rmsnorm", rmsnorm},
  {"sgemm", sgemm}, {"flash", flash}, {"histogram", histogram}, {"mma_gemm", mma_gemm},
  {"bulk_scale", bulk_scale}};

} // namespace

std::vector<uint8_t> kernel_case::parameters(const std::vector<uint64_t>& addresses) const {
  std::vector<uint8_t> bytes;
  const auto add = [&](const void* data, size_t size) {
    bytes.resize((bytes.size() + size - 1) / size * size + size);
    std::memcpy(bytes.data() + bytes.size() - size, data, size);
  };
  for (const uint64_t address : addresses)
    add(&address, 8);
  for (const auto& value : values)
    add(value.data(), value.size());
  return bytes;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const known_case& c : known)
    names.emplace_back(c.name);
  return names;
}

kernel_case make_case(const std::string& name, bool large) {
  for (const known_case& c : known)
    if (name == c.name)
      return c.make(large);
  throw std::invalid_argument(name);
}

} // namespace gristmill::test
