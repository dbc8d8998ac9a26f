#include "tests/gpu/mock/ptx/ptx_run.hpp"

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

TEST_CASE("loads extend by their type, stores keep the low part, vectors keep their order") {
  std::vector<uint32_t> in(64), out(32 * 8);
  numbers random(1);
  for (uint32_t& x : in)
    x = static_cast<uint32_t>(random.next());
  setup s;
  s.buffer(in, false).buffer(out);
  must_pass(s.block(32).run(entry(R"(
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8; add.s64 %rd1, %rd1, %rd3;
    mul.wide.u32 %rd4, %r1, 32; add.s64 %rd2, %rd2, %rd4;
    ld.global.s8 %r2, [%rd1+3]; ld.global.nc.u16 %r3, [%rd1+6]; ld.global.s16 %rd5, [%rd1+2];
    ld.global.v2.u32 {%r4, %r5}, [%rd1];
    cvt.u32.u64 %r6, %rd5; shr.u64 %rd6, %rd5, 32; cvt.u32.u64 %r7, %rd6;
    st.global.v4.b32 [%rd2], {%r2, %r3, %r6, %r7};
    st.global.v2.b32 [%rd2+16], {%r5, %r4};
    st.global.b32 [%rd2+24], 0; st.global.u8 [%rd2+25], %r4; st.global.u16 [%rd2+28], %r5;
    st.global.u16 [%rd2+30], 77;)",
    2)));
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t a = in[2 * l], b = in[2 * l + 1];
    const uint32_t* o = &out[8 * l];
    CHECK(o[0] == static_cast<uint32_t>(static_cast<int8_t>(a >> 24)));
    CHECK(o[1] == b >> 16);
    CHECK(o[2] == static_cast<uint32_t>(static_cast<int16_t>(a >> 16)));
    CHECK(o[3] == (a >> 31 ? UINT32_MAX : 0));
    CHECK(o[4] == b);
    CHECK(o[5] == a);
    CHECK(o[6] == (a & 255) << 8);
    CHECK(o[7] == (77U << 16 | (b & 0xffff)));
  }
}

TEST_CASE("256-bit vectors, cache hints, orders and policies are accepted") {
  std::vector<uint32_t> in(256), out(256);
  for (uint32_t i = 0; i < 256; ++i)
    in[i] = i * i;
  setup s;
  s.buffer(in, false).buffer(out);
  must_pass(s.block(32).run(entry(R"(
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 32; add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
    createpolicy.fractional.L2::evict_first.b64 %rd7, 1.0;
    ld.global.nc.L1::no_allocate.L2::256B.v8.b32 {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, [%rd1];
    ld.global.L2::cache_hint.v4.b32 {%r12, %r13, _, _}, [%rd1], %rd7;
    ld.relaxed.gpu.global.u32 %r10, [%rd1]; ld.volatile.global.u32 %r11, [%rd1];
    prefetch.global.L2 [%rd1];
    st.global.L1::no_allocate.v8.b32 [%rd2], {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9};
    st.release.gpu.global.u32 [%rd2], %r12; membar.gl; fence.acq_rel.gpu; nanosleep.u32 100;)",
    2)));
  CHECK(out == in);
}

TEST_CASE("atomics return the old value and serve lanes in order") {
  std::vector<uint32_t> cell{5, 100, 7, 0, 0, 0, 1, 0}, old(32 * 4);
  setup s;
  s.buffer(cell).buffer(old);
  must_pass(s.block(32).run(entry(R"(
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd2, %rd2, %rd3;
    atom.global.add.u32 %r2, [%rd1], 2;
    atom.global.min.s32 %r3, [%rd1+4], %r1;
    atom.global.inc.u32 %r4, [%rd1+8], 10;
    red.global.or.b32 [%rd1+12], %r1;
    atom.global.cas.b32 %r5, [%rd1+16], %r1, 99;
    mov.f32 %f1, 0f3F800000; red.global.add.f32 [%rd1+20], %f1;
    atom.global.exch.b32 %r6, [%rd1+24], %r1;
    st.global.v4.b32 [%rd2], {%r2, %r3, %r4, %r5};)",
    2)));
  CHECK(cell[0] == 5 + 64);
  CHECK(cell[1] == 0);
  CHECK(cell[3] == 31);
  CHECK(cell[4] == 99);
  CHECK(cell[5] == std::bit_cast<uint32_t>(32.0F));
  CHECK(cell[6] == 31);
  uint32_t counter = 7;
  for (uint32_t l = 0; l < 32; ++l) {
    CHECK(old[4 * l] == 5 + 2 * l);
    CHECK(old[4 * l + 1] == (l == 0 ? 100 : 0));
    CHECK(old[4 * l + 2] == counter);
    CHECK(old[4 * l + 3] == (l == 0 ? 0 : 99));
    counter = counter >= 10 ? 0 : counter + 1;
  }
  CHECK(cell[2] == counter);
}

TEST_CASE("packed atomics add both halves; 64-bit ones wrap") {
  std::vector<uint32_t> cell{0x3f803f80, 0x40003c00};
  std::vector<uint64_t> wide{UINT64_MAX};
  setup s;
  s.buffer(cell).buffer(wide);
  must_pass(s.block(32).run(entry(R"(
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.b32 %r1, 0x3f804000; red.global.add.noftz.bf16x2 [%rd1], %r1;
    mov.b32 %r2, 0x3c003c00; atom.global.add.noftz.f16x2 %r3, [%rd1+4], %r2;
    red.global.add.u64 [%rd2], 3;)",
    2)));
  CHECK(cell[0] == 0x42044282); // 33 above, 65 below
  CHECK(cell[1] == 0x50405020); // 34 above, 33 below
  CHECK(wide[0] == 95);
}

TEST_CASE("shared memory, static and dynamic, by plain and by generic addresses") {
  std::vector<uint32_t> out(128);
  setup s;
  s.buffer(out);
  s.what.dynamic_shared = 512;
  std::string text(head);
  text += ".extern .shared .align 16 .b8 tail[];\n.shared .align 4 .b8 front[512];\n";
  text += entry(R"(
    .shared .align 8 .b8 own[8];
    ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
    shl.b32 %r2, %r1, 2; mov.u32 %r3, front; add.s32 %r4, %r3, %r2;
    mov.u64 %rd4, tail; add.s64 %rd5, %rd4, %rd2; cvta.shared.u64 %rd6, %rd5;
    st.shared.u32 [%r4], %r1; add.s32 %r5, %r1, 1000; st.u32 [%rd6], %r5;
    st.shared.u32 [own], 5; st.shared.u32 [own+4], 6;
    bar.sync 0;
    xor.b32 %r6, %r2, 508; add.s32 %r7, %r3, %r6; ld.shared.u32 %r8, [%r7];
    cvt.u64.u32 %rd7, %r6; add.s64 %rd8, %rd4, %rd7; ld.shared.u32 %r9, [%rd8];
    cvta.shared.u64 %rd9, %rd4; cvta.to.shared.u64 %rd10, %rd9; setp.eq.s64 %p1, %rd10, %rd4;
    isspacep.shared %p2, %rd9; and.pred %p1, %p1, %p2; selp.b32 %r10, 1, 0, %p1;
    ld.shared.v2.u32 {%r11, %r12}, [own];
    add.s32 %r8, %r8, %r9; add.s32 %r8, %r8, %r10; add.s32 %r8, %r8, %r11; add.s32 %r8, %r8, %r12;
    add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r8;)")
            .substr(head.size());
  must_pass(s.block(128).run(text));
  for (uint32_t i = 0; i < 128; ++i)
    CHECK(out[i] == 2 * (127 - i) + 1000 + 12);
}

TEST_CASE("local arrays belong to one thread, by local and by generic addresses") {
  std::vector<uint32_t> out(64);
  setup s;
  s.buffer(out);
  must_pass(s.block(64).run(entry(R"(
    .local .align 8 .b8 mine[64];
    ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    mov.u64 %rd3, mine; cvta.local.u64 %rd4, %rd3;
    and.b32 %r2, %r1, 7; mul.wide.u32 %rd5, %r2, 8; add.s64 %rd6, %rd3, %rd5; add.s64 %rd7, %rd4, %rd5;
    st.local.u32 [%rd6], %r1; st.u32 [%rd7+4], 1;
    ld.u32 %r3, [%rd7]; ld.local.u32 %r4, [%rd6+4]; add.s32 %r5, %r3, %r4; st.global.u32 [%rd1], %r5;)")));
  for (uint32_t i = 0; i < 64; ++i)
    CHECK(out[i] == i + 1);
}

TEST_CASE("module variables: tables, addresses of others, and values that persist") {
  std::vector<uint64_t> out(4);
  std::string text(head);
  text += ".const .align 4 .b8 table[8] = {1, 0, 0, 0, 255, 255};\n"
          ".visible .global .align 8 .u64 next = generic(number);\n"
          ".global .align 4 .u32 number = 41;\n.global .align 8 .f64 half = 0.5;\n"
          ".visible .global .align 8 .u64 code = k;\n";
  text += entry(R"(
    ld.param.u64 %rd1, [p0];
    ld.const.u32 %r1, [table+4]; mov.u64 %rd2, table; ld.const.u8 %r2, [%rd2];
    ld.global.u64 %rd3, [next]; ld.u32 %r3, [%rd3]; add.s32 %r3, %r3, 1; st.global.u32 [number], %r3;
    ld.global.f64 %fd1, [half]; mov.b64 %rd6, %fd1;
    cvt.u64.u32 %rd4, %r1; cvt.u64.u32 %rd5, %r2; cvt.u64.u32 %rd7, %r3;
    st.global.v2.u64 [%rd1], {%rd4, %rd5}; st.global.v2.u64 [%rd1+16], {%rd7, %rd6};)")
            .substr(head.size());
  const auto m = must_parse(text);
  const auto state = load(m);
  setup s;
  s.buffer(out);
  const auto before = state->snapshot();
  must_pass(run(*state, s.what));
  CHECK(out == std::vector<uint64_t>{0xffff, 1, 42, std::bit_cast<uint64_t>(0.5)});
  must_pass(run(*state, s.what));
  CHECK(out[2] == 43);
  CHECK(state->snapshot() != before);
  state->restore(before);
  CHECK(state->snapshot() == before);
  must_pass(run(*state, s.what));
  CHECK(out[2] == 42);
  const auto other = load(m); // Its variables are its own.
  must_pass(run(*other, s.what));
  CHECK(out[2] == 42);
  CHECK(initial_symbol(*m, "code") == "k");
  CHECK(initial_symbol(*m, "next") == "number");
  CHECK_FALSE(initial_symbol(*m, "number"));
  CHECK_FALSE(initial_symbol(*m, "nothing"));
  CHECK(*state->address("number") == *other->address("number"));
  CHECK(globals(*m).size() == 5);
  CHECK(globals(*m)[0] == global_info{"table", 8, true});
}

TEST_CASE("parameters: structs by value at any offset, by constant and by computed address") {
  struct pair {
    uint32_t a[3];
    uint16_t b;
  };
  std::vector<uint32_t> out(32);
  std::string text(head);
  text += R"(.visible .entry k(.param .u64 .ptr .global .align 16 to, .param .align 4 .b8 s[16],
      .param .s8 small, .param .f64 wide)
    { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<3>; .reg .f64 %fd<3>;
    ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    mov.b64 %rd3, s; rem.u32 %r2, %r1, 3; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd5, %rd3, %rd4;
    ld.param.u32 %r3, [%rd5]; cvta.param.u64 %rd6, %rd5; ld.u32 %r4, [%rd6];
    ld.param.v2.u32 {%r5, %r6}, [s+4]; ld.param.u16 %r6, [s+12]; ld.param.s8 %h1, [small];
    cvt.s32.s16 %r7, %h1; ld.param.f64 %fd1, [wide]; cvt.rzi.s32.f64 %r8, %fd1;
    add.s32 %r3, %r3, %r4; add.s32 %r3, %r3, %r5; add.s32 %r3, %r3, %r6; add.s32 %r3, %r3, %r7;
    add.s32 %r3, %r3, %r8; st.global.u32 [%rd1], %r3; ret; })";
  const auto m = must_parse(text);
  const auto info = entries(*m).front();
  REQUIRE(info.parameters.size() == 4);
  CHECK(info.parameters[1] == parameter{"s", 8, 16, 4, "b8"});
  CHECK(info.parameters[2] == parameter{"small", 24, 1, 1, "s8"});
  CHECK(info.parameters[3] == parameter{"wide", 32, 8, 8, "f64"});
  setup s;
  s.buffer(out).block(32);
  s.what.parameters.resize(40);
  const pair p{{10, 20, 30}, 500};
  std::memcpy(&s.what.parameters[8], &p, 16);
  s.what.parameters[24] = 0xfe; // -2
  const double wide = -7.5;
  std::memcpy(&s.what.parameters[32], &wide, 8);
  must_pass(s.run(m));
  for (uint32_t i = 0; i < 32; ++i)
    CHECK(out[i] == 2 * p.a[i % 3] + 20 + 500 - 2 - 7);
}
