#include "gpu/toolchain/trust_alignment.hpp"

#include "tests/gpu/toolchain/compile_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// One line in, the same line out.
std::string line(const std::string& text) {
  std::string out = trust_alignment(text);
  REQUIRE(out.ends_with("\n"));
  out.pop_back();
  return out;
}

} // namespace

TEST_CASE("plain accesses get the alignment of their type and never lose any") {
  CHECK(line("  %5 = load float, ptr %4, align 2") == "  %5 = load float, ptr %4, align 4");
  CHECK(line("  %5 = load i32, ptr %4, align 1, !tbaa !3")
    == "  %5 = load i32, ptr %4, align 4, !tbaa !3");
  CHECK(line("  store i64 %5, ptr %4, align 4") == "  store i64 %5, ptr %4, align 8");
  CHECK(line("  store double %5, ptr %4, align 8") == "  store double %5, ptr %4, align 8");
  CHECK(line("  %5 = load i32, ptr %4, align 16") == "  %5 = load i32, ptr %4, align 16");
  CHECK(line("  %5 = load i8, ptr %4, align 1") == "  %5 = load i8, ptr %4, align 1");
  CHECK(line("  %5 = add i32 %4, 1") == "  %5 = add i32 %4, 1");
  CHECK(line("@.str = constant [9 x i8] c\"load i32, align 1\", align 1")
    == "@.str = constant [9 x i8] c\"load i32, align 1\", align 1");
}

TEST_CASE("a copy of an aggregate takes the better alignment of its two sides") {
  const std::string head = "  call void @llvm.memcpy.p0.p0.i64(ptr align ";
  CHECK(line(head + "4 %1, ptr align 16 %2, i64 32, i1 false), !tbaa.struct !17")
    == head + "16 %1, ptr align 16 %2, i64 32, i1 false), !tbaa.struct !17");
  // Sixteen bytes from memory to memory are one access each.
  CHECK(line(head + "4 %1, ptr align 16 %2, i64 16, i1 false), !tbaa.struct !17")
    == "  %gm.copy.0 = load <4 x i32>, ptr %2, align 16\n  store <4 x i32> %gm.copy.0, ptr %1, "
       "align 16");
  CHECK(line(head + "8 %1, ptr align 2 %2, i64 8, i1 false), !tbaa.struct !17")
    == head + "8 %1, ptr align 8 %2, i64 8, i1 false), !tbaa.struct !17");
  // A call of memcpy promises nothing.
  CHECK(line(head + "4 %1, ptr align 16 %2, i64 16, i1 false)")
    == head + "4 %1, ptr align 16 %2, i64 16, i1 false)");
}

TEST_CASE("of a local variable only the type counts") {
  const std::string copy = "  call void @llvm.memcpy.p0.p0.i64(ptr align 128 %1, ptr align 4 %2, "
                           "i64 16, i1 false), !tbaa.struct !1\n";
  const auto at = [&](const std::string& type) {
    return trust_alignment("  %1 = alloca " + type + ", align 128\n" + copy)
      .find("ptr align 16 %2");
  };
  CHECK(at("%struct.float4") != std::string::npos);
  CHECK(at("%struct.mine") == std::string::npos);
}

TEST_CASE("code with packed structures stays as it is") {
  const std::string code = "%struct.p = type <{ i8, i32 }>\n  %5 = load i32, ptr %4, align 1\n";
  CHECK(trust_alignment(code) == code);
  CHECK(trust_alignment("") == "");
}

TEST_CASE("a cast to a wide type is one wide access") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  auto input = simple_input(R"(
__global__ void k(const float* x, float* y) {
  __shared__ float tile[256];
  __shared__ __half halves[256];
  *reinterpret_cast<float4*>(&tile[threadIdx.x * 4]) = *reinterpret_cast<const float4*>(&x[threadIdx.x * 4]);
  halves[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float4 v = *reinterpret_cast<const float4*>(&tile[255 - threadIdx.x * 4 - 3]);
  y[threadIdx.x] = v.x + v.y + v.z + v.w
      + static_cast<float>(*reinterpret_cast<const unsigned*>(&halves[threadIdx.x * 2]));
}
)");
  input.unit.entries[0] = {"k", {"const float*", "float*"}, {"x", "y"}, {true, false}};
  const auto out = compile_or_fail(input, *clang);
  REQUIRE_MESSAGE(out.status == verdict_status::passed, out.log);
  for (const std::string wide : {"st.shared.v4", "ld.global.v4", "ld.shared.v4", "ld.shared.u32"}) {
    CAPTURE(wide);
    CHECK(out.ptx.find(wide) != std::string::npos);
  }
}
