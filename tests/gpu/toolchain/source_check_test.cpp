#include "gpu/toolchain/source_check.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace gristmill;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

compile_unit unit_with(std::string name, std::string value) {
  compile_unit unit;
  unit.defines = {{std::move(name), std::move(value)}};
  return unit;
}

compile_unit unit_with_entry(std::string expression) {
  compile_unit unit;
  unit.entries.push_back({std::move(expression), {}, {}, {}});
  return unit;
}

} // namespace

TEST_CASE("the device headers may be included, in every way of writing it") {
  for (const std::string source :
    {"#include <cuda_fp16.h>", "#include \"cuda_bf16.h\"",
      "  #  include /* why */ <cstdint> // because", "#inc\\\nlude <math.h>", "%:include <cmath>",
      "#include <cuda_runtime.h>\r\n#define X 1\n#if X\n#endif\n#pragma unroll\n",
      "// #include </etc/passwd>\n/* #include <x>\n#include <y> */ int a;",
      "const char* s = \"/*\"; \n#include <math.h>\n", "int big = 1'000'000; // ' \n"}) {
    CAPTURE(source);
    const auto checked = check_source(source);
    CHECK_MESSAGE(checked, (checked ? "" : checked.error().what));
  }
}

TEST_CASE("a source cannot read or probe files of the host") {
  for (const std::string source : {"#include </etc/passwd>", "#include \"/etc/passwd\"",
         "#include \"../secret\"", "#include <vector>", "#include \"gristmill/all.h\"",
         "#include FILE", "#include_next <math.h>", "#import <math.h>", "#embed \"/etc/passwd\"",
         "#line 1 \"x\"", "# 1 \"x\"", "#inc\\\nlude </etc/passwd>", "#\\\ninclude </etc/passwd>",
         "#\\  \ninclude </etc/passwd>", "/**/ # /**/ include </etc/passwd>",
         "%:include </etc/passwd>", "?\?=include </etc/passwd>", "/* x\n*/ #include </etc/passwd>",
         "#if __has_include(</etc/passwd>)\n#endif", "#if __has_embed(\"x\")\n#endif",
         "#if 1\n#elif __has_\\\ninclude(\"x\")\n#endif",
         "const char* s = \"a\\\"\";\n#include <x>"}) {
    CAPTURE(source);
    const auto checked = check_source(source);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == errc::refused);
    CHECK(contains(checked.error().what, "kernel.cu:"));
  }
  CHECK_FALSE(check_source(std::string("int a;\0#include <x>", 18)));
}

TEST_CASE("a refused header names the line and the headers that there are") {
  const auto checked = check_source("int a;\n\n#include <thrust/sort.h>\n");
  REQUIRE_FALSE(checked);
  CHECK(contains(checked.error().what, "kernel.cu:3: the header 'thrust/sort.h' is not available"));
  CHECK(contains(checked.error().what, "cuda_fp16.h"));
}

TEST_CASE("defines are names with a number or a type") {
  for (const auto& [name, value] : {std::pair{"BM", "128"}, {"SCALE", "-0.125f"}, {"E", "1e-05f"},
         {"T", "__nv_bfloat16"}, {"U", "unsigned char"}, {"V", "std::int32_t"}, {"_x1", "0"}})
    CHECK(check_unit(unit_with(name, value)));
  for (const auto& [name, value] :
    {std::pair{"B M", "1"}, {"", "1"}, {"1A", "1"}, {"A=1 -include x", "1"}, {"__CUDA_ARCH__", "1"},
      {"A", ""}, {"A", "1;int x"}, {"A", "1\n#include <x>"}, {"A", "\"x\""}, {"A", "f(x)"},
      {"A", "1 -I/"}, {"A", "@/etc/passwd"}, {"A(x)", "x"}}) {
    CAPTURE(name);
    CAPTURE(value);
    const auto checked = check_unit(unit_with(name, value));
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == errc::invalid_input);
  }
  CHECK_FALSE(check_unit(unit_with(std::string(65, 'A'), "1")));
  CHECK_FALSE(check_unit(unit_with("A", std::string(129, '1'))));
}

TEST_CASE("entries are names or template-ids and nothing that could end the line") {
  for (const std::string expression :
    {"k", "ns::k", "k<128, 4, T>", "k<(BM > 64), -1>", "::k", "k<unsigned char>"})
    CHECK(check_unit(unit_with_entry(expression)));
  for (const std::string expression :
    {"", "k; }", "k\n#include <x>", "k/*", "k//", "k\"", "k{}", "1", "k\\", "k#"}) {
    CAPTURE(expression);
    CHECK_FALSE(check_unit(unit_with_entry(expression)));
  }
  compile_unit unit = unit_with_entry("k");
  unit.entries[0].parameter_abi = {"float"};
  CHECK_FALSE(check_unit(unit));
}

TEST_CASE("options become flags from a list, and nothing else does") {
  plan_options options;
  CHECK(*option_flags(options) == std::vector<std::string>{"-std=c++20"});
  options.fast_math = true;
  options.standard = "c++17";
  CHECK(option_flags(options)->front() == "-std=c++17");
  CHECK(option_flags(options)->size() == 3);

  options.standard = "c++20 -I/";
  const auto standard = option_flags(options);
  REQUIRE_FALSE(standard);
  CHECK(standard.error().code == errc::invalid_input);
  options = {};
  options.max_registers = 256;
  CHECK_FALSE(option_flags(options));
  options = {};
  options.headers = {"cutlass"};
  const auto headers = option_flags(options);
  REQUIRE_FALSE(headers);
  CHECK(headers.error().code == errc::unsupported);
  CHECK(contains(headers.error().what, "cutlass"));
}

TEST_CASE("architectures are those that clang knows, and newer ones are taken down to the newest") {
  CHECK(*clang_architecture("sm_80") == "sm_80");
  CHECK(*clang_architecture("sm_90a") == "sm_90a");
  CHECK(*clang_architecture("sm_100a") == "sm_90a");
  const auto wrong = clang_architecture("sm_9");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == errc::invalid_input);
  CHECK_FALSE(clang_architecture("native"));
  CHECK_FALSE(clang_architecture("sm_90a -I/"));
}
