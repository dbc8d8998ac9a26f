#include "gpu/toolchain/line_info.hpp"

#include "gpu/toolchain/clang_toolchain.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>

using namespace gristmill;

namespace {

const std::string ir = R"(@text = constant [9 x i8] c"x, !dbg !"
define void @kernel() #0 !dbg !9 {
  %1 = load float, ptr %2, align 4, !dbg !11, !tbaa !13
  ret void, !dbg !12
}

define float @helper(float %0) #0 !dbg !20 {
  %1 = fadd float %0, %0, !dbg !21
  %2 = load float, ptr %3, align 4, !dbg !22, !tbaa !13
  ret float %1, !dbg !22
}

define void @bare() {
  ret void
}
!1 = !DIFile(filename: "kernel.cu", directory: "/x")
!2 = !DIFile(filename: "include/half.h", directory: "/x")
!9 = distinct !DISubprogram(name: "kernel", scope: !1, file: !1, line: 3)
!20 = distinct !DISubprogram(name: "helper", scope: !2, file: !2, line: 3)
!21 = !DILocation(line: 4, column: 5, scope: !20)
)";

} // namespace

TEST_CASE(
  "functions of other files lose their places, those of the file and all data keep theirs") {
  const std::string kept = keep_lines_of(ir, "kernel.cu");
  CHECK(kept.find("define void @kernel() #0 !dbg !9 {") != std::string::npos);
  CHECK(kept.find("align 4, !dbg !11, !tbaa !13") != std::string::npos);
  CHECK(kept.find("define float @helper(float %0) #0 {") != std::string::npos);
  CHECK(kept.find("  %1 = fadd float %0, %0\n") != std::string::npos);
  CHECK(kept.find("  %2 = load float, ptr %3, align 4, !tbaa !13\n") != std::string::npos);
  CHECK(kept.find("  ret float %1\n") != std::string::npos);
  CHECK(kept.find("c\"x, !dbg !\"") != std::string::npos);
  CHECK(kept.find("!21 = !DILocation(line: 4, column: 5, scope: !20)") != std::string::npos);
  CHECK(keep_lines_of("", "kernel.cu").empty());
}

TEST_CASE("clang names lines of the source when it is asked to, and else does not") {
  const char* path = std::getenv("PATH");
  const auto clang = find_clang(path != nullptr ? path : "/usr/bin:/bin");
  if (!clang) {
    MESSAGE("SKIPPED: " << clang.error().what);
    return;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "gristmill-lines-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  compile_input input;
  input.source = "extern \"C\" __global__ void f(float* y) {\n"
                 "  y[threadIdx.x] =\n"
                 "    __fmul_rn(y[threadIdx.x], 3.f);\n}\n";
  input.unit.key = "f";
  entry_use use;
  use.expression = "f";
  use.parameter_abi = {"float*"};
  use.argument_names = {"y"};
  use.parameter_const = {false};
  input.unit.entries = {use};
  input.arch = "sm_90a";
  const auto plain = compile_with_clang(input, folder, *clang);
  const std::string plain_key = cache_key(input, *clang);
  input.line_info = true;
  const auto lines = compile_with_clang(input, folder, *clang);
  std::filesystem::remove_all(folder);
  REQUIRE(plain);
  REQUIRE(lines);
  REQUIRE_MESSAGE(lines->status == verdict_status::passed, lines->log);
  CHECK(plain->ptx.find(".loc") == std::string::npos);
  CHECK(lines->ptx.find("kernel.cu:3") != std::string::npos);
  // Every place is in the candidate's own file.
  CHECK(lines->ptx.find(".loc\t2") == std::string::npos);
  CHECK(plain_key != cache_key(input, *clang));
}
