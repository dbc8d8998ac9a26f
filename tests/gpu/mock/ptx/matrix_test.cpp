#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

/// Small whole numbers, exact in every format here.
int element(uint32_t row, uint32_t column, uint32_t seed) {
  return static_cast<int>((row * 7 + column * 13 + seed * 5 + row * column) % 9) - 4;
}

uint32_t pack_bf16(int low, int high) {
  const auto one = [](int x) { return std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16; };
  return one(high) << 16 | one(low);
}

uint32_t pack_f16(int low, int high) {
  const auto one = [](int x) -> uint32_t {
    if (x == 0)
      return 0;
    const int magnitude = std::abs(x);
    const int exponent = std::ilogb(magnitude);
    return static_cast<uint32_t>(
      (x < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | ((magnitude << (10 - exponent)) & 0x3ff));
  };
  return one(high) << 16 | one(low);
}

} // namespace

TEST_CASE("mma.sync multiplies 16x16 by 16x8 in the layout of its fragments") {
  for (const bool brain : {true, false}) {
    std::vector<uint32_t> a(32 * 4), b(32 * 2);
    std::vector<float> c(32 * 4), d(32 * 4);
    for (uint32_t l = 0; l < 32; ++l) {
      const uint32_t g = l / 4, t = l % 4 * 2;
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t row = g + i % 2 * 8, k = t + i / 2 * 8;
        a[4 * l + i] = (brain ? pack_bf16 : pack_f16)(element(row, k, 1), element(row, k + 1, 1));
        c[4 * l + i] = static_cast<float>(element(g + i / 2 * 8, t + i % 2, 3));
      }
      for (uint32_t i = 0; i < 2; ++i)
        b[2 * l + i] =
          (brain ? pack_bf16 : pack_f16)(element(t + i * 8, g, 2), element(t + i * 8 + 1, g, 2));
    }
    setup s;
    s.buffer(a).buffer(b).buffer(c).buffer(d).block(32);
    const std::string type = brain ? "bf16" : "f16";
    const outcome result = s.run(entry(R"(
      mov.u32 %r1, %tid.x; mul.wide.u32 %rd5, %r1, 16; mul.wide.u32 %rd6, %r1, 8;
      ld.param.u64 %rd1, [p0]; add.s64 %rd1, %rd1, %rd5; ld.param.u64 %rd2, [p1]; add.s64 %rd2, %rd2, %rd6;
      ld.param.u64 %rd3, [p2]; add.s64 %rd3, %rd3, %rd5; ld.param.u64 %rd4, [p3]; add.s64 %rd4, %rd4, %rd5;
      ld.global.v4.b32 {%r2,%r3,%r4,%r5}, [%rd1]; ld.global.v2.b32 {%r6,%r7}, [%rd2];
      ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd3];
      mma.sync.aligned.m16n8k16.row.col.f32.)"
        + type + "." + type + R"(.f32
        {%f1,%f2,%f3,%f4}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%f1,%f2,%f3,%f4};
      st.global.v4.f32 [%rd4], {%f1,%f2,%f3,%f4};)",
      4));
    must_pass(result);
    CHECK(result.done.mma_flops == 2 * 16 * 8 * 16);
    for (uint32_t l = 0; l < 32; ++l)
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
        int want = element(row, column, 3);
        for (uint32_t k = 0; k < 16; ++k)
          want += element(row, k, 1) * element(k, column, 2);
        CAPTURE(brain);
        REQUIRE(d[4 * l + i] == static_cast<float>(want));
      }
  }
}

TEST_CASE(
  "ldmatrix and stmatrix spread rows of shared memory over the lanes, plain or transposed") {
  std::vector<uint32_t> out(32 * 6);
  setup s;
  s.buffer(out).block(32);
  // Rows of 16 bytes; element (r, c) of matrix m is m * 64 + r * 8 + c.
  must_pass(s.run(entry(R"(
    .shared .align 16 .b8 tile[512]; .shared .align 16 .b8 copy[512];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.s32 %r4, %r2, %r3;
    shl.b32 %r5, %r1, 3; mov.u32 %r6, 0;
    FILL: add.s32 %r7, %r5, %r6; cvt.u16.u32 %h1, %r7; shl.b32 %r8, %r6, 1; add.s32 %r9, %r4, %r8;
    st.shared.u16 [%r9], %h1; add.s32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 8; @%p1 bra FILL;
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23}, [%r4];
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r24}, [%r4];
    add.s32 %r10, %r4, 512;
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r10], {%r20,%r21,%r22,%r23};
    bar.sync 0; ld.shared.u32 %r25, [%r10+4];
    ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 24; add.s64 %rd1, %rd1, %rd2;
    st.global.v2.b32 [%rd1], {%r20,%r21}; st.global.v2.b32 [%rd1+8], {%r22,%r23};
    st.global.v2.b32 [%rd1+16], {%r24,%r25};)")));
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t r = l / 4, c = l % 4 * 2;
    for (uint32_t m = 0; m < 4; ++m) {
      const uint32_t first = m * 64 + r * 8 + c;
      CHECK(out[6 * l + m] == ((first + 1) << 16 | first));
    }
    CHECK(out[6 * l + 4] == (((c + 1) * 8 + r) << 16 | (c * 8 + r)));
    CHECK(out[6 * l + 5] == ((8 * l + 3) << 16 | (8 * l + 2)));
  }
}

TEST_CASE("cp.async copies, fills up with zeros, and can be told to ignore its source") {
  std::vector<uint32_t> in(128), out(32 * 8);
  for (uint32_t i = 0; i < 128; ++i)
    in[i] = i + 1;
  setup s;
  s.buffer(in, false).buffer(out).block(32);
  must_pass(s.run(entry(R"(
    .shared .align 16 .b8 tile[1024];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16; ld.param.u64 %rd1, [p0]; add.s64 %rd1, %rd1, %rd3;
    mov.u32 %r2, tile; shl.b32 %r3, %r1, 5; add.s32 %r4, %r2, %r3;
    and.b32 %r5, %r1, 12;
    cp.async.cg.shared.global.L2::128B [%r4], [%rd1], 16, %r5;
    setp.lt.u32 %p1, %r1, 8;
    cp.async.ca.shared.global [%r4+16], [%rd1+8], 8, %p1; cp.async.ca.shared.global [%r4+24], [%rd1], 8;
    cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; bar.sync 0;
    ld.shared.v4.b32 {%r10,%r11,%r12,%r13}, [%r4]; ld.shared.v4.b32 {%r14,%r15,%r16,%r17}, [%r4+16];
    ld.param.u64 %rd2, [p1]; mul.wide.u32 %rd4, %r1, 32; add.s64 %rd2, %rd2, %rd4;
    st.global.v4.b32 [%rd2], {%r10,%r11,%r12,%r13}; st.global.v4.b32 [%rd2+16], {%r14,%r15,%r16,%r17};)",
    2)));
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t words = (l & 12) / 4;
    for (uint32_t k = 0; k < 4; ++k)
      CHECK(out[8 * l + k] == (k < words ? 4 * l + k + 1 : 0));
    CHECK(out[8 * l + 4] == (l < 8 ? 0 : 4 * l + 3));
    CHECK(out[8 * l + 7] == 4 * l + 2);
  }
}

TEST_CASE("bulk copies complete on an mbarrier and go back to global memory") {
  std::vector<uint32_t> in(64), out(64), phases(2);
  for (uint32_t i = 0; i < 64; ++i)
    in[i] = i * 3;
  setup s;
  s.buffer(in, false).buffer(out).buffer(phases).block(64);
  must_pass(s.run(entry(R"(
    .shared .align 128 .b8 tile[256]; .shared .align 8 .b8 bar[8];
    mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2];
    mov.u32 %r2, tile; mov.u32 %r3, bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT0;
    mbarrier.init.shared::cta.b64 [%r3], 64; fence.mbarrier_init.release.cluster;
    WAIT0: bar.sync 0; @%p1 bra ARRIVE;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [%r3], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];
    bra.uni WAIT;
    ARRIVE: mbarrier.arrive.shared.b64 %rd5, [%r3];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra WAIT;
    mbarrier.test_wait.shared.b64 %p3, [%r3], %rd5; @!%p3 trap;
    shl.b32 %r4, %r1, 2; add.s32 %r5, %r2, %r4; ld.shared.u32 %r6, [%r5]; add.s32 %r6, %r6, 1;
    st.shared.u32 [%r5], %r6; bar.sync 0; @%p1 ret;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 256; cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0; mbarrier.inval.shared.b64 [%r3];)",
    3)));
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(out[i] == 3 * i + 1);
}
