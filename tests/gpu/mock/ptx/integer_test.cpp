#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <algorithm>

using namespace gristmill::ptx::testing;

namespace {

/// Checks `op.type d, a, b` against `reference` on all rows.
template <class T, class F>
void check_binary(const std::string& op, F reference) {
  const auto a = interesting<T>(1);
  const auto b = shuffled(interesting<T>(2), 3);
  const auto d = evaluate<T>(op + " %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(op);
    CAPTURE(a[i]);
    CAPTURE(b[i]);
    REQUIRE(d[i] == static_cast<T>(reference(a[i], b[i])));
  }
}

template <class D, class T, class F>
void check_unary(const std::string& op, F reference) {
  const auto a = interesting<T>(4);
  const auto d = evaluate<D>(op + " %d, %a;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(op);
    CAPTURE(a[i]);
    REQUIRE(d[i] == static_cast<D>(reference(a[i])));
  }
}

template <class T>
std::string typed(const std::string& op) {
  return op + (std::is_signed_v<T> ? ".s" : ".u") + std::to_string(8 * sizeof(T));
}

template <class T>
void check_arithmetic() {
  using U = std::make_unsigned_t<T>;
  const auto u = [](T x) { return static_cast<U>(x); };
  __extension__ using wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  check_binary<T>(typed<T>("add"), [&](T a, T b) { return static_cast<T>(u(a) + u(b)); });
  check_binary<T>(typed<T>("sub"), [&](T a, T b) { return static_cast<T>(u(a) - u(b)); });
  check_binary<T>(typed<T>("mul.lo"),
    [&](T a, T b) { return static_cast<T>(static_cast<wide>(a) * static_cast<wide>(b)); });
  check_binary<T>(typed<T>("mul.hi"), [&](T a, T b) {
    return static_cast<T>((static_cast<wide>(a) * static_cast<wide>(b)) >> (8 * sizeof(T)));
  });
  check_binary<T>(typed<T>("min"), [&](T a, T b) { return std::min(a, b); });
  check_binary<T>(typed<T>("max"), [&](T a, T b) { return std::max(a, b); });
  // The quotient by zero is all ones, as on a GPU; the smallest number by -1 wraps.
  check_binary<T>(typed<T>("div"), [&](T a, T b) {
    return b == 0 ? static_cast<T>(-1) : static_cast<T>(static_cast<wide>(a) / b);
  });
  check_binary<T>(typed<T>("rem"),
    [&](T a, T b) { return b == 0 ? a : static_cast<T>(static_cast<wide>(a) % b); });
}

} // namespace

TEST_CASE("integer arithmetic wraps and orders as its type says") {
  check_arithmetic<int16_t>();
  check_arithmetic<uint16_t>();
  check_arithmetic<int32_t>();
  check_arithmetic<uint32_t>();
  check_arithmetic<int64_t>();
  check_arithmetic<uint64_t>();
}

TEST_CASE("wide products keep all bits") {
  const auto a = interesting<int32_t>(5);
  const auto b = shuffled(a, 6);
  const auto s = evaluate<int64_t>("mul.wide.s32 %d, %a, %b;", a, b);
  const auto u = evaluate<uint64_t>("mul.wide.u32 %d, %a, %b;", a, b);
  const auto m =
    evaluate<int64_t>("mul.wide.s32 %rd5, %a, %b; mad.wide.s32 %d, %a, %b, %rd5;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(s[i] == int64_t{a[i]} * b[i]);
    REQUIRE(u[i] == uint64_t{static_cast<uint32_t>(a[i])} * static_cast<uint32_t>(b[i]));
    REQUIRE(m[i] == static_cast<int64_t>(2 * static_cast<uint64_t>(s[i])));
  }
}

TEST_CASE("additions and subtractions that saturate stop at the ends of s32") {
  const auto clamp = [](int64_t x) {
    return static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX));
  };
  check_binary<int32_t>("add.sat.s32", [&](int32_t a, int32_t b) { return clamp(int64_t{a} + b); });
  check_binary<int32_t>("sub.sat.s32", [&](int32_t a, int32_t b) { return clamp(int64_t{a} - b); });
}

TEST_CASE("carries run through add.cc, addc, sub.cc, subc and mad.cc") {
  const auto a = interesting<uint64_t>(7);
  const auto b = shuffled(a, 8);
  const std::string split = "mov.b64 {%r4, %r5}, %a; mov.b64 {%r6, %r7}, %b;\n";
  const auto sum = evaluate<uint64_t>(
    split + "add.cc.u32 %r8, %r4, %r6; addc.u32 %r9, %r5, %r7; mov.b64 %d, {%r8, %r9};", a, b);
  const auto difference = evaluate<uint64_t>(
    split + "sub.cc.u32 %r8, %r4, %r6; subc.u32 %r9, %r5, %r7; mov.b64 %d, {%r8, %r9};", a, b);
  const auto product = evaluate<uint64_t>(split
      + "mul.lo.u32 %r8, %r4, %r6; mul.hi.u32 %r9, %r4, %r6; mad.lo.cc.u32 %r8, %r4, %r6, %r8; "
        "madc.hi.u32 %r9, %r4, %r6, %r9; mov.b64 %d, {%r8, %r9};",
    a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(sum[i] == a[i] + b[i]);
    REQUIRE(difference[i] == a[i] - b[i]);
    REQUIRE(
      product[i] == 2 * (uint64_t{static_cast<uint32_t>(a[i])} * static_cast<uint32_t>(b[i])));
  }
}

TEST_CASE("shift amounts beyond the width give zero or the sign") {
  const auto n = shuffled(interesting<uint32_t>(9), 10);
  auto a32 = interesting<int32_t>(11);
  const auto left = evaluate<uint32_t>("shl.b32 %d, %a, %b;", a32, n);
  const auto arithmetic = evaluate<int32_t>("shr.s32 %d, %a, %b;", a32, n);
  const auto logical = evaluate<uint32_t>("shr.u32 %d, %a, %b;", a32, n);
  const auto funnel = evaluate<uint32_t>("shf.l.wrap.b32 %d, %a, %b, %b;", a32, n);
  const auto clamped = evaluate<uint32_t>("shf.r.clamp.b32 %d, %a, %b, %b;", a32, n);
  for (size_t i = 0; i < a32.size(); ++i) {
    const auto u = static_cast<uint32_t>(a32[i]);
    CAPTURE(n[i]);
    REQUIRE(left[i] == (n[i] > 31 ? 0 : u << n[i]));
    REQUIRE(arithmetic[i] == a32[i] >> std::min(n[i], 31U));
    REQUIRE(logical[i] == (n[i] > 31 ? 0 : u >> n[i]));
    const uint64_t both = uint64_t{n[i]} << 32 | u;
    REQUIRE(funnel[i] == static_cast<uint32_t>((both << (n[i] & 31)) >> 32));
    REQUIRE(clamped[i] == static_cast<uint32_t>(both >> std::min(n[i], 32U)));
  }
}

TEST_CASE("bit operations") {
  check_binary<uint32_t>("and.b32", [](uint32_t a, uint32_t b) { return a & b; });
  check_binary<uint64_t>("xor.b64", [](uint64_t a, uint64_t b) { return a ^ b; });
  check_binary<uint16_t>("or.b16", [](uint16_t a, uint16_t b) { return a | b; });
  check_unary<uint32_t, uint32_t>("not.b32", [](uint32_t a) { return ~a; });
  check_unary<uint32_t, uint32_t>("popc.b32", [](uint32_t a) { return std::popcount(a); });
  check_unary<uint32_t, uint64_t>("popc.b64", [](uint64_t a) { return std::popcount(a); });
  check_unary<uint32_t, uint32_t>("clz.b32", [](uint32_t a) { return std::countl_zero(a); });
  check_unary<uint32_t, uint64_t>("clz.b64", [](uint64_t a) { return std::countl_zero(a); });
  check_unary<uint32_t, int32_t>("bfind.s32", [](int32_t a) {
    const auto u = static_cast<uint32_t>(a < 0 ? ~a : a);
    return u == 0 ? -1 : 31 - std::countl_zero(u);
  });
  check_unary<uint32_t, uint32_t>("brev.b32", [](uint32_t a) {
    uint32_t r = 0;
    for (int i = 0; i < 32; ++i)
      r = r << 1 | (a >> i & 1);
    return r;
  });
  check_unary<int32_t, int32_t>("neg.s32", [](int32_t a) { return 0U - static_cast<uint32_t>(a); });
  check_unary<int32_t, int32_t>(
    "abs.s32", [](int32_t a) { return a < 0 ? 0U - static_cast<uint32_t>(a) : a; });
}

TEST_CASE("lop3 computes every table, prmt picks bytes, bfe and bfi move fields") {
  const auto a = interesting<uint32_t>(12);
  const auto b = shuffled(a, 13);
  const auto c = shuffled(a, 14);
  for (const uint32_t table : {0x96U, 0xe8U, 0x01U, 0xfeU, 0x40U, 0xcaU}) {
    const auto d =
      evaluate<uint32_t>("lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";", a, b, c);
    for (size_t i = 0; i < a.size(); ++i)
      for (uint32_t bit = 0; bit < 32; ++bit) {
        const uint32_t k = (a[i] >> bit & 1) * 4 + (b[i] >> bit & 1) * 2 + (c[i] >> bit & 1);
        REQUIRE((d[i] >> bit & 1) == (table >> k & 1));
      }
  }
  const auto p = evaluate<uint32_t>("prmt.b32 %d, %a, %b, %c;", a, b, c);
  const auto e = evaluate<int32_t>("bfe.s32 %d, %a, %b, %c;", a, b, c);
  const auto f = evaluate<uint32_t>("bfi.b32 %d, %a, %b, %c, 5;", a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    uint32_t picked = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t s = c[i] >> (4 * k) & 15;
      const uint32_t byte = (s & 7) < 4 ? a[i] >> (8 * (s & 3)) & 255 : b[i] >> (8 * (s & 3)) & 255;
      picked |= (s & 8 ? (byte & 128 ? 255U : 0U) : byte) << (8 * k);
    }
    REQUIRE(p[i] == picked);
    const uint32_t position = b[i] & 255;
    const uint32_t length = c[i] & 255;
    int64_t field = 0;
    if (length > 0) {
      const int64_t shifted = static_cast<int32_t>(a[i]) >> std::min(position, 31U);
      field = length >= 32 - std::min(position, 31U)
        ? shifted
        : static_cast<int64_t>(static_cast<uint64_t>(shifted) << (64 - length)) >> (64 - length);
    }
    CAPTURE(a[i]);
    CAPTURE(position);
    CAPTURE(length);
    REQUIRE(e[i] == field);
    const uint32_t at = c[i] & 255;
    REQUIRE(f[i] == (at > 31 ? b[i] : (b[i] & ~(31U << at)) | (a[i] & 31) << at));
  }
}

TEST_CASE("dp4a multiplies bytes with their signs") {
  const auto a = interesting<uint32_t>(15);
  const auto b = shuffled(a, 16);
  const auto d = evaluate<int32_t>("dp4a.s32.u32 %d, %a, %b, %a;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    uint32_t sum = a[i];
    for (uint32_t k = 0; k < 4; ++k)
      sum += static_cast<uint32_t>(
        static_cast<int8_t>(a[i] >> (8 * k)) * static_cast<int32_t>(b[i] >> (8 * k) & 255));
    REQUIRE(d[i] == static_cast<int32_t>(sum));
  }
}

TEST_CASE("comparisons set both predicates and combine them; selections follow") {
  const auto a = interesting<int32_t>(17);
  const auto b = shuffled(a, 18);
  const auto lt = evaluate<uint32_t>("setp.lt.s32 %p1|%p2, %a, %b; selp.b32 %r5, 1, 0, %p1; "
                                     "selp.b32 %r6, 2, 0, %p2; or.b32 %d, %r5, %r6;",
    a, b);
  const auto combined = evaluate<uint32_t>(
    "setp.gt.s32 %p3, %a, 0; setp.hi.and.u32 %p1, %a, %b, !%p3; selp.u32 %d, 7, 9, %p1;", a, b);
  const auto set = evaluate<uint32_t>("set.eq.u32.s32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(lt[i] == (a[i] < b[i] ? 1U : 2U));
    const bool hi = static_cast<uint32_t>(a[i]) > static_cast<uint32_t>(b[i]) && !(a[i] > 0);
    REQUIRE(combined[i] == (hi ? 7U : 9U));
    REQUIRE(set[i] == (a[i] == b[i] ? UINT32_MAX : 0));
  }
}
