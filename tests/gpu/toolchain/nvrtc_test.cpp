#include "tests/gpu/toolchain/nvrtc_fixture.hpp"

#include <algorithm>
#include <map>

using namespace gristmill;
using namespace gristmill::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

compile_input scale_input() {
  compile_input input = simple_input(R"(
template <class U, int WIDTH> __global__ void scale(const U* x, U* y, int count, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = static_cast<float>(x[i]) * factor + WIDTH;
}
)",
    "scale<T, BM>");
  input.unit.defines = {{"T", "__nv_bfloat16"}, {"BM", "128"}};
  entry_use& entry = input.unit.entries[0];
  entry.parameter_abi = {"const __nv_bfloat16*", "__nv_bfloat16*", "int32_t", "float"};
  entry.argument_names = {"x", "y", "M", "eps"};
  entry.parameter_const = {true, false, false, false};
  return input;
}

/// An environment of these variables alone.
auto only(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

} // namespace

TEST_CASE("NVRTC is looked for in the folder of GRISTMILL_CUDA alone when that is set") {
  const auto asked = nvrtc_names(only({{"GRISTMILL_CUDA", "/my/cuda"}, {"CUDA_HOME", "/other"}}));
  REQUIRE_FALSE(asked.empty());
  CHECK(asked.front() == "/my/cuda/lib64/libnvrtc.so.13");
  CHECK(std::all_of(asked.begin(), asked.end(),
    [](const std::string& name) { return name.starts_with("/my/cuda/"); }));

  const auto usual = nvrtc_names(only({{"CUDA_HOME", "/other"}}));
  CHECK(usual.front() == "/other/lib64/libnvrtc.so.13");
  CHECK(usual.back() == "libnvrtc.so.12");
  CHECK(nvrtc_names(only({})).front() == "/usr/local/cuda/lib64/libnvrtc.so.13");
}

TEST_CASE("what is missing is named: the program, the library or its headers") {
  const auto no_program = find_nvrtc("/nonexistent/gristmill-nvrtc", {"libnvrtc.so.13"});
  REQUIRE_FALSE(no_program);
  CHECK(no_program.error().code == errc::not_found);
  CHECK(contains(no_program.error().what, "/nonexistent/gristmill-nvrtc: missing"));

  const auto no_library = find_nvrtc(nvrtc_program(), {"/nonexistent/libnvrtc.so.13"});
  REQUIRE_FALSE(no_library);
  CHECK(contains(no_library.error().what, "libnvrtc.so"));
  CHECK(contains(no_library.error().what, "GRISTMILL_CUDA"));

  // A file of that name that is no library.
  const scratch_folder folder;
  std::filesystem::create_directories(folder.path() / "lib64");
  const auto file = folder.path() / "lib64" / "libnvrtc.so.13";
  std::ofstream(file) << "no library";
  const auto no_elf = find_nvrtc(nvrtc_program(), {file.string()});
  REQUIRE_FALSE(no_elf);
  CHECK(contains(no_elf.error().what, "cannot be used"));
  CHECK(contains(no_elf.error().what, file.string()));

  const auto no_headers = nvrtc_at("gristmill-nvrtc", file.string(), "nvrtc-13.0");
  REQUIRE_FALSE(no_headers);
  CHECK(contains(no_headers.error().what, "cuda_bf16.h"));
}

TEST_CASE("asking for a toolchain that is not there is an error; auto falls back on clang") {
  const auto none = only({{"GRISTMILL_CUDA", "/nonexistent"}, {"PATH", "/nonexistent"}});
  const std::filesystem::path programs = std::filesystem::path(nvrtc_program()).parent_path();
  for (const char* toolchain : {"nvrtc", "clang", "auto"}) {
    CAPTURE(toolchain);
    const auto found = find_device_compiler(toolchain, programs, none);
    REQUIRE_FALSE(found);
    CHECK(found.error().code == errc::not_found);
  }
  const auto both = find_device_compiler("auto", programs, none);
  CHECK(contains(both.error().what, "clang-19"));
  CHECK(contains(both.error().what, "NVRTC"));
  const auto unknown = find_device_compiler("nvrt", programs, none);
  REQUIRE_FALSE(unknown);
  CHECK(contains(unknown.error().what, "nvrtc"));

  if (!clang_or_skip())
    return;
  const char* path = std::getenv("PATH");
  const auto only_clang = only({{"GRISTMILL_CUDA", "/nonexistent"}, {"PATH", path}});
  const auto fallen_back = find_device_compiler("auto", programs, only_clang);
  REQUIRE(fallen_back);
  CHECK_FALSE(fallen_back->is_nvrtc());
}

TEST_CASE("a template is compiled by its name, macros of the plan and all, and assembled") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  CHECK(nvrtc->version.starts_with("nvrtc-1"));
  const auto out = compile_or_fail(scale_input(), *nvrtc);
  REQUIRE_MESSAGE(out.status == verdict_status::passed, out.log);
  REQUIRE(out.entries.size() == 1);
  CHECK(out.entries[0].expression == "scale<T, BM>");
  CHECK(out.entries[0].symbol.starts_with("_Z5scale"));
  CHECK(contains(out.ptx, ".target sm_90a"));
  CHECK(contains(out.ptx, ".entry " + out.entries[0].symbol));
  CHECK(out.findings.empty());
  if (nvrtc->linker.empty()) {
    MESSAGE("SKIPPED: there is no nvJitLink beside NVRTC, so no resource lines");
    return;
  }
  CHECK(out.log.starts_with("resources: " + out.entries[0].symbol + ": "));
  CHECK(contains(out.log, " registers, 0 bytes shared, 0 bytes stack, 0 bytes spilled\n"));
}

TEST_CASE("the same input gives the same output, whatever the folder is called") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  const auto first = compile_or_fail(scale_input(), *nvrtc);
  const auto second = compile_or_fail(scale_input(), *nvrtc);
  CHECK(first.ptx == second.ptx);
  CHECK(first.log == second.log);
}

TEST_CASE("an argument that does not fit is named by NVRTC's words as by clang's") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  auto input = scale_input();
  input.unit.entries[0].parameter_abi[3] = "int32_t";
  auto out = compile_or_fail(input, *nvrtc);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log
    == "error: argument 4 'eps' of entry 'scale<T, BM>': the launch plan passes i32, the kernel "
       "takes float\n");
  CHECK(out.ptx.empty());

  input = scale_input();
  input.unit.entries[0].parameter_const[1] = true;
  out = compile_or_fail(input, *nvrtc);
  CHECK(contains(out.log, "argument 2 'y'"));
  CHECK(contains(out.log, "a read-only pointer"));

  input = scale_input();
  for (int i = 0; i < 2; ++i) {
    input.unit.entries[0].parameter_abi.pop_back();
    input.unit.entries[0].argument_names.pop_back();
    input.unit.entries[0].parameter_const.pop_back();
  }
  out = compile_or_fail(input, *nvrtc);
  CHECK(contains(out.log, "passes 2 arguments (x, y), the kernel takes 4"));
}

TEST_CASE("redefined words do not switch NVRTC's check of arguments off") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  auto input = scale_input();
  input.source += "\n#define static_assert(...)\n#define gm_of nothing\n#define gm_value 14\n";
  input.unit.entries[0].parameter_abi[3] = "int32_t";
  const auto out = compile_or_fail(input, *nvrtc);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(contains(out.log, "the kernel takes float"));
}

TEST_CASE("an unknown entry and one that is no kernel are named as the plan's") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  auto out = compile_or_fail(simple_input("__global__ void k() {}", "nothing<3>"), *nvrtc);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log
    == "error: entry 'nothing<3>' of the launch plan: identifier \"nothing\" is undefined\n");
  out = compile_or_fail(simple_input("__device__ void k() {}"), *nvrtc);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log == "error: entry 'k' is not a __global__ function\n");
}

TEST_CASE("a source that NVRTC refuses shows its line and no host path") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  const auto out = compile_or_fail(
    simple_input("__global__ void k() {\n  int x = nothing;\n  __half h = \"x\";\n}\n"), *nvrtc);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(out.log.starts_with("kernel.cu:2: error: identifier \"nothing\" is undefined\n"));
  CHECK(contains(out.log, "int x = nothing;"));
  CHECK(contains(out.log, "kernel.cu:3: error: "));
  CHECK_FALSE(contains(out.log, "/"));
  CHECK_FALSE(contains(out.log, "detected in the compilation"));
}

TEST_CASE("an include of a host file is refused before NVRTC would show its content") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  for (const char* include : {"#include \"/etc/passwd\"\n", "#include <cub/cub.cuh>\n"}) {
    const auto out =
      compile_or_fail(simple_input(include + std::string("__global__ void k() {}")), *nvrtc);
    CHECK(out.status == verdict_status::compile_error);
    CHECK(contains(out.log, "kernel.cu:1: the header"));
  }
}

TEST_CASE("every header that clang's device code may include is there for NVRTC") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  std::string source;
  const std::string names = device_header_names();
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(", ", at), names.size());
    source += "#include <" + names.substr(at, end - at) + ">\n";
    at = end + 2;
  }
  source += R"(
constexpr int half_of(int x) { return x / 2; }
__global__ void k(int64_t a, uint8_t b, size_t c, float* y, const __half* h, const __nv_bfloat16* f,
  const __nv_fp8_e4m3* e) {
  static_assert(std::is_same_v<std::remove_const_t<const int>, int> && std::is_signed_v<const int>);
  static_assert(std::is_integral_v<unsigned char> && !std::is_integral_v<float>);
  static_assert(std::is_floating_point_v<double> && std::is_pointer_v<int*> && !std::is_const_v<int>);
  y[0] = std::numeric_limits<float>::infinity() + INFINITY + FLT_MAX + CUDART_INF_F + M_PI;
  y[1] = std::max(1.f, y[2]) + std::exp(y[3]) + half_of(b) + INT_MAX + std::numeric_limits<int>::max();
  y[2] = __half2float(h[0]) + __bfloat162float(f[0]) + float(e[0]);
  assert(c > 0);
}
)";
  auto input = simple_input(source);
  input.unit.entries[0] = {"k",
    {"int64_t", "uint8_t", "uint64_t", "float*", "const __half*", "const __nv_bfloat16*",
      "const uint8_t*"},
    {"a", "b", "c", "y", "h", "f", "e"}, {false, false, false, false, true, true, true}};
  for (const char* standard : {"c++17", "c++20"}) {
    input.options.standard = standard;
    const auto out = compile_or_fail(input, *nvrtc);
    CHECK_MESSAGE(out.status == verdict_status::passed, out.log);
    CHECK(out.findings.empty());
  }
}

TEST_CASE("a second entry that inline PTX opens is a hack behind NVRTC, too") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  auto out = compile_or_fail(simple_input(R"(
__global__ void k() { asm volatile("ret;\n}\n.visible .entry evil()\n{\n ret;\n"); }
)"),
    *nvrtc);
  CHECK(out.status == verdict_status::reward_hack);
  CHECK(contains(out.log, "second entry smuggled in by inline PTX: evil"));

  // With the compiler's own marks around it, and the name of a template that was never made.
  out = compile_or_fail(simple_input(R"(
template <int n> __global__ void spare() {}
__global__ void k() {
  asm volatile("// end inline asm\nret;\n}\n.visible .entry _Z5spareILi3EEvv()\n{\n// begin inline asm\n ret;\n");
}
)"),
    *nvrtc);
  CHECK(out.status == verdict_status::reward_hack);
  CHECK(out.ptx.empty());
}

TEST_CASE("other kernels of the source are no hack behind NVRTC, either") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  const auto out = compile_or_fail(simple_input(R"(
__global__ void k() {}
__global__ void spare(float* y, const int* x) { y[0] = x[0]; }
namespace inner { __global__ void other() {} }
namespace { __global__ void hidden() {} }
extern "C" __global__ void plain() {}
)"),
    *nvrtc);
  CHECK_MESSAGE(out.status == verdict_status::passed, out.log);
}

TEST_CASE("a source that swallows NVRTC's epilogue does not pass") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  for (const char* end : {"\n#if 0\n", "\n/*", "\nnamespace hidden {", "\nR\"x("}) {
    CAPTURE(end);
    const auto out =
      compile_or_fail(simple_input("__global__ void k() {}" + std::string(end)), *nvrtc);
    CHECK(out.status == verdict_status::compile_error);
  }
}

TEST_CASE("device memory allocation is refused with what to do instead, by NVRTC's code as well") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  const auto out = compile_or_fail(
    simple_input("__device__ void* kept;\n__global__ void k() { kept = malloc(64); }"), *nvrtc);
  CHECK(out.status == verdict_status::compile_error);
  CHECK(contains(out.log, "scratch in the launch plan"));
}

TEST_CASE("NVRTC's clock registers and writable variables are findings, its constants are not") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  auto input = simple_input(R"(
__device__ int counter;
static __device__ int set = 3;
__constant__ float table[4] = {1, 2, 3, 4};
__device__ const int fixed[2] = {5, 6};
template <class U> struct traits { static constexpr int width = 4; };
__global__ void k(float* y) {
  y[0] = static_cast<float>(clock64());
  y[1] = table[threadIdx.x % 4] + static_cast<float>(fixed[threadIdx.x % 2]) + traits<float>::width;
  const int* w = &traits<float>::width;
  counter = *w + set;
}
)");
  input.unit.entries[0] = {"k", {"float*"}, {"y"}, {false}};
  const auto out = compile_or_fail(input, *nvrtc);
  REQUIRE_MESSAGE(out.status == verdict_status::passed, out.log);
  std::string all;
  for (const finding& f : out.findings)
    all += f.rule + ": " + f.detail + "\n";
  REQUIRE_MESSAGE(out.findings.size() == 3, all);
  CHECK(contains(all, "%clock64"));
  CHECK(contains(all, "'counter'"));
  CHECK(contains(all, "'set'"));
}

TEST_CASE(
  "code that the assembler refuses does not pass, even where the interpreter would not see it") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc || nvrtc->linker.empty())
    return;
  const auto out = compile_or_fail(
    simple_input("__global__ void k() { asm volatile(\"nothing.u32 %r1;\"); }"), *nvrtc);
  CHECK(out.status == verdict_status::compile_error);
  CHECK_FALSE(contains(out.log, "/"));
}

TEST_CASE("fast_math changes NVRTC's code, and maxrregcount what its assembler uses") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  auto input =
    simple_input("__global__ void k(float* y) { y[0] = y[1] / y[2]; y[3] = expf(y[4]); }");
  input.unit.entries[0] = {"k", {"float*"}, {"y"}, {false}};
  CHECK(contains(compile_or_fail(input, *nvrtc).ptx, "div.rn.f32"));
  input.options.fast_math = true;
  const auto fast = compile_or_fail(input, *nvrtc);
  REQUIRE_MESSAGE(fast.status == verdict_status::passed, fast.log);
  CHECK_FALSE(contains(fast.ptx, "div.rn.f32"));
  CHECK(contains(fast.ptx, ".ftz"));

  input = simple_input(R"(
__global__ void k(float* y, int n) {
  float a[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) a[i] = y[i * n];
  #pragma unroll
  for (int i = 0; i < 64; ++i) y[i * n + 1] = a[63 - i];
}
)");
  input.unit.entries[0] = {"k", {"float*", "int32_t"}, {"y", "n"}, {false, false}};
  input.options.max_registers = 32;
  const auto few = compile_or_fail(input, *nvrtc);
  REQUIRE_MESSAGE(few.status == verdict_status::passed, few.log);
  if (!nvrtc->linker.empty())
    CHECK(contains(few.log, ": 32 registers"));
  input.options.headers = {"cccl"};
  CHECK(compile_or_fail(input, *nvrtc).status == verdict_status::compile_error);
}

TEST_CASE("NVRTC past its time limit is ended, and that is the candidate's error") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  auto input = simple_input(R"(
template <int n, int m> __device__ int grow() {
  if constexpr (n == 0) return m; else return grow<n - 1, 2 * m>() + grow<n - 1, 2 * m + 1>();
}
__global__ void k(int* y) { y[0] = grow<18, 0>(); }
)");
  input.unit.entries[0] = {"k", {"int32_t*"}, {"y"}, {false}};
  const scratch_folder folder;
  const auto out = compile_with_nvrtc(input, folder.path(), *nvrtc, std::chrono::milliseconds(300));
  REQUIRE(out);
  CHECK(out->status == verdict_status::compile_error);
  CHECK(contains(out->log, "not done within 300 ms"));
}

TEST_CASE("the cache keys of the two toolchains, and of NVRTC with and without a linker, differ") {
  const auto input = simple_input("__global__ void k() {}");
  const nvrtc_command nvrtc{"gristmill-nvrtc", "/lib/libnvrtc.so.13", "nvrtc-13.0", "/inc", "/jit"};
  const std::string key = cache_key(input, nvrtc);
  CHECK(key.size() == 64);
  CHECK(cache_key(input, clang_command{"/usr/bin/clang++-19", "clang-19.1.7"}) != key);
  auto other = nvrtc;
  other.version = "nvrtc-12.8";
  CHECK(cache_key(input, other) != key);
  other = nvrtc;
  other.linker.clear();
  CHECK(cache_key(input, other) != key);
  other = nvrtc;
  other.program = "/elsewhere/gristmill-nvrtc";
  other.library = "/elsewhere/libnvrtc.so.13";
  CHECK(cache_key(input, other) == key);
}
