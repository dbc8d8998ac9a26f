#include "gpu/children/canary.hpp"

#include <array>
#include <cstring>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr uint32_t threads = 128;

/// data[i] = 3 * data[i] + i, for one block of 128.
constexpr std::string_view kernel = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry canary(.param .u64 data)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  mov.u32 %r3, 3;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  st.global.u32 [%rd4], %r4;
  ret;
}
)";

result<void> wrong(std::string what) {
  return fail(errc::device_fault, std::move(what));
}

} // namespace

result<void> run_canary(device& gpu) {
  std::array<uint32_t, threads> data{};
  for (uint32_t i = 0; i < threads; ++i)
    data[i] = 1000 + 7 * i;
  auto where = gpu.allocate(sizeof data, "canary");
  if (!where)
    return wrong(where.error().what);
  if (auto copied = gpu.copy_in(*where, std::as_bytes(std::span(data))); !copied)
    return wrong(copied.error().what);
  auto module = gpu.load_module(kernel);
  if (!module)
    return wrong(module.error().what);
  auto function = gpu.find_function(*module, "canary");
  if (!function)
    return wrong(function.error().what);
  std::array<uint8_t, sizeof(device_pointer)> parameters{};
  std::memcpy(parameters.data(), &*where, sizeof *where);
  launch_shape shape;
  shape.block = {threads, 1, 1};
  auto launched = gpu.launch(*function, shape, parameters);
  if (!launched)
    return wrong(launched.error().what);
  auto ended = gpu.synchronise();
  if (!ended)
    return wrong(ended.error().what);
  for (const auto* report : {&*launched, &*ended})
    if (report->fault)
      return wrong(report->fault->what);
  if (auto copied = gpu.copy_out(std::as_writable_bytes(std::span(data)), *where); !copied)
    return wrong(copied.error().what);
  for (uint32_t i = 0; i < threads; ++i)
    if (auto expected = 3 * (1000 + 7 * i) + i; data[i] != expected)
      return wrong(fmt::format("element {} is {} instead of {}", i, data[i], expected));
  return {};
}

} // namespace gristmill
