#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>

using namespace gristmill::ptx::testing;

// The references compute exactly, in 113 bits, and round once.
namespace {

__extension__ typedef __float128 exact;
__extension__ typedef _Float16 half;

/// Precision in bits (with the hidden one), smallest normal exponent, largest exponent.
struct format {
  int precision;
  int smallest;
  int largest;
  int shift;
};
constexpr format f16{11, -14, 15, 0};
constexpr format bf16{8, -126, 127, 0};

double decode(uint16_t h, const format& f) {
  const int mantissa_bits = f.precision - 1;
  const int exponent_bits = 15 - mantissa_bits;
  const int field = h >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = h & ((1 << mantissa_bits) - 1);
  const double sign = h & 0x8000 ? -1 : 1;
  if (field == (1 << exponent_bits) - 1)
    return mantissa ? std::nan("") : sign * static_cast<double>(INFINITY);
  if (field == 0)
    return sign * std::ldexp(mantissa, f.smallest - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, field - 1 + f.smallest - mantissa_bits);
}

uint16_t encode(exact x, const format& f, bool negative_zero) {
  const int mantissa_bits = f.precision - 1;
  const int infinity = ((1 << (15 - mantissa_bits)) - 1) << mantissa_bits;
  if (x != x)
    return 0x7fff;
  const bool negative = x < 0 || (x == 0 && negative_zero);
  exact magnitude = x < 0 ? -x : x;
  const auto sign = static_cast<uint16_t>(negative ? 0x8000 : 0);
  if (magnitude == 0)
    return sign;
  int exponent = f.smallest;
  exact scale = 1;
  for (int i = 0; i < -f.smallest; ++i)
    scale /= 2; // 2^smallest
  while (exponent <= f.largest && magnitude >= scale * 2) {
    scale *= 2;
    ++exponent;
  }
  if (exponent > f.largest)
    return static_cast<uint16_t>(sign | infinity);
  exact quantum = scale;
  for (int i = 0; i < mantissa_bits; ++i)
    quantum /= 2;
  const exact units = magnitude / quantum;
  auto whole = static_cast<int64_t>(units);
  const exact rest = units - static_cast<exact>(whole);
  if (rest > 0.5 || (rest == 0.5 && (whole & 1)))
    ++whole;
  const bool normal = whole >= (1 << mantissa_bits);
  const int64_t bits = normal ? (static_cast<int64_t>(exponent - f.smallest + 1) << mantissa_bits)
      + whole - (1 << mantissa_bits)
                              : whole;
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, infinity));
}

template <class F>
void check(const std::string& op, const format& f, F reference) {
  const auto a = interesting<uint16_t>(1);
  const auto b = shuffled(a, 2);
  const auto c = shuffled(a, 3);
  const bool three = op.starts_with("fma");
  const auto d = evaluate<uint16_t>(op + (three ? " %d, %a, %b, %c;" : " %d, %a, %b;"), a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(op);
    CAPTURE(a[i]);
    CAPTURE(b[i]);
    CAPTURE(c[i]);
    const double x = decode(a[i], f), y = decode(b[i], f), z = decode(c[i], f);
    // The sign of a zero comes from arithmetic on doubles, which is exact enough for that.
    const auto [value, zero_sign] = reference(x, y, z);
    REQUIRE(d[i] == encode(value, f, std::signbit(zero_sign)));
  }
}

void check_format(const std::string& type, const format& f) {
  using pair = std::pair<exact, double>;
  check("add." + type, f, [](double x, double y, double) {
    return pair{static_cast<exact>(x) + y, x + y};
  });
  check("sub." + type, f, [](double x, double y, double) {
    return pair{static_cast<exact>(x) - y, x - y};
  });
  check("mul." + type, f, [](double x, double y, double) {
    return pair{static_cast<exact>(x) * y, x * y};
  });
  check("fma.rn." + type, f, [](double x, double y, double z) {
    return pair{static_cast<exact>(x) * y + z, x * y + z};
  });
}

} // namespace

TEST_CASE("f16 arithmetic rounds once") {
  check_format("f16", f16);
}

TEST_CASE("bf16 arithmetic rounds once") {
  check_format("bf16", bf16);
}

TEST_CASE("the two halves of a register are computed apart") {
  const auto a = interesting<uint32_t>(4);
  const auto b = shuffled(a, 5);
  const auto both = evaluate<uint32_t>("fma.rn.bf16x2 %d, %a, %b, %a;", a, b);
  const auto one = evaluate<uint32_t>(
    "mov.b32 {%h1, %h2}, %a; mov.b32 {%h3, %h4}, %b; fma.rn.bf16 %h5, %h1, %h3, %h1; "
    "fma.rn.bf16 %h6, %h2, %h4, %h2; mov.b32 %d, {%h5, %h6};",
    a, b);
  CHECK(both == one);
  const auto max_both = evaluate<uint32_t>("max.f16x2 %d, %a, %b;", a, b);
  const auto max_one =
    evaluate<uint32_t>("mov.b32 {%h1, %h2}, %a; mov.b32 {%h3, %h4}, %b; max.f16 %h5, %h1, %h3; "
                       "max.f16 %h6, %h2, %h4; mov.b32 %d, {%h5, %h6};",
      a, b);
  CHECK(max_both == max_one);
}

TEST_CASE("half comparisons, minima and modifiers") {
  const auto a = interesting<uint16_t>(6);
  const auto b = shuffled(a, 7);
  const auto gt = evaluate<uint32_t>("setp.gt.f16 %p1, %a, %b; selp.b32 %d, 1, 0, %p1;", a, b);
  const auto lesser = evaluate<uint16_t>("min.bf16 %d, %a, %b;", a, b);
  const auto relu = evaluate<uint16_t>("fma.rn.relu.f16 %d, %a, %b, %a;", a, b);
  const auto plain = evaluate<uint16_t>("fma.rn.f16 %d, %a, %b, %a;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(gt[i] == static_cast<uint32_t>(decode(a[i], f16) > decode(b[i], f16)));
    const double x = decode(a[i], bf16), y = decode(b[i], bf16);
    const double got = decode(lesser[i], bf16);
    if (std::isnan(x) && std::isnan(y))
      REQUIRE(std::isnan(got));
    else
      REQUIRE(got == (std::isnan(x) ? y : std::isnan(y) ? x : std::min(x, y)));
    const double v = decode(plain[i], f16);
    REQUIRE(relu[i] == (std::isnan(v) ? 0x7fff : std::signbit(v) ? 0 : plain[i]));
  }
}

TEST_CASE("conversions from and to the 16-bit formats are exact or round to nearest even") {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint16_t>(i);
  const auto wide = evaluate<float>("cvt.f32.f16 %d, %a;", all);
  const auto back = evaluate<uint16_t>("cvt.f32.f16 %f1, %a; cvt.rn.f16.f32 %d, %f1;", all);
  const auto brain = evaluate<float>("cvt.f32.bf16 %d, %a;", all);
  for (size_t i = 0; i < all.size(); ++i) {
    const double want = decode(all[i], f16);
    if (std::isnan(want)) {
      REQUIRE(std::isnan(wide[i]));
      REQUIRE(back[i] == 0x7fff);
    } else {
      REQUIRE(static_cast<double>(wide[i]) == want);
      REQUIRE(back[i] == all[i]);
    }
    const double other = decode(all[i], bf16);
    REQUIRE((std::isnan(other) ? std::isnan(brain[i]) : static_cast<double>(brain[i]) == other));
  }
  auto x = interesting<float>(8);
  numbers random(9);
  for (int i = 0; i < 3000; ++i) // Ties and near ties.
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(
      (random.next() & 0x9fffe000U) | 0x30001000U | (random.next() % 3 == 0 ? 1 : 0))));
  const auto to_half = evaluate<uint16_t>("cvt.rn.f16.f32 %d, %a;", x);
  const auto to_brain = evaluate<uint16_t>("cvt.rn.bf16.f32 %d, %a;", x);
  const auto cut = evaluate<uint16_t>("cvt.rz.f16.f32 %d, %a;", x);
  const auto pair = evaluate<uint32_t>("cvt.rn.bf16x2.f32 %d, %a, 0f3F800000;", x);
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    const auto value = static_cast<exact>(x[i]);
    REQUIRE(to_half[i] == encode(value, f16, std::signbit(x[i])));
    REQUIRE(to_brain[i] == encode(value, bf16, std::signbit(x[i])));
    REQUIRE(pair[i] == (static_cast<uint32_t>(to_brain[i]) << 16 | 0x3f80));
    if (std::isfinite(x[i])) {
      const double down = decode(cut[i], f16);
      REQUIRE(std::fabs(down) <= std::fabs(static_cast<double>(x[i])));
      const double next = decode(static_cast<uint16_t>(cut[i] + 1), f16);
      REQUIRE(std::fabs(next) > std::fabs(static_cast<double>(x[i])));
    }
  }
  const auto d = interesting<double>(10);
  const auto from_double = evaluate<uint16_t>("cvt.rn.f16.f64 %d, %a;", d);
  for (size_t i = 0; i < d.size(); ++i)
    REQUIRE(from_double[i] == encode(static_cast<exact>(d[i]), f16, std::signbit(d[i])));
}
