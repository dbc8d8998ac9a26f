#pragma once

#include "gpu/mock/mock_device.hpp"
#include "tests/gpu/toolchain/compile_fixture.hpp"
#include "tests/gpu/toolchain/nvrtc_fixture.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace gristmill::test {

/// Runs `body` in one block of `threads` threads with `float* out` and gives back what it wrote.
/// `Compiler`: `clang_command` or `nvrtc_command`.
template <class Compiler>
std::vector<float> run_block(const Compiler& with, const std::string& body, size_t count,
  const std::string& before = {}, uint32_t threads = 32) {
  auto input = simple_input(before
    + "\n__global__ void k(float* out) {\n"
      "const int lane = static_cast<int>(threadIdx.x);\n"
    + body + "\n}\n");
  input.unit.entries[0] = {"k", {"float*"}, {"out"}, {false}};
  const auto compiled = compile_or_fail(input, with);
  REQUIRE_MESSAGE(compiled.status == verdict_status::passed, compiled.log);
  auto device = make_mock_device({*profile("h200"), 10'000'000, {}});
  const auto module = device->load_module(compiled.ptx);
  REQUIRE_MESSAGE(module, (module ? "" : module.error().what));
  const auto function = device->find_function(*module, compiled.entries[0].symbol);
  REQUIRE(function);
  std::vector<float> out(count);
  const auto base = device->allocate(count * 4, "out");
  REQUIRE(base);
  std::vector<uint8_t> parameters(8);
  std::memcpy(parameters.data(), &*base, 8);
  launch_shape shape;
  shape.block = {threads, 1, 1};
  const auto report = device->launch(*function, shape, parameters);
  REQUIRE_MESSAGE(report, (report ? "" : report.error().what));
  REQUIRE_MESSAGE(!report->fault, report->fault->what);
  REQUIRE(device->copy_out(std::as_writable_bytes(std::span(out)), *base));
  return out;
}

/// Each line "EXPRESSION" is computed by lane 0 and must be near its number.
struct expectation {
  const char* expression;
  double value;
  double tolerance = 1e-6;
};

inline void check_all(
  const clang_command& clang, const std::vector<expectation>& all, const std::string& before = {}) {
  std::string body = "if (lane == 0) {\n";
  for (size_t i = 0; i < all.size(); ++i)
    body += "out[" + std::to_string(i) + "] = static_cast<float>(" + all[i].expression + ");\n";
  // Opaque to the optimiser, so that the instruction itself is what runs.
  const auto out = run_block(clang,
    "volatile float f1 = 1.5f, f2 = -2.25f, f3 = 0.3f; volatile int i1 = 12, i2 = -7;"
    "volatile unsigned u1 = 0xf0f01234u; volatile double d1 = 0.75;"
    "float a = f1, b = f2, c = f3; int i = i1, j = i2; unsigned u = u1; double d = d1;"
    "(void)a; (void)b; (void)c; (void)i; (void)j; (void)u; (void)d;\n"
      + body + "}",
    all.size(), before);
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(std::string(all[i].expression));
    if (std::isfinite(all[i].value))
      CHECK(std::fabs(out[i] - all[i].value) <= all[i].tolerance * (1 + std::fabs(all[i].value)));
    else
      CHECK(out[i] == static_cast<float>(all[i].value));
  }
}

} // namespace gristmill::test
