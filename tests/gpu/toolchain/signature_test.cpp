#include "gpu/toolchain/signature.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("a parameter has the bytes of its C++ type") {
  CHECK(parameter_bytes("const __nv_bfloat16*") == 8);
  CHECK(parameter_bytes("void*") == 8);
  CHECK(parameter_bytes("bool") == 1);
  CHECK(parameter_bytes("int8_t") == 1);
  CHECK(parameter_bytes("__half") == 2);
  CHECK(parameter_bytes("__nv_bfloat16") == 2);
  CHECK(parameter_bytes("uint32_t") == 4);
  CHECK(parameter_bytes("float") == 4);
  CHECK(parameter_bytes("int64_t") == 8);
  CHECK(parameter_bytes("double") == 8);
  CHECK_FALSE(parameter_bytes("struct x"));
  CHECK_FALSE(parameter_bytes(""));
}

TEST_CASE("a line of the epilogue tells its entry") {
  CHECK_FALSE(entry_of_line(0));
  CHECK_FALSE(entry_of_line(999));
  CHECK(entry_of_line(1000) == 0U);
  CHECK(entry_of_line(1001) == 0U);
  CHECK(entry_of_line(3000) == 2U);
}

TEST_CASE("names of arguments cannot leave their string") {
  compile_unit unit;
  unit.entries.push_back({"k", {"float"}, {"a\"); evil(); (\"\\\n"}, {false}});
  const std::string text = signature_epilogue(unit);
  CHECK(text.find("a\\\"); evil(); (\\\"\\\\?") != std::string::npos);
  CHECK(text.find("gristmill_entry_0 = &k;") != std::string::npos);
}

TEST_CASE("a unit without entries has an empty check") {
  CHECK(signature_epilogue({}).find("static_assert(") == std::string::npos);
}
