// A kernel for sm_100a by both compilers, on the mock B200. Unverified on hardware; from NVRTC the
// vendor's assembler has taken it.

#include "gpu/mock/mock_device.hpp"
#include "tests/gpu/toolchain/compile_fixture.hpp"
#include "tests/gpu/toolchain/nvrtc_fixture.hpp"

#include <cstring>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

constexpr size_t m = 128, n = 128, k = 192;

/// Small whole numbers, exact in bfloat16.
int element(size_t row, size_t depth) {
  return static_cast<int>((row * 5 + depth * 3 + row * depth) % 7) - 3;
}

uint16_t bfloat(int x) {
  const auto value = static_cast<float>(x);
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>(bits >> 16);
}

template <class Compiler>
void check_product(const Compiler& with) {
  const auto source = source_file("tests/corpus/blackwell/gemm_tcgen05.cu");
  if (!source)
    return;
  auto input = simple_input(*source, "gemm_tcgen05");
  input.arch = "sm_100a";
  input.unit.entries[0] = {"gemm_tcgen05",
    {"const __nv_bfloat16*", "const __nv_bfloat16*", "float*", "int", "int"},
    {"a", "b", "c", "n", "k"}, {true, true, false, false, false}};
  const auto compiled = compile_or_fail(input, with);
  REQUIRE_MESSAGE(compiled.status == verdict_status::passed, compiled.log);
  auto device = make_mock_device({*profile("b200"), 10'000'000, {}});
  const auto module = device->load_module(compiled.ptx);
  REQUIRE_MESSAGE(module, (module ? "" : module.error().what));
  const auto function = device->find_function(*module, compiled.entries[0].symbol);
  REQUIRE(function);
  std::vector<uint16_t> a(m * k), b(n * k);
  for (size_t depth = 0; depth < k; ++depth) {
    for (size_t row = 0; row < m; ++row)
      a[row * k + depth] = bfloat(element(row, depth));
    for (size_t column = 0; column < n; ++column)
      b[column * k + depth] = bfloat(element(column + 1, depth));
  }
  std::vector<float> c(m * n);
  std::vector<uint64_t> at;
  for (const size_t bytes : {a.size() * 2, b.size() * 2, c.size() * 4}) {
    const auto base = device->allocate(bytes, "buffer");
    REQUIRE(base);
    at.push_back(*base);
  }
  REQUIRE(device->copy_in(at[0], std::as_bytes(std::span(a))));
  REQUIRE(device->copy_in(at[1], std::as_bytes(std::span(b))));
  std::vector<uint8_t> parameters(32);
  std::memcpy(parameters.data(), at.data(), 24);
  const int sizes[2] = {n, k};
  std::memcpy(parameters.data() + 24, sizes, 8);
  launch_shape shape;
  shape.grid = {n / 64, m / 128, 1};
  shape.block = {128, 1, 1};
  const auto report = device->launch(*function, shape, parameters);
  REQUIRE_MESSAGE(report, (report ? "" : report.error().what));
  REQUIRE_MESSAGE(!report->fault, report->fault->what);
  REQUIRE(device->copy_out(std::as_writable_bytes(std::span(c)), at[2]));
  size_t wrong = 0;
  for (size_t row = 0; row < m; ++row)
    for (size_t column = 0; column < n; ++column) {
      int sum = 0;
      for (size_t depth = 0; depth < k; ++depth)
        sum += element(row, depth) * element(column + 1, depth);
      wrong += c[row * n + column] != static_cast<float>(sum);
    }
  CHECK(wrong == 0);
}

} // namespace

TEST_CASE("a product by tcgen05.mma gives its reference's numbers from clang and from NVRTC") {
  if (const auto clang = clang_or_skip())
    check_product(*clang);
  // Older ones do not know sm_100a, see real_architecture.
  if (const auto nvrtc = nvrtc_or_skip(); nvrtc && nvrtc->version >= "nvrtc-13")
    check_product(*nvrtc);
}
