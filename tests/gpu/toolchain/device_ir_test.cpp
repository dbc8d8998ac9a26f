#include "gpu/toolchain/device_ir.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("kernels, entries, variables and declarations are read from the text") {
  const auto ir = read_device_ir(R"(source_filename = "unit.cu"
@counter = dso_local addrspace(1) externally_initialized global i32 0, align 4
@fixed = internal addrspace(4) constant [2 x i32] [i32 1, i32 2], align 4
@threadIdx = external dso_local addrspace(1) global %struct.x, align 1
@llvm.compiler.used = appending global [1 x ptr] [ptr addrspacecast (ptr addrspace(1) @counter to ptr)]
@.str = private unnamed_addr constant [3 x i8] c"k, \00", align 1
@gristmill_entry_0 = dso_local addrspace(1) externally_initialized global ptr @_Z1kv, align 8
@gristmill_entry_12 = dso_local addrspace(1) global ptr @"odd name", align 8
define dso_local void @_Z1kv() #0 {
  ret void
}
declare dso_local ptr @malloc(i64 noundef) #1
declare void @llvm.nvvm.barrier0() #2
!0 = !{ptr @_Z1kv, !"kernel", i32 1}
!1 = !{ptr @"odd name", !"kernel", i32 1}
!2 = !{ptr @_Z1kv, !"maxntidx", i32 128}
)");
  REQUIRE(ir);
  CHECK(ir->kernels == std::set<std::string>{"_Z1kv", "odd name"});
  CHECK(ir->entries == std::map<size_t, std::string>{{0, "_Z1kv"}, {12, "odd name"}});
  CHECK(ir->writable_globals == std::vector<std::string>{"counter"});
  CHECK(ir->external_functions == std::vector<std::string>{"malloc"});
  CHECK_FALSE(ir->has_module_assembly);
  CHECK(ir->text.find("gristmill_entry") == std::string::npos);
  CHECK(ir->text.find("@counter") != std::string::npos);
}

TEST_CASE("kernels by calling convention count too, and module assembly is noticed") {
  const auto ir = read_device_ir("module asm \".entry x\"\ndefine dso_local ptx_kernel void @a(i32 "
                                 "%0) {\n}\ndefine void @b() {\n}\n");
  REQUIRE(ir);
  CHECK(ir->has_module_assembly);
  CHECK(ir->kernels == std::set<std::string>{"a"});
}

TEST_CASE("an entry variable that somebody else set is an error") {
  CHECK_FALSE(read_device_ir("@gristmill_entry_0 = global i32 4\n"));
  CHECK_FALSE(read_device_ir("@gristmill_entry_x = global ptr @k\n"));
  CHECK(read_device_ir(""));
  CHECK(read_device_ir("@"));
  CHECK(read_device_ir("@\"open"));
}
