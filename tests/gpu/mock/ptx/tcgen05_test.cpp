// tcgen05 is unverified on hardware: these tests hold the interpreter against references that were
// written from the PTX manual.

#include "tests/gpu/mock/ptx/tcgen05_run.hpp"

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;
using namespace gristmill::ptx::testing::tcgen05;

namespace {

/// Block, lane and column at which element (row, n) of D lies.
struct cell {
  uint32_t block = 0, lane = 0, column = 0;
};
cell place_of(const product& p, uint32_t row, uint32_t n) {
  if (p.group == 1)
    return {0, p.m == 64 ? row / 16 * 32 + row % 16 : row, n};
  if (p.m == 256)
    return {row / 128, row % 128, n};
  return {row / 64, row % 64 + n / (p.n / 2) * 64, n % (p.n / 2)};
}

uint32_t wanted(const product& p, uint32_t row, uint32_t n, float before) {
  const bool signed_a = p.a.code != u8.code || !p.a.is_integer();
  const bool signed_b = p.b.code != u8.code || !p.b.is_integer();
  float sum = before;
  for (uint32_t k = 0; k < p.k(); ++k) {
    float term = static_cast<float>(
      element(row, k, 1, signed_a) * element(n, k, 2, signed_b) * (p.negates_a ? -1 : 1));
    if (p.block != 0)
      term *= scale_value(row, k / p.block, p.scales_e4m3)
        * scale_value(n + 1, k / p.block, p.scales_e4m3);
    sum += term;
  }
  if (p.d == 2)
    return static_cast<uint32_t>(static_cast<int32_t>(sum));
  if (p.d == 0)
    return f16.bits(static_cast<int>(sum));
  return std::bit_cast<uint32_t>(sum);
}

void check_product(product p) {
  p.kind = p.kind.empty() ? p.a.name : p.kind;
  INFO(p.kind << " M " << p.m << " N " << p.n << " group " << p.group << " types " << p.a.code
              << " " << p.b.code << " spans " << p.left.span << " " << p.right.span << " mn "
              << p.left.mn_major << p.right.mn_major << " d " << p.d);
  const ran r = run_product(p);
  must_pass(r.result);
  for (const fault& f : r.result.findings)
    FAIL_CHECK(f.what);
  CHECK(r.result.done.mma_flops == uint64_t{2} * p.m * p.n * p.k() * p.times);
  size_t wrong = 0;
  for (uint32_t row = 0; row < p.m; ++row)
    for (uint32_t n = 0; n < p.n; ++n) {
      const cell c = place_of(p, row, n);
      const uint32_t got = r.out[(size_t{c.block} * 128 + c.lane) * out_columns + c.column];
      float before = 0;
      for (uint32_t i = 1; i < p.times; ++i)
        before = std::bit_cast<float>(wanted(p, row, n, before));
      wrong += got != wanted(p, row, n, before);
    }
  CHECK(wrong == 0);
}

} // namespace

TEST_CASE(
  "tcgen05.mma of 16-bit floats reads both operands in every swizzle and both major-nesses") {
  for (const format& type : {f16, bf16})
    for (const uint32_t span : {0U, 32U, 64U, 128U})
      for (const int majors : {0, 1, 2, 3})
        check_product({.a = type,
          .b = type,
          .n = 64,
          .left = {.span = span, .mn_major = (majors & 1) != 0},
          .right = {.span = span, .mn_major = (majors & 2) != 0}});
}

TEST_CASE("tcgen05.mma has the other shapes, signs, results of f16, sums and masks") {
  check_product({.m = 64, .n = 24});
  check_product({.n = 128, .negates_a = true});
  check_product({.n = 16, .d = 0});
  check_product({.n = 32, .times = 3});
  check_product({.m = 64, .n = 40, .a_in_memory = true});
  check_product({.n = 48, .a_in_memory = true, .checks = all_checks});
  product masked{.n = 16, .mask = "{1, 0, 0, 0x80000000}, "};
  masked.kind = "f16";
  const ran r = run_product(masked);
  must_pass(r.result);
  for (const uint32_t lane : {0U, 1U, 126U, 127U})
    CHECK((r.out[lane * out_columns] == UINT32_MAX) == (lane == 0 || lane == 127));
}

TEST_CASE("tcgen05.mma of tf32 takes K-major operands, and others by pieces of 32 bytes") {
  for (const uint32_t span : {0U, 128U})
    check_product({.a = tf32, .b = tf32, .left = {.span = span}, .right = {.span = span}});
  check_product({.a = tf32,
    .b = tf32,
    .n = 64,
    .left = {.span = 128, .mn_major = true, .by_32 = true},
    .right = {.span = 128, .mn_major = true, .by_32 = true}});
  check_product({.a = tf32, .b = tf32, .a_in_memory = true});
}

TEST_CASE("tcgen05.mma of floats of 8, 6 and 4 bits and of bytes, in any two types") {
  for (const format& a : {e4m3, e5m2, e2m3, e3m2, e2m1})
    for (const format& b : {e4m3, e5m2, e2m3, e3m2, e2m1})
      check_product({.a = a, .b = b, .right = {.span = 64}});
  check_product({.a = e4m3,
    .b = e5m2,
    .n = 32,
    .left = {.span = 128, .mn_major = true},
    .right = {.span = 32, .mn_major = true}});
  for (const format& a : {s8, u8})
    check_product({.a = a, .b = s8, .n = 48, .d = 2, .saturates = a.code == 1});
}

TEST_CASE("tcgen05.mma with block scales of A and B in tensor memory") {
  for (const uint32_t byte : {0U, 1U, 3U})
    check_product({.a = e4m3,
      .b = e2m1,
      .n = 64,
      .kind = "mxf8f6f4",
      .suffix = ".block_scale",
      .block = 32,
      .scale_byte = byte,
      .checks = all_checks});
  for (const uint32_t byte : {0U, 2U})
    check_product({.a = fp4,
      .b = fp4,
      .n = 64,
      .kind = "mxf4",
      .suffix = ".block_scale.scale_vec::2X",
      .block = 32,
      .scale_byte = byte});
  check_product({.a = fp4,
    .b = fp4,
    .n = 128,
    .left = {.span = 128},
    .kind = "mxf4nvf4",
    .suffix = ".block_scale.scale_vec::4X",
    .block = 16,
    .scales_e4m3 = true});
  check_product({.a = fp4,
    .b = fp4,
    .n = 32,
    .kind = "mxf4nvf4",
    .suffix = ".block_scale.block32",
    .block = 32});
}

TEST_CASE("two blocks multiply together: each brings its rows of A and half the columns of B") {
  for (const uint32_t m : {256U, 128U}) {
    check_product({.m = m,
      .n = 64,
      .left = {.span = 128},
      .right = {.span = 128},
      .group = 2,
      .times = 2,
      .checks = all_checks});
    check_product({.a = e4m3, .b = e4m3, .m = m, .n = 32, .group = 2});
  }
  check_product({.m = 256, .n = 32, .group = 2, .a_in_memory = true});
  check_product({.m = 128, .n = 32, .group = 2, .a_in_memory = true});
  check_product({.a = e5m2,
    .b = e4m3,
    .m = 256,
    .n = 64,
    .group = 2,
    .kind = "mxf8f6f4",
    .suffix = ".block_scale",
    .block = 32});
}

TEST_CASE("tcgen05.ld and tcgen05.st lay the registers of a warp out as the manual's figures do") {
  // All shapes store and load the same rectangle, whose cells then hold what the shape says.
  struct shape {
    std::string name;
    uint32_t registers, columns, lanes;
    std::function<std::pair<uint32_t, uint32_t>(uint32_t, uint32_t)> cell;
  };
  const std::vector<shape> shapes{
    {"32x32b.x4", 4, 4, 32, [](uint32_t t, uint32_t r) { return std::pair(t, r); }},
    {"16x64b.x2", 2, 4, 16,
      [](uint32_t t, uint32_t r) { return std::pair(t % 2 * 8 + t / 4, r * 2 + t % 4 / 2); }},
    {"16x128b.x2", 4, 8, 16,
      [](uint32_t t, uint32_t r) { return std::pair(r % 2 * 8 + t / 4, r / 2 * 4 + t % 4); }},
    {"16x256b.x2", 8, 16, 16,
      [](uint32_t t, uint32_t r) {
        return std::pair(r % 4 / 2 * 8 + t / 4, r / 4 * 8 + t % 4 * 2 + r % 2);
      }},
    {"16x32bx2.x4", 4, 8, 16,
      [](uint32_t t, uint32_t r) { return std::pair(t % 16, r + t / 16 * 4); }}};
  for (const shape& s : shapes) {
    INFO(s.name);
    const bool split = s.name.starts_with("16x32bx2");
    std::string body = ".shared .align 4 .b32 where; .reg .b32 %d<8>; .reg .b32 %e<32>;\n"
                       "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %laneid; mov.u32 %r5, where;\n"
                       "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32;\n"
                       "ld.shared.b32 %r7, [%r5];\n";
    for (uint32_t i = 0; i < s.registers; ++i)
      body += "mad.lo.u32 %d" + std::to_string(i) + ", %r1, 100, " + std::to_string(i) + ";\n";
    body += "tcgen05.st.sync.aligned." + s.name + ".b32 [%r7], " + (split ? "4, " : "")
      + registers("d", s.registers)
      + ";\ntcgen05.wait::st.sync.aligned;\ntcgen05.ld.sync.aligned.32x32b.x32.b32 "
      + registers("e", 32) + ", [%r7];\ntcgen05.ld.sync.aligned." + s.name + ".b32 "
      + registers("d", s.registers) + ", [%r7]" + (split ? ", 4" : "")
      + ";\ntcgen05.wait::ld.sync.aligned;\nmul.wide.u32 %rd2, %r1, 256; add.s64 %rd1, %rd1, "
        "%rd2;\n";
    for (uint32_t i = 0; i < 32; ++i)
      body += "st.global.b32 [%rd1+" + std::to_string(4 * i) + "], %e" + std::to_string(i) + ";\n";
    for (uint32_t i = 0; i < s.registers; ++i)
      body +=
        "st.global.b32 [%rd1+" + std::to_string(128 + 4 * i) + "], %d" + std::to_string(i) + ";\n";
    body += "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;\n";
    std::vector<uint32_t> out(32 * 64);
    must_pass(setup().buffer(out).block(32).run(entry(body)));
    for (uint32_t t = 0; t < 32; ++t)
      for (uint32_t r = 0; r < s.registers; ++r) {
        const auto [lane, column] = s.cell(t, r);
        CHECK(out[lane * 64 + column] == t * 100 + r);
        CHECK(out[t * 64 + 32 + r] == t * 100 + r);
      }
    CHECK(out[s.lanes * 64 - 64 + s.columns] == UINT32_MAX);
  }
}

TEST_CASE("tcgen05.ld packs and tcgen05.st unpacks halves of two columns") {
  const std::string body =
    ".shared .align 4 .b32 where; ld.param.u64 %rd1, [p0]; mov.u32 %r1, %laneid; mov.u32 %r5, "
    "where;\n"
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32; ld.shared.b32 %r7, [%r5];\n"
    "mov.b32 %r10, 0x00020001; mov.b32 %r11, 0x00040003;\n"
    "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r7], {%r10, %r11};\n"
    "tcgen05.wait::st.sync.aligned;\n"
    "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r12, %r13, %r14, %r15}, [%r7];\n"
    "tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {%r16}, [%r7+2];\n"
    "tcgen05.wait::ld.sync.aligned;\n"
    "mul.wide.u32 %rd2, %r1, 32; add.s64 %rd1, %rd1, %rd2;\n"
    "st.global.v4.b32 [%rd1], {%r12, %r13, %r14, %r15}; st.global.b32 [%rd1+16], %r16;\n"
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;\n";
  std::vector<uint32_t> out(32 * 8);
  must_pass(setup().buffer(out).block(32).run(entry(body)));
  CHECK(std::vector<uint32_t>(out.begin() + 8, out.begin() + 13)
    == std::vector<uint32_t>{1, 2, 3, 4, 0x00040003});
}

TEST_CASE("tcgen05.cp spreads rows of shared memory over the lanes, and unpacks small elements") {
  struct shape {
    std::string name;
    uint32_t bytes;
    std::function<std::vector<uint32_t>(uint32_t)> lanes;
    uint32_t rows;
  };
  const std::vector<shape> shapes{{"128x256b", 32, [](uint32_t r) { return std::vector{r}; }, 128},
    {"128x128b", 16, [](uint32_t r) { return std::vector{r}; }, 128},
    {"64x128b.warpx2::02_13", 16,
      [](uint32_t r) {
        return std::vector{r, r + 64};
      },
      64},
    {"64x128b.warpx2::01_23", 16,
      [](uint32_t r) {
        return std::vector{r / 32 * 64 + r % 32, r / 32 * 64 + r % 32 + 32};
      },
      64},
    {"32x128b.warpx4", 16,
      [](uint32_t r) {
        return std::vector{r, r + 32, r + 64, r + 96};
      },
      32},
    {"4x256b", 32, [](uint32_t r) { return std::vector{r * 32}; }, 4}};
  const auto text = [](const std::string& name) {
    return entry(R"(
    .shared .align 1024 .b8 tile[8192]; .shared .align 8 .b64 all; .shared .align 4 .b32 where;
    .reg .b32 %e<8>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
    mov.u32 %r4, all; mov.u32 %r5, where; setp.ne.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32;
    @!%p1 mbarrier.init.shared.b64 [%r4], 1;
    mul.wide.u32 %rd3, %r1, 64; add.s64 %rd1, %rd1, %rd3; shl.b32 %r6, %r1, 6; add.s32 %r6, %r6, %r2;
    mov.u32 %r8, 0;
fill:
    ld.global.b32 %r9, [%rd1]; st.shared.b32 [%r6], %r9; add.s64 %rd1, %rd1, 4; add.s32 %r6, %r6, 4;
    add.s32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 16; @%p3 bra fill;
    fence.proxy.async.shared::cta;
    @%p2 bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32;
allocated:
    bar.sync 0;
    ld.shared.b32 %r7, [%r5]; @%p1 bra issued;
    shr.u32 %r10, %r2, 4; cvt.u64.u32 %rd7, %r10; or.b64 %rd7, %rd7, 0x401000080000;
    tcgen05.cp.cta_group::1.)"
        + name + R"( [%r7], %rd7;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r4];
issued:
done: mbarrier.try_wait.parity.shared.b64 %p3, [%r4], 0;
    @!%p3 bra done;
    tcgen05.fence::after_thread_sync;
    shr.u32 %r8, %r1, 5; shl.b32 %r8, %r8, 21; add.s32 %r9, %r7, %r8;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%e0, %e1, %e2, %e3, %e4, %e5, %e6, %e7}, [%r9];
    tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %rd3, %r1, 32; add.s64 %rd2, %rd2, %rd3;
    st.global.v4.b32 [%rd2], {%e0, %e1, %e2, %e3}; st.global.v4.b32 [%rd2+16], {%e4, %e5, %e6, %e7};
    bar.sync 0;
    @%p2 bra end;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;
end:
)",
      2);
  };
  std::vector<uint8_t> image(8192);
  for (size_t i = 0; i < image.size(); ++i)
    image[i] = static_cast<uint8_t>(i * 37 + i / 256);
  // Eight rows of 16 bytes side by side, then the second half of them, then the next eight.
  const auto at = [](uint32_t row, uint32_t byte) {
    return row / 8 * 256 + byte / 16 * 128 + row % 8 * 16 + byte % 16;
  };
  for (const shape& s : shapes) {
    INFO(s.name);
    std::vector<uint8_t> out(128 * 32);
    must_pass(setup().buffer(image).buffer(out).block(128).run(text(s.name)));
    size_t wrong = 0;
    for (uint32_t row = 0; row < s.rows; ++row)
      for (const uint32_t lane : s.lanes(row))
        for (uint32_t byte = 0; byte < s.bytes; ++byte)
          wrong += out[lane * 32 + byte] != image[at(row, byte)];
    CHECK(wrong == 0);
  }
  for (const uint32_t width : {4U, 6U}) {
    std::vector<uint8_t> out(128 * 32);
    must_pass(setup().buffer(image).buffer(out).block(128).run(
      text(width == 4 ? "128x128b.b8x16.b4x16_p64" : "128x128b.b8x16.b6x16_p32")));
    size_t wrong = 0;
    for (uint32_t row = 0; row < 128; ++row)
      for (uint32_t i = 0; i < 16; ++i) {
        uint32_t element = 0;
        for (uint32_t bit = 0; bit < width; ++bit) {
          const uint32_t n = i * width + bit;
          element |= static_cast<uint32_t>(image[at(row, n / 8)] >> n % 8 & 1) << bit;
        }
        wrong += out[row * 32 + i] != (width == 4 ? element << 2 : element);
      }
    CHECK(wrong == 0);
  }
}
