#include "gpu/mock/ptx/ptx.hpp"
#include "tests/gpu/toolchain/compile_fixture.hpp"

#include <algorithm>

using namespace gristmill;
using namespace gristmill::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a PATH without clang says which package has it") {
  const auto found = find_clang("/nonexistent:relative");
  REQUIRE_FALSE(found);
  CHECK(found.error().code == errc::not_found);
  CHECK(contains(found.error().what, "clang-19"));
  CHECK_FALSE(find_clang(""));
}

TEST_CASE("a source that does not compile shows its first lines and no host path") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const scratch_folder folder;
  auto input = simple_input("__global__ void k() {\n  int x = nothing;\n}\n");
  const auto out = compile_with_clang(input, folder.path(), *clang);
  REQUIRE(out);
  CHECK(out->status == verdict_status::compile_error);
  CHECK(out->log.starts_with("kernel.cu:2:11: error: use of undeclared identifier 'nothing'\n"));
  CHECK(contains(out->log, "int x = nothing;"));
  CHECK_FALSE(contains(out->log, folder.path().string()));
  CHECK_FALSE(contains(out->log, "/"));
}

TEST_CASE("an error inside of a template names no path either") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const scratch_folder folder;
  auto input = simple_input("__global__ void k() { float a = fmaxf(\"x\", 1.f); }\n");
  const auto out = compile_with_clang(input, folder.path(), *clang);
  REQUIRE(out);
  CHECK(out->status == verdict_status::compile_error);
  CHECK_FALSE(contains(out->log, folder.path().string()));
  CHECK_FALSE(contains(out->log, "/usr"));
}

TEST_CASE("a flood of errors is cut") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  std::string source;
  for (int i = 0; i < 2000; ++i)
    source += "int " + std::string(200, 'x') + std::to_string(i) + " = nothing;\n";
  const auto out = compile_or_fail(simple_input(source), *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log.size() <= 8192 + 64);
  CHECK(std::count(out.log.begin(), out.log.end(), '\n') <= 41);
}

TEST_CASE("the same input gives the same PTX in any folder") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input(R"(
__device__ static int hidden;
__global__ void k(float* y) { assert(y[0] > 0); y[1] = sinf(y[2]); hidden = 1; })");
  input.unit.entries[0] = {"k", {"float*"}, {"y"}, {false}};
  const auto first = compile_or_fail(input, *clang);
  const auto second = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(first.status == verdict_status::passed, first.log);
  CHECK(first.ptx == second.ptx);
}

TEST_CASE("defines reach the source and the entry expression") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input(
    "template <int n, class Type> __global__ void k(Type* y) { y[0] = n + N; }", "k<N, T>");
  input.unit.defines = {{"N", "17"}, {"T", "double"}};
  input.unit.entries[0] = {"k<N, T>", {"double*"}, {"y"}, {false}};
  const auto out = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(out.status == verdict_status::passed, out.log);
  CHECK(contains(out.entries[0].symbol, "ILi17Ed"));
}

TEST_CASE("memory that is written as one type may be read as another, as with nvcc") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out =
    compile_or_fail(simple_input("__device__ int a[1]; __device__ float* b; __device__ int seen;\n"
                                 "__global__ void k() { a[0] = 1; *b = 2.0f; seen = a[0]; }\n"),
      *clang);
  REQUIRE(out.status == verdict_status::passed);
  // `b` may point to `a`, so that `a` is read again.
  CHECK(contains(out.ptx, "ld.global.u32"));
}

TEST_CASE("two entries of one unit both get their symbols") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input("__global__ void a() {}\nextern \"C\" __global__ void b(int) {}", "a");
  input.unit.entries.push_back({"b", {"int32_t"}, {"n"}, {false}});
  const auto out = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(out.status == verdict_status::passed, out.log);
  REQUIRE(out.entries.size() == 2);
  CHECK(out.entries[0].symbol == "_Z1av");
  CHECK(out.entries[1].symbol == "b");
}

TEST_CASE("fast_math changes the code, and newer GPUs get the newest code that clang makes") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input =
    simple_input("__global__ void k(float* y) { y[0] = y[1] / y[2]; y[3] = expf(y[4]); }");
  input.unit.entries[0] = {"k", {"float*"}, {"y"}, {false}};
  const auto exact = compile_or_fail(input, *clang);
  CHECK(contains(exact.ptx, "div.rn.f32"));
  input.options.fast_math = true;
  const auto fast = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(fast.status == verdict_status::passed, fast.log);
  CHECK_FALSE(contains(fast.ptx, "div.rn.f32"));
  CHECK(contains(fast.ptx, ".ftz"));
  input.arch = "sm_100a";
  const auto newer = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(newer.status == verdict_status::passed, newer.log);
  CHECK(contains(newer.ptx, ".target sm_90a"));
  input.arch = "sm_80";
  const auto older = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(older.status == verdict_status::passed, older.log);
  CHECK(contains(older.ptx, ".target sm_80"));
}

TEST_CASE("a compiler that takes too long is ended, and that is the candidate's error") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const scratch_folder folder;
  auto input = simple_input(R"(
template <int n> struct bomb { static constexpr int value = bomb<n - 1>::value + bomb<n - 2>::value; };
template <int n, int m> __device__ int grow() {
  if constexpr (n == 0) return m; else return grow<n - 1, 2 * m>() + grow<n - 1, 2 * m + 1>();
}
__global__ void k(int* y) { y[0] = grow<18, 0>(); }
)");
  input.unit.entries[0] = {"k", {"int32_t*"}, {"y"}, {false}};
  const auto out = compile_with_clang(input, folder.path(), *clang, std::chrono::milliseconds(300));
  REQUIRE(out);
  CHECK(out->status == verdict_status::compile_error);
  CHECK(contains(out->log, "not done within 300 ms"));
}

TEST_CASE("the cache key depends on everything that decides the result and on nothing else") {
  const clang_command clang{"/usr/bin/clang++-19", "clang-19.1.7"};
  const auto input = simple_input("__global__ void k() {}");
  const std::string key = cache_key(input, clang);
  CHECK(key.size() == 64);
  CHECK(cache_key(input, {"/elsewhere/clang++-19", "clang-19.1.7"}) == key);
  CHECK(cache_key(input, {"/usr/bin/clang++-19", "clang-19.1.8"}) != key);
  auto other = input;
  other.source += " ";
  CHECK(cache_key(other, clang) != key);
  other = input;
  other.arch = "sm_80";
  CHECK(cache_key(other, clang) != key);
  other = input;
  other.options.fast_math = true;
  CHECK(cache_key(other, clang) != key);
  other = input;
  other.options.max_registers = 64;
  CHECK(cache_key(other, clang) != key);
  other = input;
  other.unit.defines = {{"A", "1"}};
  CHECK(cache_key(other, clang) != key);
  other = input;
  other.unit.entries[0].expression = "l";
  CHECK(cache_key(other, clang) != key);
  other = input;
  other.unit.key = "another name for the same unit";
  CHECK(cache_key(other, clang) == key);
}
