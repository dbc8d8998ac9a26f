#pragma once

#include "tests/gpu/mock/ptx/setup.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Runs small PTX texts and values through the interpreter.
namespace gristmill::ptx::testing {

constexpr std::string_view head = ".version 8.5\n.target sm_90a\n.address_size 64\n";

inline std::shared_ptr<const module> must_parse(std::string_view text) {
  const auto m = parse(text);
  if (!m) {
    FAIL(m.error().what);
    return nullptr;
  }
  return *m;
}

inline void must_pass(const outcome& result) {
  if (result.failed)
    FAIL(result.failed->what);
}

/// An entry `k(u64 p0, u64 p1, ...)` around a body.
inline std::string entry(std::string_view body, size_t parameters = 1) {
  std::string text(head);
  text += ".visible .entry k(";
  for (size_t i = 0; i < parameters; ++i)
    text += (i ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
  text += ")\n{\n.reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %rd<32>;\n"
          ".reg .f32 %f<32>; .reg .f64 %fd<32>;\n";
  text += body;
  return text + "\nret;\n}\n";
}

template <class T>
std::string bits_type() {
  return ".b" + std::to_string(8 * sizeof(T));
}

/// `instruction` with the registers %d, %a, %b, %c for each row of the columns; also %q, a 32-bit
/// register, and the predicates %p0 to %p3. The last block is filled only in part, so that both the
/// full and the partial warp are exercised.
template <class D, class... S>
std::vector<D> evaluate(const std::string& instruction, const std::vector<S>&... columns) {
  const std::vector<size_t> sizes{columns.size()...};
  const size_t count = sizes.front();
  std::vector<D> out(count);
  const char* const names[] = {"%a", "%b", "%c", "%e"};
  const std::vector<std::string> types{bits_type<S>()...};
  const std::vector<size_t> widths{sizeof(S)...};
  std::string body = ".reg " + bits_type<D>() + " %d; .reg .b32 %q;\n";
  body += "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.s32 %r2, %r0, 96, %r1;\n"
          "setp.ge.u32 %p0, %r2, "
    + std::to_string(count)
    + ";\n@%p0 ret;\n"
      "cvt.u64.u32 %rd0, %r2;\n";
  for (size_t i = 0; i < sizes.size(); ++i) {
    body += ".reg " + types[i] + " " + names[i] + "; ld.param.u64 %rd1, [p" + std::to_string(i + 1)
      + "]; mad.lo.s64 %rd2, %rd0, " + std::to_string(widths[i]) + ", %rd1; ld.global" + types[i]
      + " " + names[i] + ", [%rd2];\n";
  }
  body += instruction;
  body += "\nld.param.u64 %rd1, [p0]; mad.lo.s64 %rd2, %rd0, " + std::to_string(sizeof(D))
    + ", %rd1; st.global" + bits_type<D>() + " [%rd2], %d;\n";
  setup s;
  s.grid(static_cast<uint32_t>((count + 95) / 96)).block(96);
  s.buffer(out);
  (s.buffer(const_cast<std::vector<S>&>(columns), false), ...);
  const outcome result = s.run(entry(body, sizes.size() + 1));
  if (result.failed)
    FAIL(result.failed->what << "\n" << instruction);
  return out;
}

/// Bit patterns at the edges of their type, and random ones; 16-bit types get 700 of them.
template <class T>
std::vector<T> interesting(uint64_t seed) {
  using U = std::conditional_t<sizeof(T) == 2, uint16_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  constexpr U top = U{1} << (8 * sizeof(T) - 1);
  std::vector<U> bits{0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, static_cast<U>(-1), static_cast<U>(-2),
    static_cast<U>(-7), top, static_cast<U>(top - 1), static_cast<U>(top + 1)};
  if constexpr (sizeof(T) == 4)
    for (const U u : {0x3f800000U, 0xbf800000U, 0x7f800000U, 0xff800000U, 0x7fc00000U, 0x7f7fffffU,
           0x00800000U, 0x007fffffU, 0x3f000000U, 0x4b000001U, 0x4f000000U, 0xcf000000U,
           0x477fefffU, 0x477ff000U, 0x33000000U, 0x33000001U, 0x387fc000U, 0x387fe000U})
      bits.push_back(u);
  if constexpr (sizeof(T) == 8)
    for (const U u : {0x3ff0000000000000ULL, 0x7ff0000000000000ULL, 0x7ff8000000000000ULL,
           0x43e0000000000000ULL, 0xc3e0000000000000ULL, 0x3fe0000000000000ULL,
           0x41dfffffffc00000ULL, 0x000fffffffffffffULL, 0x36a0000000000000ULL})
      bits.push_back(u);
  numbers random(seed);
  for (int i = 0; i < (sizeof(T) == 2 ? 700 : 300); ++i)
    bits.push_back(static_cast<U>(random.next() >> (i % 3 ? 0 : random.next() % (8 * sizeof(T)))));
  // Floats of moderate size, which meet each other in sums.
  for (int i = 0; i < 150; ++i) {
    if constexpr (sizeof(T) == 4)
      bits.push_back(std::bit_cast<uint32_t>(100 * random.unit()));
    if constexpr (sizeof(T) == 8)
      bits.push_back(std::bit_cast<uint64_t>(1000.0 * static_cast<double>(random.unit())));
  }
  std::vector<T> result(bits.size());
  std::memcpy(result.data(), bits.data(), bits.size() * sizeof(T));
  return result;
}

/// The same values in another order.
template <class T>
std::vector<T> shuffled(std::vector<T> values, uint64_t seed) {
  numbers random(seed);
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[random.next() % i]);
  return values;
}

template <class T>
auto raw(T x) {
  if constexpr (sizeof(T) == 2)
    return std::bit_cast<uint16_t>(x);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<uint32_t>(x);
  else
    return std::bit_cast<uint64_t>(x);
}

} // namespace gristmill::ptx::testing
