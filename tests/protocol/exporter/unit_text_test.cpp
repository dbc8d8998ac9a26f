#include "protocol/exporter/unit_text.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("includes are taken out of the source, those in comments and strings are not") {
  const auto split =
    split_includes("#include <a.h>\n/*\n#include <no.h>\n*/\n// #include <no.h>\n"
                   "  #  include \"b.h\" // why\nconst char* s = \"#include <no.h>\";\n"
                   "#include <a.h>\nint x;");
  CHECK(split.includes == std::vector<std::string>{"<a.h>", "\"b.h\""});
  // Lines keep their numbers, so that a message of the compiler fits the candidate's text.
  CHECK(split.rest
    == "\n/*\n#include <no.h>\n*/\n// #include <no.h>\n\nconst char* s = \"#include "
       "<no.h>\";\n\nint x;");
}

TEST_CASE("kernels are found behind launch bounds, templates and attributes") {
  const auto names = kernel_names("// __global__ void no();\ntemplate <int N>\n__global__ void "
                                  "__launch_bounds__(128, (1)) a(int x) {}\n"
                                  "extern \"C\" __global__ void b(float*);\n__global__ "
                                  "__launch_bounds__(2) void c() {}\nvoid d();\n"
                                  "template __global__ void a<3>(int);");
  CHECK(names == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE(
  "a unit has its own defines, namespace and kernel names, and gives its entries' addresses") {
  export_unit unit;
  unit.defines = {
    {"BM", int64_t{128}}, {"T", type_name{"__nv_bfloat16"}}, {"ON", true}, {"S", 0.5}};
  unit.entries = {"gemm<BM, T>"};
  const auto text =
    unit_text("#include <cuda_fp16.h>\ntemplate <int N, class E> __global__ void gemm() {}\n", unit,
      3, {"other", "gemm<BM, T>"});
  REQUIRE(text);
  CHECK(text->find("#define BM 128\n#define T __nv_bfloat16\n#define ON 1\n#define S 0.5f\n")
    != std::string::npos);
  CHECK(text->find("#define gemm gm_unit_3_gemm\n") != std::string::npos);
  CHECK(text->find("namespace gm_unit_3 {") != std::string::npos);
  CHECK(text->find("case 1: {\n    auto* gm_kernel = &gemm<BM, T>;") != std::string::npos);
  CHECK(text->find("case 0:") == std::string::npos);
  // A define called T would change a header that stands behind it.
  CHECK(text->find("#include <cuda_fp16.h>") < text->find("#define T "));
}
