#include "tests/gpu/toolchain/compile_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

namespace {

constexpr const char* scale_source = R"(
template <class T> __global__ void scale(const T* x, T* y, int count, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = static_cast<float>(x[i]) * factor;
}
)";

compile_input scale_input() {
  compile_input input = simple_input(scale_source, "scale<T>");
  input.unit.defines = {{"T", "__nv_bfloat16"}};
  entry_use& entry = input.unit.entries[0];
  entry.parameter_abi = {"const __nv_bfloat16*", "__nv_bfloat16*", "int32_t", "float"};
  entry.argument_names = {"x", "y", "M", "eps"};
  entry.parameter_const = {true, false, false, false};
  return input;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a kernel that takes what the plan passes is compiled, and its symbol is told") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = compile_or_fail(scale_input(), *clang);
  REQUIRE_MESSAGE(out.status == verdict_status::passed, out.log);
  REQUIRE(out.entries.size() == 1);
  CHECK(out.entries[0].expression == "scale<T>");
  CHECK(out.entries[0].symbol.starts_with("_Z5scale"));
  CHECK(contains(out.ptx, ".entry " + out.entries[0].symbol));
  CHECK_FALSE(contains(out.ptx, "gristmill_entry"));
}

TEST_CASE("a scalar of another type is an error that names the argument and both types") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = scale_input();
  input.source = R"(
template <class T> __global__ void scale(const T* x, T* y, int count, int factor) { y[0] = x[0]; }
)";
  const auto out = compile_or_fail(input, *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log
    == "error: argument 4 'eps' of entry 'scale<T>': the launch plan passes f32, the "
       "kernel takes int\n");
  CHECK(out.ptx.empty());
}

TEST_CASE("integers of another width or sign are not converted silently") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  for (const auto& [type, word] :
    {std::pair{"int64_t", "i64"}, {"uint32_t", "u32"}, {"bool", "b8"}}) {
    auto input = scale_input();
    input.unit.entries[0].parameter_abi[2] = type;
    const auto out = compile_or_fail(input, *clang);
    CHECK(out.status == verdict_status::compile_error);
    CHECK(contains(out.log,
      std::string("argument 3 'M' of entry 'scale<T>': the launch plan passes ") + word
        + ", the kernel takes int"));
  }
}

TEST_CASE("long and long long are the same argument") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input("__global__ void k(long a, long long b, int64_t c, size_t d) {}");
  input.unit.entries[0] = {"k", {"int64_t", "int64_t", "int64_t", "uint64_t"}, {"a", "b", "c", "d"},
    {false, false, false, false}};
  const auto out = compile_or_fail(input, *clang);
  CHECK_MESSAGE(out.status == verdict_status::passed, out.log);
}

TEST_CASE("a wrong number of arguments is an error with both numbers and the plan's names") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto fewer = scale_input();
  entry_use& entry = fewer.unit.entries[0];
  entry.parameter_abi.pop_back();
  entry.argument_names.pop_back();
  entry.parameter_const.pop_back();
  const auto out = compile_or_fail(fewer, *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log
    == "error: entry 'scale<T>': the launch plan passes 3 arguments (x, y, M), the kernel "
       "takes 4\n");

  auto more = scale_input();
  more.unit.entries[0].parameter_abi.emplace_back("double");
  more.unit.entries[0].argument_names.emplace_back("slope");
  more.unit.entries[0].parameter_const.push_back(false);
  const auto out_more = compile_or_fail(more, *clang);
  CHECK(out_more.status == verdict_status::compile_error);
  CHECK(contains(out_more.log, "passes 5 arguments (x, y, M, eps, slope), the kernel takes 4"));
}

TEST_CASE("a pointer where the plan passes a scalar, and the other way round, is an error") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = scale_input();
  input.unit.entries[0].parameter_abi[3] = "float*";
  auto out = compile_or_fail(input, *clang);
  CHECK(out.log
    == "error: argument 4 'eps' of entry 'scale<T>': the launch plan passes a pointer, the "
       "kernel takes float\n");
  input = scale_input();
  input.unit.entries[0].parameter_abi[1] = "int64_t";
  out = compile_or_fail(input, *clang);
  CHECK(out.log
    == "error: argument 2 'y' of entry 'scale<T>': the launch plan passes i64, the kernel "
       "takes a pointer\n");
}

TEST_CASE("an input goes only to a pointer to const; an output may, any element type may") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = scale_input();
  input.unit.entries[0].parameter_const[1] = true;
  auto out = compile_or_fail(input, *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(contains(out.log,
    "argument 2 'y' of entry 'scale<T>': the launch plan passes a read-only "
    "pointer, the kernel takes one that it could write through"));

  auto other = simple_input("__global__ void k(const uint4* x, const float* y) {}");
  other.unit.entries[0] = {"k", {"const float*", "float*"}, {"x", "y"}, {true, false}};
  out = compile_or_fail(other, *clang);
  CHECK_MESSAGE(out.status == verdict_status::passed, out.log);
}

TEST_CASE("a parameter of a type that no argument has is an error") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input("struct pair { int a, b; }; __global__ void k(pair p) {}");
  input.unit.entries[0] = {"k", {"int64_t"}, {"M"}, {false}};
  const auto out = compile_or_fail(input, *clang);
  CHECK(out.log
    == "error: argument 1 'M' of entry 'k': the launch plan passes i64, the kernel takes a "
       "type that no argument has\n");
}

TEST_CASE("an entry that the source does not have is named as the plan's") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input("__global__ void k() {}", "nothing<3>");
  const auto out = compile_or_fail(input, *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log
    == "error: entry 'nothing<3>' of the launch plan: use of undeclared identifier "
       "'nothing'\n");
}

TEST_CASE("an entry that is no kernel is an error") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = compile_or_fail(simple_input("__device__ void k() {}"), *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(contains(out.log, "entry 'k' is not a __global__ function"));
}

TEST_CASE("a second entry that inline PTX opens is a hack, by name") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = compile_or_fail(simple_input(R"(
__global__ void k() { asm volatile("ret;\n}\n.visible .entry evil()\n{\n ret;\n"); }
)"),
    *clang);
  CHECK(out.status == verdict_status::reward_hack);
  CHECK(contains(out.log, "second entry smuggled in by inline PTX: evil"));
  CHECK(out.ptx.empty());
}

TEST_CASE("another kernel of the source that the plan does not use is no hack") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out =
    compile_or_fail(simple_input("__global__ void k() {}\n__global__ void spare() {}"), *clang);
  CHECK_MESSAGE(out.status == verdict_status::passed, out.log);
}

TEST_CASE("assembly outside of functions does not reach the PTX") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = compile_or_fail(
    simple_input("__global__ void k() {}\nasm(\".visible .entry evil() { ret; }\");"), *clang);
  CHECK_FALSE(contains(out.ptx, "evil"));
}

TEST_CASE("a source that swallows the epilogue does not pass") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  for (const char* end : {"\n#if 0\n", "\n/*", "\nnamespace hidden {", "\nR\"x("}) {
    CAPTURE(end);
    const auto out =
      compile_or_fail(simple_input("__global__ void k() {}" + std::string(end)), *clang);
    CHECK(out.status == verdict_status::compile_error);
  }
}

TEST_CASE("redefined words do not switch the check of arguments off") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = scale_input();
  input.source =
    std::string(scale_source) + "\n#define static_assert(...)\n#define gm_of nothing\n";
  input.unit.entries[0].parameter_abi[3] = "int32_t";
  const auto out = compile_or_fail(input, *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(contains(out.log, "the kernel takes float"));
}

TEST_CASE("device memory allocation is refused with what to do instead") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = compile_or_fail(simple_input(R"(
extern "C" __device__ void* malloc(size_t);
__device__ void* kept;
__global__ void k() { kept = malloc(64); }
)"),
    *clang);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(contains(out.log, "scratch in the launch plan"));
}

TEST_CASE("clock registers and writable module variables are findings, constants are not") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input(R"(
__device__ int counter;
__constant__ float table[4] = {1, 2, 3, 4};
__device__ const int fixed[2] = {5, 6};
__global__ void k(float* y) {
  y[0] = static_cast<float>(clock64());
  y[1] = table[threadIdx.x % 4] + static_cast<float>(fixed[threadIdx.x % 2]);
  counter = 1;
}
)");
  input.unit.entries[0] = {"k", {"float*"}, {"y"}, {false}};
  const auto out = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(out.status == verdict_status::passed, out.log);
  std::string all;
  for (const finding& f : out.findings)
    all += f.detail + "\n";
  REQUIRE_MESSAGE(out.findings.size() == 2, all);
  CHECK(out.findings[0].rule == "reads_clock");
  CHECK(contains(out.findings[0].detail, "%clock64"));
  CHECK(out.findings[1].rule == "writable_module_global");
  CHECK(contains(out.findings[1].detail, "'counter'"));
  CHECK_FALSE(out.findings[0].fatal);
}
