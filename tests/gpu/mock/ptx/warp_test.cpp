#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <bit>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

/// Runs a warp that computes %r10 from its lane number %r1; the result of each lane.
std::vector<uint32_t> warp_result(const std::string& body, uint32_t threads = 32) {
  std::vector<uint32_t> out(threads);
  setup s;
  s.buffer(out).block(threads);
  must_pass(s.run(entry("mov.u32 %r1, %tid.x;\n" + body
    + "\nld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; "
      "st.global.u32 [%rd1], %r10;")));
  return out;
}

} // namespace

TEST_CASE("shuffles move values within their segment and say who was out of range") {
  const auto xor1 = warp_result("shfl.sync.bfly.b32 %r10, %r1, 5, 31, -1;");
  const auto down =
    warp_result("shfl.sync.down.b32 %r10|%p1, %r1, 3, 31, -1; @!%p1 mov.u32 %r10, 99;");
  const auto up = warp_result("shfl.sync.up.b32 %r10, %r1, 2, 0x1000, -1;");   // segments of 16
  const auto idx = warp_result("shfl.sync.idx.b32 %r10, %r1, 3, 0x181f, -1;"); // segments of 8
  for (uint32_t l = 0; l < 32; ++l) {
    CHECK(xor1[l] == (l ^ 5));
    CHECK(down[l] == (l + 3 < 32 ? l + 3 : 99));
    CHECK(up[l] == (l % 16 >= 2 ? l - 2 : l));
    CHECK(idx[l] == l / 8 * 8 + 3);
  }
}

TEST_CASE("votes, matches, reductions and elections see the lanes of the mask") {
  const auto ballot = warp_result("setp.gt.u32 %p1, %r1, 20; vote.sync.ballot.b32 %r10, %p1, -1;");
  const auto all = warp_result("setp.lt.u32 %p1, %r1, 40; vote.sync.all.pred %p2, %p1, -1; "
                               "vote.sync.any.pred %p3, !%p1, -1; selp.b32 %r10, 1, 0, %p2; @%p3 "
                               "add.s32 %r10, %r10, 2;");
  const auto match = warp_result("and.b32 %r2, %r1, 3; match.any.sync.b32 %r10, %r2, -1;");
  const auto same = warp_result("mov.u32 %r2, 7; match.all.sync.b32 %r10|%p1, %r2, -1;");
  const auto sum = warp_result("redux.sync.add.s32 %r10, %r1, -1;");
  const auto least = warp_result("sub.s32 %r2, 3, %r1; redux.sync.min.s32 %r10, %r2, -1;");
  const auto elected = warp_result("elect.sync %r10|%p1, -1; @%p1 add.s32 %r10, %r10, 50;");
  for (uint32_t l = 0; l < 32; ++l) {
    CHECK(ballot[l] == 0xffe00000);
    CHECK(all[l] == 1);
    CHECK(match[l] == 0x11111111U << (l & 3));
    CHECK(same[l] == UINT32_MAX);
    CHECK(sum[l] == 31 * 16);
    CHECK(least[l] == static_cast<uint32_t>(-28));
    CHECK(elected[l] == (l == 0 ? 50 : 0));
  }
}

TEST_CASE("lanes with different masks at one instruction are served apart") {
  const auto half = warp_result("setp.lt.u32 %p1, %r1, 12; selp.b32 %r2, 0xfff, 0xfffff000, %p1; "
                                "redux.sync.add.s32 %r10, %r1, %r2;");
  for (uint32_t l = 0; l < 32; ++l)
    CHECK(half[l] == (l < 12 ? 66 : 496 - 66));
}

TEST_CASE("lanes on different paths meet at a warp-synchronous instruction") {
  // Even lanes arrive from a longer path.
  const auto sum = warp_result(R"(
    and.b32 %r2, %r1, 1; setp.eq.s32 %p1, %r2, 0; mov.u32 %r3, 1; @!%p1 bra JOIN;
    mov.u32 %r4, 0;
    LOOP: add.s32 %r4, %r4, 1; add.s32 %r3, %r3, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra LOOP;
    JOIN: redux.sync.add.s32 %r10, %r3, -1;)");
  const auto active = warp_result("setp.lt.u32 %p1, %r1, 4; mov.u32 %r10, 0; @!%p1 bra OUT; "
                                  "activemask.b32 %r10; OUT: bar.warp.sync -1;");
  for (uint32_t l = 0; l < 32; ++l) {
    CHECK(sum[l] == 16 * 10 + 16);
    CHECK(active[l] == (l < 4 ? 15 : 0));
  }
}

TEST_CASE("a lane that waits for another lane of its warp gets it") {
  // Lane 0 spins, at a lower pc, until lane 1 has set the flag.
  const auto out = warp_result(R"(
    .shared .align 4 .u32 flag;
    mov.u32 %r10, 5; st.shared.u32 [flag], 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra SET;
    WAIT: ld.volatile.shared.u32 %r2, [flag]; setp.eq.s32 %p2, %r2, 0; @%p2 bra WAIT;
    mov.u32 %r10, %r2; bra END;
    SET: st.volatile.shared.u32 [flag], 77;
    END: bar.warp.sync -1;)");
  CHECK(out[0] == 77);
  CHECK(out[1] == 5);
}

TEST_CASE("branch tables go to the label of each lane") {
  const auto out = warp_result(R"(
    and.b32 %r2, %r1, 3; mov.u32 %r10, 0;
    TABLE: .branchtargets ONE, TWO, THREE, ONE;
    brx.idx %r2, TABLE;
    ONE: mov.u32 %r10, 1; bra.uni END;
    TWO: mov.u32 %r10, 2; bra.uni END;
    THREE: mov.u32 %r10, 3;
    END: )");
  for (uint32_t l = 0; l < 32; ++l)
    CHECK(out[l] == (l % 4 == 1 ? 2 : l % 4 == 2 ? 3 : 1));
}

TEST_CASE("labels and registers of an inner scope hide those outside") {
  const auto out = warp_result(R"(
    mov.u32 %r10, 1;
    { .reg .b32 %r10; .reg .pred done; mov.u32 %r10, 0;
      AGAIN: add.s32 %r10, %r10, 1; setp.ge.u32 done, %r10, 3; @!done bra AGAIN; }
    { .reg .pred done; AGAIN: add.s32 %r10, %r10, 1; setp.ge.u32 done, %r10, 6; @!done bra AGAIN; })");
  CHECK(out[0] == 6);
}

TEST_CASE("barriers order the warps of a block, also by number and count") {
  // Warps 0 and 1 produce and consume through barriers 1 and 2; warp 2 takes no part.
  const auto out = warp_result(R"(
    .shared .align 4 .u32 cell;
    mov.u32 %r10, 0; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 2; @%p1 bra END;
    setp.eq.u32 %p2, %r2, 1; @%p2 bra CONSUME;
    st.shared.u32 [cell], 11; bar.arrive 1, 64; bar.sync 2, 64; ld.shared.u32 %r10, [cell]; bra.uni END;
    CONSUME: bar.sync 1, 64; ld.shared.u32 %r10, [cell]; st.shared.u32 [cell], 22; bar.arrive 2, 64;
    END: barrier.sync 0;)",
    96);
  CHECK(out[0] == 22);
  CHECK(out[40] == 11);
  CHECK(out[70] == 0);
}

TEST_CASE("barriers that reduce give every thread the result") {
  const auto out = warp_result(R"(
    setp.lt.u32 %p1, %r1, 50; barrier.red.popc.aligned.u32 %r10, 0, %p1;
    barrier.red.and.aligned.pred %p2, 0, %p1; barrier.red.or.aligned.pred %p3, 0, !%p1;
    @%p2 add.s32 %r10, %r10, 1000; @%p3 add.s32 %r10, %r10, 100;)",
    80);
  for (uint32_t i = 0; i < 80; ++i)
    CHECK(out[i] == 150);
}

TEST_CASE("special registers say where a thread is") {
  std::vector<uint32_t> out(2 * 3 * 8 * 8);
  setup s;
  s.buffer(out).grid(2, 3).block(8, 8);
  must_pass(s.run(entry(R"(
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y;
    mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mov.u32 %r7, %laneid; mov.u32 %r8, %warpid;
    mad.lo.s32 %r9, %r4, %r6, %r3; mad.lo.s32 %r9, %r9, 64, 0; mad.lo.s32 %r10, %r2, %r5, %r1;
    add.s32 %r9, %r9, %r10; mul.wide.u32 %rd2, %r9, 4; ld.param.u64 %rd1, [p0]; add.s64 %rd1, %rd1, %rd2;
    mov.u32 %r11, %lanemask_lt; popc.b32 %r12, %r11; setp.ne.s32 %p1, %r12, %r7; @%p1 trap;
    shl.b32 %r13, %r8, 5; add.s32 %r13, %r13, %r7; setp.ne.s32 %p1, %r13, %r10; @%p1 trap;
    st.global.u32 [%rd1], %r9;)")));
  for (uint32_t i = 0; i < out.size(); ++i)
    CHECK(out[i] == i);
}
