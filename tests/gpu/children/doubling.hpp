#pragma once

#include "protocol/job.hpp"

#include <string>
#include <string_view>

namespace gristmill {

/// The beginning of a module to which a test adds entries of its own. All take (input, output), of
/// 128 floats, and are launched as one block of 128 threads: `doubled` writes twice its input,
/// `nothing` nothing. `memory` is a variable that kernels can write.
constexpr std::string_view doubling_ptx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 memory;
.visible .entry doubled(.param .u64 in, .param .u64 out)
{
  .reg .b64 %rd<8>;
  .reg .b32 %r<4>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f1, [%rd6];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd7], %f2;
  ret;
}
.visible .entry nothing(.param .u64 in, .param .u64 out)
{
  ret;
}
)";

/// A buffer of 128 floats.
inline resolved_buffer small_buffer(
  resolved_buffer::role role, const char* name, const char* init = "") {
  resolved_buffer made;
  made.kind = role;
  made.name = name;
  made.type = dtype::float32;
  made.shape = {128};
  made.bytes = 512;
  made.init = init;
  return made;
}

/// The launch of an entry on the first two buffers of its pass.
inline resolved_step launch_of(const std::string& entry) {
  resolved_step launch;
  launch.entry = entry;
  launch.block = {128, 1, 1};
  for (uint32_t i = 0; i < 2; ++i) {
    resolved_argument argument;
    argument.buffer = i;
    argument.abi = "ptr";
    launch.args.push_back(argument);
  }
  return launch;
}

} // namespace gristmill
