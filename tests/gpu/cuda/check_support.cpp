#include "tests/gpu/cuda/check_support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace gristmill::device_check {

const char* const kernels_ptx = R"(.version 7.8
.target sm_80
.address_size 64
.global .align 4 .u32 calls;
.visible .entry scale(.param .u64 in, .param .u64 out, .param .u32 n, .param .f32 by)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %d<6>;
  ld.param.u64 %d0, [in];
  ld.param.u64 %d1, [out];
  ld.param.u32 %r0, [n];
  ld.param.f32 %f0, [by];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p0, %r4, %r0;
  @%p0 bra end;
  mul.wide.u32 %d2, %r4, 4;
  add.u64 %d3, %d0, %d2;
  add.u64 %d4, %d1, %d2;
  ld.global.f32 %f1, [%d3];
  mul.f32 %f2, %f1, %f0;
  st.global.f32 [%d4], %f2;
end:
  ret;
}
.visible .entry remember()
{
  .reg .b64 %d<2>;
  .reg .b32 %r<3>;
  mov.u64 %d0, calls;
  atom.global.add.u32 %r0, [%d0], 1;
  ret;
}
.visible .entry spin(.param .u64 flag)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [flag];
again:
  ld.volatile.global.u32 %r0, [%d0];
  setp.eq.u32 %p0, %r0, 0;
  @%p0 bra again;
  ret;
}
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %d<6>;
  ld.param.u64 %d0, [a];
  ld.param.u64 %d1, [b];
  ld.param.u64 %d2, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d3, %r4, 4;
  add.u64 %d0, %d0, %d3;
  add.u64 %d1, %d1, %d3;
  add.u64 %d2, %d2, %d3;
  ld.global.f32 %f0, [%d0];
  ld.global.f32 %f1, [%d1];
  add.f32 %f2, %f0, %f1;
  st.global.f32 [%d2], %f2;
  ret;
}
.visible .entry store(.param .u64 out, .param .f32 value)
{
  .reg .b32 %r<6>;
  .reg .f32 %f<2>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [out];
  ld.param.f32 %f0, [value];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d1, %r4, 16;
  add.u64 %d0, %d0, %d1;
  st.global.v4.f32 [%d0], {%f0, %f0, %f0, %f0};
  ret;
}
.visible .entry load(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [in];
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d2, %r4, 16;
  add.u64 %d0, %d0, %d2;
  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d0];
  add.f32 %f0, %f0, %f1;
  add.f32 %f2, %f2, %f3;
  add.f32 %f0, %f0, %f2;
  setp.neu.f32 %p0, %f0, 0f499602D2;
  @%p0 bra end;
  st.global.f32 [%d1], %f0;
end:
  ret;
}
.visible .entry work(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .f32 %f<6>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [out];
  ld.param.u32 %r0, [rounds];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  cvt.rn.f32.u32 %f0, %r4;
  mov.f32 %f1, %f0;
  mov.f32 %f2, %f0;
  mov.f32 %f3, %f0;
again:
  fma.rn.f32 %f0, %f0, 0f3F7FFFFE, 0f3F800000;
  fma.rn.f32 %f1, %f1, 0f3F7FFFFD, 0f3F800000;
  fma.rn.f32 %f2, %f2, 0f3F7FFFFC, 0f3F800000;
  fma.rn.f32 %f3, %f3, 0f3F7FFFFB, 0f3F800000;
  sub.u32 %r0, %r0, 1;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra again;
  add.f32 %f0, %f0, %f1;
  add.f32 %f2, %f2, %f3;
  add.f32 %f0, %f0, %f2;
  mul.wide.u32 %d1, %r4, 4;
  add.u64 %d0, %d0, %d1;
  st.global.f32 [%d0], %f0;
  ret;
}
.visible .entry wait_ns(.param .u64 ns)
{
  .reg .pred %p<2>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [ns];
  mov.u64 %d1, %globaltimer;
again:
  mov.u64 %d2, %globaltimer;
  sub.u64 %d2, %d2, %d1;
  setp.lt.u64 %p0, %d2, %d0;
  @%p0 bra again;
  ret;
}
.visible .entry arrive(.param .u64 counter, .param .u32 blocks)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [counter];
  ld.param.u32 %r0, [blocks];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p0, %r1, 0;
  @%p0 bra end;
  red.global.add.u32 [%d0], 1;
again:
  ld.volatile.global.u32 %r2, [%d0];
  setp.lt.u32 %p0, %r2, %r0;
  @%p0 bra again;
end:
  ret;
}
)";

const char* const dependent_ptx = R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry early(.param .u64 ns)
{
  .reg .pred %p<2>;
  .reg .b64 %d<4>;
  griddepcontrol.launch_dependents;
  ld.param.u64 %d0, [ns];
  mov.u64 %d1, %globaltimer;
again:
  mov.u64 %d2, %globaltimer;
  sub.u64 %d2, %d2, %d1;
  setp.lt.u64 %p0, %d2, %d0;
  @%p0 bra again;
  ret;
}
.visible .entry cluster(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %cluster_nctaid.x;
  st.global.u32 [%d0], %r0;
  ret;
}
)";

namespace {

int failed = 0;
std::vector<std::string> folders;

} // namespace

std::string mock_ptx() {
  const std::string all = kernels_ptx;
  return all.substr(0, all.find(".visible .entry add("));
}

void check(const std::string& rule, bool holds, const std::string& detail) {
  failed += holds ? 0 : 1;
  fmt::print("{}  {}{}{}\n", holds ? "ok  " : "FAIL", rule, detail.empty() ? "" : ": ", detail);
  std::fflush(stdout);
}

int failures() {
  return failed;
}

void set_library_folders(std::vector<std::string> all) {
  folders = std::move(all);
}

cuda_options options(bool trace) {
  cuda_options how;
  how.library_folders = folders;
  how.trace = trace;
  return how;
}

void give_up(const char* what, const std::string& why) {
  fmt::print("FAIL  {}: {}\n", what, why);
  std::fflush(stdout);
  std::_Exit(1);
}

call_step launch_step(function_handle function, uint32_t blocks, uint32_t threads,
  std::vector<uint8_t> bytes, std::vector<uint32_t> after) {
  call_step step;
  step.function = function;
  step.shape.grid = {blocks, 1, 1};
  step.shape.block = {threads, 1, 1};
  step.parameters = std::move(bytes);
  step.after = std::move(after);
  return step;
}

measured_call measure(
  cuda_device& gpu, const std::vector<call_step>& steps, const timing_protocol& how) {
  call_script script;
  script.prepare = [&](uint32_t, call_use) -> result<std::span<const call_step>> {
    return std::span<const call_step>(steps);
  };
  return must(gpu.measure(script, how), "measure");
}

double median(std::vector<uint64_t> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return static_cast<double>(values[values.size() / 2]);
}

double scatter(const std::vector<uint64_t>& values) {
  std::vector<uint64_t> distances;
  const double middle = median(values);
  for (auto one : values)
    distances.push_back(static_cast<uint64_t>(std::abs(static_cast<double>(one) - middle)));
  return median(std::move(distances));
}

} // namespace gristmill::device_check
