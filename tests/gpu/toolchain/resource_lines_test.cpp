#include "gpu/toolchain/resource_lines.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("the assembler's figures become one line for each entry, in order of the names") {
  CHECK(resource_lines("ptxas info    : 132 bytes gmem\n"
                       "ptxas info    : Compiling entry function 'two' for 'sm_90a'\n"
                       "ptxas info    : Function properties for two\n"
                       "ptxas         .     1104 bytes stack frame, 708 bytes spill stores, 748 "
                       "bytes spill loads\n"
                       "ptxas info    : Used 64 registers, used 1 barriers, 1600 bytes smem\n"
                       "ptxas info    : Compile time = 40.384 ms\n"
                       "ptxas info    : Compiling entry function 'one' for 'sm_90a'\n"
                       "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                       "ptxas info    : Used 8 registers, used 0 barriers\n")
    == "resources: one: 8 registers, 0 bytes shared, 0 bytes stack, 0 bytes spilled\n"
       "resources: two: 64 registers, 1600 bytes shared, 1104 bytes stack, 708 bytes spilled\n");
}

TEST_CASE("a log without figures gives no line, whatever else it holds") {
  CHECK(resource_lines("").empty());
  CHECK(resource_lines("Used 3 registers\n").empty());
  CHECK(resource_lines("Compiling entry function 'x' for\nUsed\n").empty());
  CHECK(resource_lines("Compiling entry function '' for\nUsed 4 registers\n").empty());
  CHECK(resource_lines("Compiling entry function 'x").empty());
}

TEST_CASE("what an assembler loses because code might be linked is seen") {
  CHECK(
    is_slowed_by_linking("ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored "
                         "to maintain compatibility across compilation units.\n"));
  CHECK(is_slowed_by_linking("ptxas info    : (C7509) Potential Performance Loss: wgmma.mma_async "
                             "instructions are serialized\n"));
  CHECK_FALSE(is_slowed_by_linking("ptxas info    : Used 168 registers, used 16 barriers\n"));
  CHECK_FALSE(is_slowed_by_linking(""));
}
