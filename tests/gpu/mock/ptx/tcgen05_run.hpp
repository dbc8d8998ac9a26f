#pragma once

#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>
#include <functional>

/// A product by `tcgen05.mma` with all that goes around it, written from the PTX manual's words
/// without the interpreter's functions.
namespace gristmill::ptx::testing::tcgen05 {

constexpr uint32_t image_bytes = 36864;
constexpr uint32_t b_at = 16384;
constexpr uint32_t scale_a_at = 32768;
constexpr uint32_t scale_b_at = scale_a_at + 512;
constexpr uint32_t out_columns = 128;

struct format {
  std::string name;
  /// Of an element, and between elements in shared memory (with padding: of sixteen).
  uint32_t width = 16;
  uint32_t exponent = 5;
  uint32_t code = 0;

  bool is_integer() const { return exponent == 0; }
  /// A small whole number in this format.
  uint32_t bits(int x) const {
    if (is_integer() || x == 0)
      return static_cast<uint32_t>(x) & 255;
    const uint32_t fraction = width - 1 - exponent;
    const int power = std::ilogb(std::abs(x));
    const auto biased = static_cast<uint32_t>(power + (1 << (exponent - 1)) - 1);
    const auto rest = static_cast<uint32_t>(std::abs(x) - (1 << power));
    return (x < 0 ? 1U << (width - 1) : 0U) | biased << fraction
      | (power > static_cast<int>(fraction) ? rest >> (static_cast<uint32_t>(power) - fraction)
                                            : rest << (fraction - static_cast<uint32_t>(power)));
  }
};

inline const format f16{"f16", 16, 5, 0}, bf16{"f16", 16, 8, 1}, tf32{"tf32", 32, 8, 2};
inline const format e4m3{"f8f6f4", 8, 4, 0}, e5m2{"f8f6f4", 8, 5, 1}, e2m3{"f8f6f4", 6, 2, 3};
inline const format e3m2{"f8f6f4", 6, 3, 4}, e2m1{"f8f6f4", 4, 2, 5};
inline const format s8{"i8", 8, 0, 1}, u8{"i8", 8, 0, 0};
/// Two elements a byte.
inline const format fp4{"mxf4", 4, 2, 1};

/// What the chunks of 16 bytes of row r of a pattern of rows of `span` bytes are combined with.
inline uint32_t phase(uint32_t row, uint32_t span) {
  return span == 128 ? row % 8 : span == 64 ? row / 2 % 4 : span == 32 ? row / 4 % 2 : 0;
}

struct layout {
  uint32_t span = 0;
  bool mn_major = false;
  /// 32-byte pieces are permuted.
  bool by_32 = false;

  /// Elements in 16 bytes.
  static uint32_t chunk_of(const format& f, bool packed) {
    return f.width >= 8 ? 128 / f.width : packed ? 32 : 16;
  }
  uint32_t rows_deep(const format& f) const { return 256 / f.width / (by_32 ? 4 : 8); }
  uint32_t leading(const format& f) const {
    return !mn_major ? 128 : span == 0 ? 128 : rows_deep(f) * stride(f);
  }
  uint32_t stride(const format& f) const {
    if (span == 0)
      return mn_major ? 128 * (256 / f.width / 8) : 256;
    return (by_32 ? 4 : 8) * span;
  }
  /// Byte and bit in it at which element (line, k) begins.
  std::pair<uint32_t, uint32_t> place(
    const format& f, bool packed, uint32_t line, uint32_t k) const {
    const uint32_t chunk = chunk_of(f, packed);
    if (!mn_major) {
      const uint32_t c = k / chunk;
      const uint32_t bit = k % chunk * f.width;
      const uint32_t at = span == 0 ? line / 8 * 256 + c * 128 + line % 8 * 16
                                    : line * span + (c ^ phase(line % 8, span)) * 16;
      return {at + bit / 8, bit % 8};
    }
    const uint32_t in = line % chunk * f.width / 8;
    if (span == 0)
      return {line / chunk * stride(f) + k / 8 * 128 + k % 8 * 16 + in, 0};
    const uint32_t in_row = span * 8 / f.width;
    const uint32_t piece = line % in_row / chunk;
    const uint32_t period = by_32 ? 4 : 8;
    const uint32_t moved = by_32 ? piece ^ (k % 4 * 2) : piece ^ phase(k % 8, span);
    return {
      line / in_row * leading(f) + k / period * stride(f) + k % period * span + moved * 16 + in, 0};
  }
  uint64_t descriptor(const format& f, uint32_t base) const {
    const uint64_t mode = by_32 ? 1 : span == 0 ? 0 : span == 128 ? 2 : span == 64 ? 4 : 6;
    return uint64_t{base >> 4} | uint64_t{leading(f) >> 4} << 16 | uint64_t{stride(f) >> 4} << 32
      | 1ULL << 46 | mode << 61;
  }
};

struct product {
  format a = f16, b = f16;
  uint32_t m = 128, n = 32;
  layout left{}, right{};
  uint32_t group = 1;
  /// F16 0, F32 1, S32 2.
  uint32_t d = 1;
  std::string kind{};
  /// Between the kind and the operands: ".block_scale.scale_vec::2X".
  std::string suffix{};
  /// 0: none.
  uint32_t block = 0;
  bool scales_e4m3 = false;
  uint32_t scale_byte = 0;
  bool a_in_memory = false;
  bool negates_a = false;
  bool saturates = false;
  /// Products one after the other, and what stands behind enable-input-d.
  uint32_t times = 1;
  std::string tail{};
  std::string mask{};
  check_set checks = 0;

  bool packed() const { return kind == "mxf4" || kind == "mxf4nvf4"; }
  uint32_t k() const { return packed() ? 64 : 256 / std::max(8U, a.width); }
  uint32_t rows() const { return m / group; }
  uint32_t instruction() const {
    uint32_t bits = a.code << 7 | b.code << 10 | (negates_a ? 1U : 0U) << 13
      | (left.mn_major ? 1U : 0U) << 15 | (right.mn_major ? 1U : 0U) << 16 | n / 8 << 17
      | m / 16 << 24;
    if (block != 0)
      bits |= scale_byte << 4 | (scales_e4m3 ? 0U : 1U) << 23 | scale_byte << 29;
    else
      bits |= d << 4 | (saturates ? 1U : 0U) << 3;
    return bits;
  }
};

inline int element(uint32_t row, uint32_t k, uint32_t seed, bool is_signed) {
  const auto x = static_cast<int>((row * 7 + k * 13 + seed * 5 + row * k) % 9);
  return is_signed ? x - 4 : x;
}
/// A power of two as ue8m0, or 1.5 and its like as ue4m3.
inline uint8_t scale_bits(uint32_t line, uint32_t block, bool e4m3_form) {
  const uint32_t x = (line + 3 * block) % 4;
  return static_cast<uint8_t>(e4m3_form ? 0x34 + x * 4 : 126 + x);
}
inline float scale_value(uint32_t line, uint32_t block, bool e4m3_form) {
  const uint32_t x = (line + 3 * block) % 4;
  if (!e4m3_form)
    return std::ldexp(1.0F, static_cast<int>(x) - 1);
  const uint32_t bits = 0x34 + x * 4; // Exponent 6 or 7 of 7, fraction 4 or 0 of 8.
  return std::ldexp(1.0F + static_cast<float>(bits & 7) / 8, static_cast<int>(bits >> 3) - 7);
}

/// What differs between texts that are right and texts with a defect.
struct pieces {
  std::string after_alloc = "tcgen05.relinquish_alloc_permit.cta_group::@G.sync.aligned;\n";
  std::string columns = "512";
  std::string commit =
    "tcgen05.commit.cta_group::@G.mbarrier::arrive::one.shared::cluster@MC.b64 [%r4]@MASK;\n";
  std::string wait = "done: mbarrier.try_wait.parity.shared.b64 %p3, [%r4], 0;\n@!%p3 bra done;\n";
  std::string fence = "tcgen05.fence::after_thread_sync;\n";
  std::string wait_loads = "tcgen05.wait::ld.sync.aligned;\n";
  std::string wait_stores = "tcgen05.wait::st.sync.aligned;\n";
  std::string free = "tcgen05.dealloc.cta_group::@G.sync.aligned.b32 %r7, @COLUMNS;\n";
  /// Added to the address of the load.
  uint32_t load_at = 0;
};

inline std::string registers(const char* name, uint32_t count) {
  std::string out = "{";
  for (uint32_t i = 0; i < count; ++i)
    out += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
  return out + "}";
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// The whole kernel: parameters are the image, the result, both descriptors and the instruction's.
inline std::string text_of(const product& p, const pieces& with = {}) {
  const std::string meet = p.group == 2
    ? "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
    : "bar.sync 0;\n";
  std::string body = R"(
    .shared .align 1024 .b8 tile[36864]; .shared .align 8 .b64 bar; .shared .align 8 .b64 all;
    .shared .align 4 .b32 where; .reg .b32 %d<128>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2];
    ld.param.u64 %rd4, [p3]; ld.param.u64 %rd5, [p4]; cvt.u32.u64 %r20, %rd5;
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r4, all; mov.u32 %r5, where;
    mov.u32 %r6, %cluster_ctarank; mul.wide.u32 %rd6, %r6, 36864; add.s64 %rd1, %rd1, %rd6;
    mul.wide.u32 %rd6, %r6, 65536; add.s64 %rd2, %rd2, %rd6;
    cvt.u64.u32 %rd9, %r2; shr.u64 %rd9, %rd9, 4;
    add.s64 %rd3, %rd3, %rd9; add.s64 %rd4, %rd4, %rd9;
    setp.ne.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32; setp.eq.u32 %p4, %r1, %r1;
    setp.ne.u32 %p5, %r6, 0; or.pred %p5, %p5, %p1; mov.b16 %h0, 3;
    @%p1 bra prepared;
    mbarrier.init.shared.b64 [%r3], 1; mbarrier.init.shared.b64 [%r4], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 36864;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 36864, [%r3];
prepared:
    bar.warp.sync -1;
    @%p2 bra allocated;
    tcgen05.alloc.cta_group::@G.sync.aligned.shared::cta.b32 [%r5], @COLUMNS;
)" + with.after_alloc
    + "allocated:\ntcgen05.fence::before_thread_sync;\n" + meet + R"(
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r7, [%r5]; shr.u32 %r8, %r1, 5; shl.b32 %r8, %r8, 21; add.s32 %r9, %r7, %r8;
again:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0;
    @!%p3 bra again;
)";
  // The tiles of both blocks are there.
  body += p.group == 2 ? meet : "";
  if (p.a_in_memory) {
    // Each thread brings the row of its lane, 32 bytes of it, to columns 256 to 263. Where only
    // half the lanes have rows of A, the manual wants them twice or not at all.
    const bool halves = p.group == 1 && p.m == 64;
    body += halves
      ? "shr.u32 %r10, %r1, 5; and.b32 %r11, %r1, 15; mad.lo.u32 %r10, %r10, 16, %r11;\n"
      : "and.b32 %r10, %r1, " + std::to_string(p.rows() - 1) + ";\n";
    body +=
      "shr.u32 %r11, %r10, 3; shl.b32 %r11, %r11, 8; and.b32 %r12, %r10, 7; shl.b32 %r12, %r12, "
      "4; add.s32 %r11, %r11, %r12; add.s32 %r11, %r11, %r2;\n"
      "ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%r11]; ld.shared.v4.b32 {%d4, %d5, %d6, %d7}, "
      "[%r11+128];\ntcgen05.st.sync.aligned.32x32b.x8.b32 [%r9+256], "
      + registers("d", 8) + ";\n" + with.wait_stores + "tcgen05.fence::before_thread_sync;\n" + meet
      + "tcgen05.fence::after_thread_sync;\n";
  }
  body += "@%p5 bra issued;\n";
  if (p.block != 0)
    for (const auto& [at, column] : {std::pair(scale_a_at, 128), {scale_b_at, 160}})
      body += "add.s32 %r10, %r2, " + std::to_string(at)
        + "; shr.u32 %r10, %r10, 4; cvt.u64.u32 %rd7, %r10; or.b64 %rd7, %rd7, 0x400800010000;\n"
          "add.s32 %r11, %r7, "
        + std::to_string(column) + ";\ntcgen05.cp.cta_group::@G.32x128b.warpx4 [%r11], %rd7;\n";
  if (p.block != 0)
    body += "add.s32 %r12, %r7, 128; add.s32 %r13, %r7, 160;\n";
  if (p.a_in_memory)
    body += "add.s32 %r14, %r7, 256;\n";
  for (uint32_t i = 0; i < p.times; ++i)
    body += "tcgen05.mma.cta_group::@G.kind::" + p.kind + p.suffix + " [%r7], "
      + (p.a_in_memory ? "[%r14]" : "%rd3") + ", %rd4, %r20, "
      + (p.block != 0 ? "[%r12], [%r13], " : "") + p.mask + (i == 0 ? "!%p4" : "%p4") + p.tail
      + ";\n";
  body += with.commit + "issued:\n" + with.wait + with.fence + "add.s32 %r9, %r9, "
    + std::to_string(with.load_at) + ";\ntcgen05.ld.sync.aligned.32x32b.x128.b32 "
    + registers("d", 128) + ", [%r9];\n" + with.wait_loads
    + "mul.wide.u32 %rd6, %r1, 512; add.s64 %rd2, %rd2, %rd6;\n";
  for (uint32_t i = 0; i < out_columns; ++i)
    body += "st.global.b32 [%rd2+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  body += meet + "@%p2 bra end;\n" + with.free + "end:\n" + (p.group == 2 ? meet : "");
  body = replaced(body, "@COLUMNS", with.columns);
  body = replaced(body, "@G", std::to_string(p.group));
  body = replaced(body, "@MC", p.group == 2 ? ".multicast::cluster" : "");
  body = replaced(body, "@MASK", p.group == 2 ? ", %h0" : "");
  return replaced(replaced(entry(body, 5), "sm_90a", "sm_100a"), ".version 8.5", ".version 8.6");
}

/// The images of the shared memory of both blocks.
inline std::vector<uint8_t> image_of(const product& p) {
  std::vector<uint8_t> image(image_bytes * size_t{p.group}, 0);
  const auto put = [&](uint32_t block, uint32_t base, const std::pair<uint32_t, uint32_t>& at,
                     uint32_t bits, uint32_t width) {
    uint8_t* const to = image.data() + size_t{block} * image_bytes + base + at.first;
    for (uint32_t i = 0; i < (width + at.second + 7) / 8; ++i)
      to[i] = static_cast<uint8_t>(to[i] | bits << at.second >> 8 * i);
  };
  for (uint32_t row = 0; row < p.m; ++row)
    for (uint32_t k = 0; k < p.k(); ++k)
      put(row / p.rows(), 0, p.left.place(p.a, p.packed(), row % p.rows(), k),
        p.a.bits(element(row, k, 1, p.a.code != u8.code || !p.a.is_integer())), p.a.width);
  const uint32_t columns = p.n / p.group;
  for (uint32_t column = 0; column < p.n; ++column)
    for (uint32_t k = 0; k < p.k(); ++k)
      put(column / columns, b_at, p.right.place(p.b, p.packed(), column % columns, k),
        p.b.bits(element(column, k, 2, p.b.code != u8.code || !p.b.is_integer())), p.b.width);
  for (uint32_t block = 0; p.block != 0 && block < p.group; ++block)
    for (uint32_t i = 0; i < p.k() / p.block; ++i) {
      uint8_t* const base = image.data() + size_t{block} * image_bytes;
      for (uint32_t line = 0; line < 128; ++line)
        base[scale_a_at + line % 32 * 16 + line / 32 * 4 + p.scale_byte + i] =
          scale_bits(block * p.rows() + line, i, p.scales_e4m3);
      for (uint32_t line = 0; line < 128; ++line)
        base[scale_b_at + line % 32 * 16 + line / 32 * 4 + p.scale_byte + i] =
          scale_bits(line + 1, i, p.scales_e4m3);
    }
  return image;
}

struct ran {
  outcome result;
  /// By block, lane and column.
  std::vector<uint32_t> out;
};

inline ran run_product(const product& p, const pieces& with = {}) {
  std::vector<uint8_t> image = image_of(p);
  ran r;
  r.out.assign(size_t{128} * out_columns * p.group, 0xdeadbeef);
  setup s;
  s.buffer(image).buffer(r.out).block(128).grid(p.group);
  s.value(p.left.descriptor(p.a, 0)).value(p.right.descriptor(p.b, b_at));
  s.value(uint64_t{p.instruction()});
  s.what.cluster = {p.group, 1, 1};
  s.what.checks = p.checks;
  r.result = s.run(text_of(p, with));
  return r;
}

} // namespace gristmill::ptx::testing::tcgen05
