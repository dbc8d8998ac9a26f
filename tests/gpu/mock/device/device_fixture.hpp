#pragma once

#include "gpu/mock/mock_device.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "tests/gpu/kernel_parameters.hpp"

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

namespace gristmill::test {

/// y[i] = 2 * x[i] for i < n, and for the block's index: a counter in global memory.
constexpr const char* doubling = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 launches;
.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mul.wide.s32 %rd5, %r5, 4;
  add.s64 %rd6, %rd3, %rd5;
  ld.global.f32 %f1, [%rd6];
  add.f32 %f2, %f1, %f1;
  add.s64 %rd7, %rd4, %rd5;
  st.global.f32 [%rd7], %f2;
done:
  ret;
}
.visible .entry count()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, launches;
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
.visible .entry forever()
{
again:
  bra again;
}
.visible .entry few() .maxntid 64, 1, 1
{
  ret;
}
)";

inline std::unique_ptr<device> new_device(uint64_t instruction_limit = 10'000'000) {
  return make_mock_device({*profile("h200"), instruction_limit, {}});
}

using gristmill::parameters;

inline launch_shape line_of(uint32_t blocks, uint32_t threads) {
  launch_shape shape;
  shape.grid = {blocks, 1, 1};
  shape.block = {threads, 1, 1};
  return shape;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}

template <class T>
const T& good(const result<T>& r) {
  REQUIRE_MESSAGE(r, (r ? std::string() : r.error().what));
  return *r;
}

} // namespace gristmill::test
