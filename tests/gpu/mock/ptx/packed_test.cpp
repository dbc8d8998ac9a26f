#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <algorithm>
#include <cmath>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

using columns = std::vector<uint32_t>;

/// Compares one instruction with a function of its operands, on edge values and random ones.
template <class F>
void check_three(const std::string& op, F reference) {
  const columns a = interesting<uint32_t>(11), b = shuffled(a, 12), c = shuffled(a, 13);
  const auto d = evaluate<uint32_t>(op + " %d, %a, %b, %c;", a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(op);
    CAPTURE(a[i]);
    CAPTURE(b[i]);
    CAPTURE(c[i]);
    REQUIRE(d[i] == reference(a[i], b[i], c[i]));
  }
}

template <class F>
void check_two(const std::string& op, F reference) {
  const columns a = interesting<uint32_t>(14), b = shuffled(a, 15);
  const auto d = evaluate<uint32_t>(op + " %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(op);
    CAPTURE(a[i]);
    CAPTURE(b[i]);
    REQUIRE(d[i] == reference(a[i], b[i]));
  }
}

int32_t small(uint32_t x, uint32_t i, uint32_t bits, bool is_signed) {
  const int64_t value = x >> (i * bits) & ((1ULL << bits) - 1);
  return static_cast<int32_t>(is_signed && value >> (bits - 1) ? value - (1LL << bits) : value);
}

uint32_t pair(int64_t low, int64_t high) {
  return static_cast<uint32_t>(
    (static_cast<uint64_t>(high) & 0xffff) << 16 | (static_cast<uint64_t>(low) & 0xffff));
}

} // namespace

TEST_CASE("dp2a adds two products of a half and a byte") {
  for (const bool a_signed : {false, true})
    for (const bool b_signed : {false, true})
      for (const bool upper : {false, true})
        check_three(std::string("dp2a.") + (upper ? "hi." : "lo.") + (a_signed ? "s32." : "u32.")
            + (b_signed ? "s32" : "u32"),
          [&](uint32_t a, uint32_t b, uint32_t c) {
            int64_t sum = c;
            for (uint32_t i = 0; i < 2; ++i)
              sum +=
                int64_t{small(a, i, 16, a_signed)} * small(b, i + (upper ? 2 : 0), 8, b_signed);
            return static_cast<uint32_t>(sum);
          });
}

TEST_CASE("vabsdiff takes the differences of the parts, alone or summed up") {
  for (const uint32_t bits : {8U, 16U})
    for (const bool is_signed : {false, true})
      for (const bool sums : {false, true})
        check_three("vabsdiff" + std::to_string(32 / bits)
            + (is_signed ? ".u32.s32.s32" : ".u32.u32.u32") + (sums ? ".add" : ""),
          [&](uint32_t a, uint32_t b, uint32_t c) {
            uint32_t sum = c;
            uint32_t parts = 0;
            for (uint32_t i = 0; i < 32 / bits; ++i) {
              const auto by = static_cast<uint32_t>(
                std::abs(small(a, i, bits, is_signed) - small(b, i, bits, is_signed)));
              sum += by;
              parts |= by << (i * bits);
            }
            return sums ? sum : parts;
          });
}

TEST_CASE("packed integers are added and ordered part by part") {
  const auto parts = [](bool is_signed, auto f) {
    return [=](uint32_t a, uint32_t b) {
      const auto one = [&](uint32_t i) -> int64_t {
        return f(small(a, i, 16, is_signed), small(b, i, 16, is_signed));
      };
      return pair(one(0), one(1));
    };
  };
  const auto least = [](int a, int b) { return std::min(a, b); };
  const auto most = [](int a, int b) { return std::max(a, b); };
  check_two("add.u16x2", parts(false, [](int a, int b) { return a + b; }));
  check_two("min.u16x2", parts(false, least));
  check_two("min.s16x2", parts(true, least));
  check_two("max.u16x2", parts(false, most));
  check_two("max.s16x2", parts(true, most));
  check_two("max.relu.s16x2", parts(true, [](int a, int b) { return std::max({a, b, 0}); }));
  check_two(
    "min.relu.s16x2", parts(true, [](int a, int b) { return std::max(std::min(a, b), 0); }));
}

TEST_CASE("mul24.hi and mad.hi.sat keep the upper part of exact products") {
  check_two("mul24.hi.u32", [](uint32_t a, uint32_t b) {
    return static_cast<uint32_t>((uint64_t{a & 0xffffff} * (b & 0xffffff)) >> 16);
  });
  check_three("mad.hi.sat.s32", [](uint32_t a, uint32_t b, uint32_t c) {
    const int64_t product = int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b) >> 32;
    return static_cast<uint32_t>(static_cast<int32_t>(
      std::clamp<int64_t>(product + static_cast<int32_t>(c), INT32_MIN, INT32_MAX)));
  });
}

TEST_CASE("the carry after a subtraction is set when nothing was borrowed, also for sums") {
  const columns a{5, 5, 0, UINT32_MAX}, b{3, 7, 0, 1};
  const auto kept = evaluate<uint32_t>("sub.cc.u32 %q, %a, %b; addc.u32 %d, 0, 0;", a, b);
  CHECK(kept == columns{1, 0, 1, 1});
  const auto mixed = evaluate<uint32_t>("add.cc.u32 %q, %a, %b; subc.u32 %d, %a, %b;", a, b);
  CHECK(mixed == columns{1, UINT32_MAX - 2, UINT32_MAX, UINT32_MAX - 1});
}

TEST_CASE("fns finds the n-th set bit above or below a position") {
  const columns mask{0xb, 0xb, 0xb, 0xb, 0x80000001, 0x80000001, 0, 0xb};
  const columns base{0, 0, 3, 2, 31, 0, 5, 1};
  const columns n{
    1, 3, static_cast<uint32_t>(-1), static_cast<uint32_t>(-2), static_cast<uint32_t>(-2), 2, 1, 0};
  const auto d = evaluate<uint32_t>("fns.b32 %d, %a, %b, %c;", mask, base, n);
  CHECK(d == columns{0, 3, 3, 0, 0, 31, UINT32_MAX, 1});
}

TEST_CASE("xorsign.abs orders magnitudes and gives them the product of the signs") {
  const auto a = interesting<float>(16);
  const auto b = shuffled(a, 17);
  const auto d = evaluate<float>("max.xorsign.abs.f32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i]))
      continue;
    const float magnitude = std::max(std::fabs(a[i]), std::fabs(b[i]));
    REQUIRE(raw(d[i]) == raw(std::signbit(a[i]) != std::signbit(b[i]) ? -magnitude : magnitude));
  }
}

TEST_CASE("floats become 16-bit floats in each direction of rounding") {
  const auto a = interesting<float>(18);
  const auto widened_half = [](uint16_t h) {
    const int exponent = h >> 10 & 31;
    const double fraction = h & 1023;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24)
      : exponent == 31                     ? HUGE_VAL
                                           : std::ldexp(fraction + 1024, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
  };
  const auto down = evaluate<uint16_t>("cvt.rm.f16.f32 %d, %a;", a);
  const auto up = evaluate<uint16_t>("cvt.rp.f16.f32 %d, %a;", a);
  const auto brain_down = evaluate<uint16_t>("cvt.rm.bf16.f32 %d, %a;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]))
      continue;
    CAPTURE(a[i]);
    const double x = a[i];
    const double low = widened_half(down[i]);
    const double high = widened_half(up[i]);
    REQUIRE(low <= x);
    REQUIRE(high >= x);
    // Equal where the value is one of the format, and neighbours otherwise.
    const auto step = [&](uint16_t h) { return h & 0x8000 ? 0x8000 - h : h; };
    REQUIRE(step(up[i]) - step(down[i]) == (low == x && high == x ? 0 : 1));
    const float brain = std::bit_cast<float>(uint32_t{brain_down[i]} << 16);
    REQUIRE(brain <= a[i]);
  }
}

TEST_CASE("64-bit integers become bf16 with one rounding") {
  // Halfway between two values but for the lowest bit, which double precision would lose.
  const std::vector<int64_t> a{(257LL << 54) + 1, (257LL << 54), -(257LL << 54) - 1, 1, 0, -3};
  const auto d = evaluate<uint16_t>("cvt.rn.bf16.s64 %d, %a;", a);
  const auto value = [&](size_t i) { return std::bit_cast<float>(uint32_t{d[i]} << 16); };
  CHECK(value(0) == std::ldexp(258.0F, 54));
  CHECK(value(1) == std::ldexp(256.0F, 54));
  CHECK(value(2) == -std::ldexp(258.0F, 54));
  CHECK(value(3) == 1);
  CHECK(value(4) == 0);
  CHECK(value(5) == -3);
}

TEST_CASE("a product with infinity keeps its sign in 16-bit floats") {
  const std::vector<uint16_t> a{0x7c00, 0x7c00, 0xfc00, 0x7c00}, b{0xdd11, 0x3c00, 0xbc00, 0};
  const auto d = evaluate<uint16_t>("mul.f16 %d, %a, %b;", a, b);
  CHECK(d == std::vector<uint16_t>{0xfc00, 0x7c00, 0x7c00, 0x7fff});
}

TEST_CASE("values of 8 and of 128 bits move whole") {
  const std::vector<uint32_t> a{0x04030201, 0xfffefdfc};
  const auto swapped = evaluate<uint32_t>(
    ".reg .b8 %x, %y, %z, %w; mov.b32 {%x, %y, %z, %w}, %a; mov.b32 %d, {%w, %z, %y, %x};", a);
  CHECK(swapped == std::vector<uint32_t>{0x01020304, 0xfcfdfeff});
  const std::vector<uint64_t> low{1, 2}, high{3, 4};
  const auto moved = evaluate<uint64_t>(
    ".reg .b128 %x, %y; mov.b128 %x, {%a, %b}; mov.b128 %y, %x; mov.b128 {_, %d}, %y;", low, high);
  CHECK(moved == high);
}

TEST_CASE("atomics of 128 bits compare and exchange both halves at once") {
  alignas(16) std::vector<uint64_t> memory{1, 2, 0, 0};
  setup s;
  s.block(1).buffer(memory);
  must_pass(s.run(entry(R"(
    .reg .b128 %x, %y, %z; .reg .b64 %lo, %hi; ld.param.u64 %rd1, [p0];
    mov.b64 %lo, 1; mov.b64 %hi, 2; mov.b128 %x, {%lo, %hi};
    mov.b64 %lo, 7; mov.b64 %hi, 8; mov.b128 %y, {%lo, %hi};
    atom.global.cas.b128 %z, [%rd1], %x, %y;
    atom.global.exch.b128 %z, [%rd1], %x;
    mov.b128 {%lo, %hi}, %z; st.global.v2.b64 [%rd1+16], {%lo, %hi};)")));
  CHECK(memory == std::vector<uint64_t>{1, 2, 7, 8});
}

TEST_CASE("vector atomics give the old values back") {
  std::vector<float> memory{1, 2, 3, 4, 0, 0, 0, 0};
  setup s;
  s.block(1).buffer(memory);
  must_pass(s.run(entry(R"(
    ld.param.u64 %rd1, [p0]; mov.f32 %f5, 0f41200000;
    atom.global.add.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1], {%f5,%f5,%f5,%f5};
    st.global.v4.f32 [%rd1+16], {%f1,%f2,%f3,%f4};)")));
  CHECK(memory == std::vector<float>{11, 12, 13, 14, 1, 2, 3, 4});
}

namespace {

const char* const pointers = R"(
  .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x]; add.s32 %v, %v, %v;
    st.param.b32 [r], %v; ret; }
  .func (.param .b32 r) next(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x]; add.s32 %v, %v, 1;
    st.param.b32 [r], %v; ret; }
  .global .align 8 .u64 table[2] = {twice, next};)";

outcome call_through(std::vector<uint32_t>& out, uint32_t entries) {
  setup s;
  s.block(32).buffer(out);
  const std::string body = "mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, " + std::to_string(entries)
    + R"(; mov.u64 %rd1, table; mad.wide.u32 %rd2, %r2, 8, %rd1; mov.u64 %rd3, 16;
    setp.lt.u32 %p1, %r2, 2; @%p1 ld.global.u64 %rd3, [%rd2];
    P: .callprototype (.param .b32 _) _ (.param .b32 _);
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), %rd3, (a), P;
      ld.param.b32 %r4, [b]; }
    ld.param.u64 %rd5, [p0]; mad.wide.u32 %rd5, %r1, 4, %rd5; st.global.b32 [%rd5], %r4;)";
  return s.run(std::string(head) + pointers + entry(body).substr(head.size()));
}

} // namespace

TEST_CASE("an indirect call reaches the function whose address each lane has") {
  std::vector<uint32_t> out(32);
  must_pass(call_through(out, 2));
  for (uint32_t l = 0; l < 32; ++l)
    CHECK(out[l] == (l % 2 ? l + 1 : 2 * l));
}

TEST_CASE("an indirect call of what is no function is a fault that says so") {
  std::vector<uint32_t> out(32);
  const outcome result = call_through(out, 3);
  REQUIRE(result.failed);
  CHECK(result.failed->what.find("indirect call of 0x10") != std::string::npos);
  CHECK(result.failed->thread[0] == 2);
}
