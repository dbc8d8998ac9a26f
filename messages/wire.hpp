#pragma once

#include <bit>
#include <cstdint>
#include <utility>

namespace gristmill {

/// A double that travels as its bit pattern. CAF 0.17 loops for ever on an infinite double and
/// turns a NaN into -1, so no message carries a raw one (the layer check refuses it).
struct f64 {
  uint64_t bits = 0;

  f64() = default;
  f64(double value) : bits(std::bit_cast<uint64_t>(value)) {}
  operator double() const { return std::bit_cast<double>(bits); }

  /// Equal bits: a NaN equals itself, +0 differs from -0.
  friend bool operator==(const f64& a, const f64& b) { return a.bits == b.bits; }
};

/// An optional that can be serialised; `T` must have a default value.
template <class T>
struct maybe {
  bool has = false;
  T value{};

  maybe() = default;
  maybe(T x) : has(true), value(std::move(x)) {}
  explicit operator bool() const { return has; }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }

  friend bool operator==(const maybe&, const maybe&) = default;
};

} // namespace gristmill
