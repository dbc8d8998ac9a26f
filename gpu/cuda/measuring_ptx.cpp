#include "gpu/cuda/measuring_ptx.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill::cuda {

namespace {

constexpr uint64_t golden = 0x9E3779B97F4A7C15, first_factor = 0xBF58476D1CE4E5B9,
                   second_factor = 0x94D049BB133111EB;

/// The finaliser of splitmix64: a bijection of 64-bit words in which every bit of the input changes
/// about half of those of the result.
uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * first_factor;
  z = (z ^ (z >> 27)) * second_factor;
  return z ^ (z >> 31);
}

/// The same for register %z, in place; %t is lost.
std::string mix() {
  return fmt::format(R"(  shr.u64 %t, %z, 30;
  xor.b64 %z, %z, %t;
  mul.lo.u64 %z, %z, {:#x};
  shr.u64 %t, %z, 27;
  xor.b64 %z, %z, %t;
  mul.lo.u64 %z, %z, {:#x};
  shr.u64 %t, %z, 31;
  xor.b64 %z, %z, %t;
)",
    first_factor, second_factor);
}

/// %p0 = seed + (index + 1) * golden into %place; the index is %i.
std::string place() {
  return fmt::format(R"(  add.u64 %t, %i, 1;
  mul.lo.u64 %t, %t, {:#x};
  add.u64 %place, %seed, %t;
)",
    golden);
}

/// Declarations, and %i = number of this thread, %step = number of all threads.
constexpr const char* opening = R"({
  .reg .pred %p, %q;
  .reg .b32 %r<8>;
  .reg .b64 %i, %step, %t, %z, %place, %seed, %at, %from, %bytes, %out, %sum, %other, %b, %left, %u;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %nctaid.x;
  mul.wide.u32 %i, %r1, %r2;
  cvt.u64.u32 %t, %r0;
  add.u64 %i, %i, %t;
  mul.wide.u32 %step, %r2, %r3;
)";

/// The word of eight bytes at `base` + 8 * %i into `to`; a shorter last one byte by byte, so that
/// nothing beyond the buffer is read. `name` makes the labels unique. %left and %u are lost.
std::string load_word(const char* base, const char* to, const char* name) {
  return fmt::format(R"(  shl.b64 %t, %i, 3;
  add.u64 %at, {0}, %t;
  sub.u64 %left, %bytes, %t;
  setp.lt.u64 %q, %left, 8;
  @%q bra {2}_short;
  ld.global.u64 {1}, [%at];
  bra {2}_done;
{2}_short:
  mov.u64 {1}, 0;
  mov.u32 %r4, 0;
{2}_byte:
  ld.global.u8 %u, [%at];
  shl.b64 %u, %u, %r4;
  or.b64 {1}, {1}, %u;
  add.u32 %r4, %r4, 8;
  add.u64 %at, %at, 1;
  sub.u64 %left, %left, 1;
  setp.ne.u64 %q, %left, 0;
  @%q bra {2}_byte;
{2}_done:
)",
    base, to, name);
}

/// Goes on to `done` when word %i lies behind the end.
constexpr const char* while_inside = R"(next:
  shl.b64 %t, %i, 3;
  setp.ge.u64 %p, %t, %bytes;
  @%p bra done;
)";

/// The sum of %sum over the warp, in its first thread; blocks are whole warps.
std::string warp_sum() {
  std::string out;
  for (int distance : {16, 8, 4, 2, 1})
    out += fmt::format(R"(  mov.b64 {{%r4, %r5}}, %sum;
  shfl.sync.down.b32 %r6, %r4, {0}, 31, 0xffffffff;
  shfl.sync.down.b32 %r7, %r5, {0}, 31, 0xffffffff;
  mov.b64 %t, {{%r6, %r7}};
  add.u64 %sum, %sum, %t;
)",
      distance);
  return out + R"(  and.b32 %r4, %r0, 31;
  setp.ne.u32 %p, %r4, 0;
  @%p bra end;
)";
}

std::string digest() {
  return std::string(".visible .entry gm_digest(.param .u64 p_from, .param .u64 p_bytes, "
                     ".param .u64 p_seed, .param .u64 p_out)\n")
    + opening + R"(  ld.param.u64 %from, [p_from];
  ld.param.u64 %bytes, [p_bytes];
  ld.param.u64 %seed, [p_seed];
  ld.param.u64 %out, [p_out];
  mov.u64 %sum, 0;
)" + while_inside
    + load_word("%from", "%z", "word") + place() + R"(  xor.b64 %z, %z, %place;
  or.b64 %place, %place, 1;
  mul.lo.u64 %z, %z, %place;
)" + mix()
    + R"(  add.u64 %sum, %sum, %z;
  add.u64 %i, %i, %step;
  bra next;
done:
)" + warp_sum()
    + R"(  red.global.add.u64 [%out], %sum;
end:
  ret;
}
)";
}

std::string fill() {
  return std::string(".visible .entry gm_fill(.param .u64 p_to, .param .u64 p_bytes, "
                     ".param .u64 p_seed)\n")
    + opening + R"(  ld.param.u64 %from, [p_to];
  ld.param.u64 %bytes, [p_bytes];
  ld.param.u64 %seed, [p_seed];
)" + while_inside
    + place() + "  mov.u64 %z, %place;\n" + mix() + R"(  shl.b64 %t, %i, 3;
  add.u64 %at, %from, %t;
  sub.u64 %left, %bytes, %t;
  setp.lt.u64 %q, %left, 8;
  @%q bra short;
  st.global.u64 [%at], %z;
  add.u64 %i, %i, %step;
  bra next;
short:
  st.global.u8 [%at], %z;
  shr.u64 %z, %z, 8;
  add.u64 %at, %at, 1;
  sub.u64 %left, %left, 1;
  setp.ne.u64 %q, %left, 0;
  @%q bra short;
done:
  ret;
}
)";
}

std::string differ() {
  return std::string(".visible .entry gm_differ(.param .u64 p_a, .param .u64 p_b, "
                     ".param .u64 p_bytes, .param .u64 p_out)\n")
    + opening + R"(  ld.param.u64 %from, [p_a];
  ld.param.u64 %b, [p_b];
  ld.param.u64 %bytes, [p_bytes];
  ld.param.u64 %out, [p_out];
)" + while_inside
    + load_word("%from", "%z", "first") + load_word("%b", "%other", "second")
    + R"(  setp.eq.u64 %p, %z, %other;
  @%p bra same;
  red.global.add.u64 [%out], 1;
  red.global.min.u64 [%out+8], %i;
same:
  add.u64 %i, %i, %step;
  bra next;
done:
  ret;
}
)";
}

constexpr const char* reading =
  R"(.visible .entry gm_read(.param .u64 p_from, .param .u64 p_bytes, .param .u64 p_sink)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %from, %bytes, %sink, %at, %step, %t;
  ld.param.u64 %from, [p_from];
  ld.param.u64 %bytes, [p_bytes];
  ld.param.u64 %sink, [p_sink];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r1, %r2, %r0;
  mul.lo.u32 %r5, %r2, %r3;
  mul.wide.u32 %at, %r4, 16;
  mul.wide.u32 %step, %r5, 16;
  mov.u32 %r6, 0;
next:
  setp.ge.u64 %p, %at, %bytes;
  @%p bra done;
  add.u64 %t, %from, %at;
  ld.global.cg.v4.u32 {%r0, %r1, %r2, %r3}, [%t];
  or.b32 %r0, %r0, %r1;
  or.b32 %r2, %r2, %r3;
  or.b32 %r0, %r0, %r2;
  or.b32 %r6, %r6, %r0;
  add.u64 %at, %at, %step;
  bra next;
done:
  setp.eq.u32 %p, %r6, 0;
  @%p bra end;
  st.global.u32 [%sink], %r6;
end:
  ret;
}
.visible .entry gm_touch(.param .u64 p_from, .param .u64 p_bytes, .param .u64 p_step)
{
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %from, %bytes, %at, %step, %t;
  ld.param.u64 %from, [p_from];
  ld.param.u64 %bytes, [p_bytes];
  ld.param.u64 %step, [p_step];
  mov.u32 %r0, %tid.x;
  cvt.u64.u32 %at, %r0;
  mul.lo.u64 %at, %at, %step;
  mov.u32 %r1, %ntid.x;
  cvt.u64.u32 %t, %r1;
  mul.lo.u64 %step, %step, %t;
next:
  setp.ge.u64 %p, %at, %bytes;
  @%p bra done;
  add.u64 %t, %from, %at;
  ld.volatile.global.u8 %r2, [%t];
  add.u64 %at, %at, %step;
  bra next;
done:
  ret;
}
.visible .entry gm_canary(.param .u64 p_out, .param .u64 p_ns)
{
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %out, %ns, %begin, %now, %first, %last, %t;
  ld.param.u64 %out, [p_out];
  ld.param.u64 %ns, [p_ns];
  mov.u32 %r0, 0;
  mov.u64 %begin, %globaltimer;
tick:
  mov.u64 %now, %globaltimer;
  add.u32 %r0, %r0, 1;
  setp.gt.u32 %p, %r0, 10000000;
  @%p bra stop;
  setp.eq.u64 %p, %now, %begin;
  @%p bra tick;
  mov.u64 %begin, %now;
  mov.u64 %first, %clock64;
count:
  mov.u64 %now, %globaltimer;
  add.u32 %r0, %r0, 1;
  setp.gt.u32 %p, %r0, 10000000;
  @%p bra stop;
  sub.u64 %t, %now, %begin;
  setp.lt.u64 %p, %t, %ns;
  @%p bra count;
stop:
  mov.u64 %last, %clock64;
  sub.u64 %t, %last, %first;
  st.global.u64 [%out], %t;
  sub.u64 %t, %now, %begin;
  st.global.u64 [%out+8], %t;
  ret;
}
)";

} // namespace

uint64_t digest_word(uint64_t word, uint64_t index, uint64_t seed) {
  const uint64_t where = seed + (index + 1) * golden;
  return mixed((word ^ where) * (where | 1));
}

uint64_t fill_word(uint64_t index, uint64_t seed) {
  return mixed(seed + (index + 1) * golden);
}

const char* measuring_ptx() {
  static const std::string all =
    ".version 7.0\n.target sm_80\n.address_size 64\n" + digest() + fill() + differ() + reading;
  return all.c_str();
}

std::string scrub_ptx(uint32_t local_bytes, uint32_t shared_bytes) {
  constexpr int registers = 48;
  const uint32_t local = std::max(4U, (local_bytes + 3) / 4 * 4);
  std::string body;
  // Each depends on the one before, and all are wanted at the end: the assembler must keep them.
  for (int i = 1; i < registers; ++i)
    body += fmt::format("  mad.lo.u32 %v{}, %v{}, 1664525, 1013904223;\n", i, i - 1);
  body += "  bar.sync 0;\n";
  for (int i = registers - 2; i >= 0; --i)
    body += fmt::format("  mad.lo.u32 %v{0}, %v{0}, %v{1}, {2};\n", i, i + 1, i);
  return fmt::format(R"(.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 gm_room[];
.visible .entry gm_scrub(.param .u64 p_seed, .param .u64 p_sink)
.maxntid 1024, 1, 1
{{
  .reg .pred %p;
  .reg .b32 %v<{0}>, %thread, %at, %room, %got;
  .reg .b64 %seed, %sink, %slot, %k, %end;
  .local .align 4 .b8 gm_local[{1}];
  ld.param.u64 %seed, [p_seed];
  ld.param.u64 %sink, [p_sink];
  cvt.u32.u64 %v0, %seed;
  mov.u32 %thread, %tid.x;
  add.u32 %v0, %v0, %thread;
  mov.u32 %room, gm_room;
  shl.b32 %at, %thread, 2;
shared_next:
  setp.ge.u32 %p, %at, {2};
  @%p bra shared_done;
  add.u32 %v1, %room, %at;
  st.volatile.shared.u32 [%v1], %v0;
  add.u32 %at, %at, 4096;
  bra shared_next;
shared_done:
  mov.u64 %slot, gm_local;
  add.u64 %end, %slot, {1};
local_next:
  st.local.u32 [%slot], %v0;
  add.u64 %slot, %slot, 4;
  setp.lt.u64 %p, %slot, %end;
  @%p bra local_next;
{3}  // What was stored is read at a place that nobody knows before, so no store is idle.
  cvt.u64.u32 %k, %v0;
  rem.u64 %k, %k, {4};
  shl.b64 %k, %k, 2;
  mov.u64 %slot, gm_local;
  add.u64 %slot, %slot, %k;
  ld.local.u32 %got, [%slot];
  xor.b32 %v0, %v0, %got;
  setp.ne.u32 %p, %v0, 305419896;
  @%p bra over;
  st.global.u32 [%sink], %v0;
over:
  ret;
}}
)",
    registers, local, shared_bytes / 4 * 4, body, local / 4);
}

} // namespace gristmill::cuda
