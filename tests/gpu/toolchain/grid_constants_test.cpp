#include "gpu/toolchain/grid_constants.hpp"

#include "tests/gpu/toolchain/compile_fixture.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

bool has(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

const std::string marks =
  "@.str = private unnamed_addr constant [24 x i8] "
  "c\"gristmill.grid_constant\\00\", section \"llvm.metadata\"\n"
  "@.str.1 = private unnamed_addr constant [6 x i8] c\"other\\00\", section "
  "\"llvm.metadata\"\n";

std::string note(const std::string& of, const std::string& mark) {
  return "  call void @llvm.var.annotation.p0.p0(ptr " + of + ", ptr " + mark
    + ", ptr @.str.1, i32 8, ptr null)\n";
}

} // namespace

TEST_CASE("a marked parameter by value becomes a grid constant, and the notes go") {
  const std::string text = use_grid_constants(marks
    + "define dso_local void @k(i32 noundef %0, ptr noundef byval(%struct.map) align 64 %1, ptr "
      "noundef byval(%struct.map) align 64 %2, ptr byval([2 x %\"a, (b\"]) align 8 %3) #0 {\n"
    + note("%6", "@.str") + note("%1", "@.str") + note("%2", "@.str.1") + note("%3", "@.str")
    + "}\n!nvvm.annotations = !{!0}\n!0 = !{ptr @k, !\"kernel\", i32 1}\n!17 = !{i32 3}\n");
  CHECK(has(text, "!nvvm.annotations = !{!0, !18}\n"));
  CHECK(has(text, "!18 = !{ptr @k, !\"grid_constant\", !19}\n!19 = !{i32 2, i32 4}\n"));
  CHECK_FALSE(has(text, note("%1", "@.str")));
  CHECK_FALSE(has(text, note("%6", "@.str")));
  CHECK(has(text, note("%2", "@.str.1")));
}

TEST_CASE("a text without marks, and one that is cut off, stays as it is") {
  for (const std::string text : {"", "define void @k(ptr byval(%x) %0) {\n}\n", "define", "@", "!",
         "define void @k(ptr byval(%x", "  call void @llvm.var.annotation.p0.p0(ptr "}) {
    const std::string out = use_grid_constants(text);
    CHECK(out == (text.empty() || text.ends_with("\n") ? text : text + "\n"));
  }
}

TEST_CASE(
  "clang's code takes the address of a __grid_constant__ where it lies, and no copy of it") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto code_of = [&](const std::string& word) {
    auto input = simple_input("struct alignas(64) map { char opaque[128]; };\n"
                              "__device__ __noinline__ void use(const void* p) { asm "
                              "volatile(\"prefetch.tensormap [%0];\" :: "
                              "\"l\"(p) : \"memory\"); }\n"
                              "__global__ void k(float* out, const "
      + word + " map m) { use(&m); *out = float(m.opaque[3]); }\n");
    input.unit.entries[0] = {"k", {"float*", "tensor_map"}, {"out", "m"}, {false, false}};
    const auto out = compile_or_fail(input, *clang);
    CHECK_MESSAGE(out.status == verdict_status::passed, out.log);
    return out.ptx;
  };
  const std::string code = code_of("__grid_constant__");
  CHECK(has(code, "cvta.param.u64"));
  CHECK_FALSE(has(code, "st.local"));
  CHECK(has(code_of(""), "st.local"));
}
