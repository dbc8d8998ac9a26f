// Stand-in for the tests: see README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <tuple>

namespace c10 {

enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, Bool, BFloat16, Float8_e4m3fn, Float8_e5m2,
  Float4_e2m1fn_x2
};

using DeviceIndex = int8_t;

class Device {
public:
  DeviceIndex index() const noexcept;
  bool operator==(const Device& other) const noexcept;
  bool operator!=(const Device& other) const noexcept;
};

class TensorOptions {
public:
  TensorOptions dtype(ScalarType type) const noexcept;
  TensorOptions device(const Device& where) const noexcept;
};

template <class T>
class ArrayRef {
public:
  ArrayRef(const std::initializer_list<T>& list);
};

} // namespace c10

namespace at {

using c10::Device;
using c10::ScalarType;
using c10::TensorOptions;

constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short,
                     kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half,
                     kFloat = ScalarType::Float, kDouble = ScalarType::Double,
                     kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16,
                     kFloat8_e4m3fn = ScalarType::Float8_e4m3fn,
                     kFloat8_e5m2 = ScalarType::Float8_e5m2;

class Tensor {
public:
  Tensor();
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(const Tensor& other);
  ~Tensor();
  bool is_cuda() const;
  bool is_contiguous() const;
  bool defined() const;
  ScalarType scalar_type() const;
  int64_t dim() const;
  int64_t size(int64_t dimension) const;
  size_t nbytes() const;
  void* data_ptr() const;
  Device device() const;
};

Tensor empty(c10::ArrayRef<int64_t> sizes, TensorOptions options = {});
Tensor zeros(c10::ArrayRef<int64_t> sizes, TensorOptions options = {});

} // namespace at

namespace stand_in {

struct module {
  template <class F>
  module& def(const char* name, F&& function);
};

} // namespace stand_in

#define PYBIND11_MODULE(name, variable) void name##_module(stand_in::module& variable)
