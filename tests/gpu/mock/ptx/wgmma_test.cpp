#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>
#include <functional>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

constexpr uint32_t image_bytes = 32768;
constexpr uint32_t b_at = 16384;

/// Small whole numbers, exact in every format here; not negative when `bits` are few.
int element(uint32_t row, uint32_t k, uint32_t seed, bool is_signed) {
  const auto x = static_cast<int>((row * 7 + k * 13 + seed * 5 + row * k) % 9);
  return is_signed ? x - 4 : x;
}

/// A whole number in a format of 1 sign bit, `exponent` bits and the rest fraction.
uint32_t float_bits(int x, uint32_t width, uint32_t exponent) {
  if (x == 0)
    return 0;
  const uint32_t fraction = width - 1 - exponent;
  const int magnitude = std::abs(x);
  const int power = std::ilogb(magnitude);
  const auto biased = static_cast<uint32_t>(power + (1 << (exponent - 1)) - 1);
  const auto rest = static_cast<uint32_t>(magnitude - (1 << power));
  const uint32_t part = fraction >= static_cast<uint32_t>(power)
    ? rest << (fraction - static_cast<uint32_t>(power))
    : rest >> (static_cast<uint32_t>(power) - fraction);
  return (x < 0 ? 1U << (width - 1) : 0U) | biased << fraction | part;
}

struct format {
  std::string name;
  uint32_t bytes;
  bool is_signed;
  uint32_t bits(int x) const {
    if (name == "f16")
      return float_bits(x, 16, 5);
    if (name == "bf16")
      return float_bits(x, 16, 8);
    if (name == "tf32")
      return float_bits(x, 32, 8);
    if (name == "e4m3")
      return float_bits(x, 8, 4);
    if (name == "e5m2")
      return float_bits(x, 8, 5);
    return static_cast<uint32_t>(x) & 255;
  }
};

/// Row r of a pattern of rows of `span` bytes: what its chunks are combined with.
uint32_t phase(uint32_t row, uint32_t span) {
  return span == 128 ? row % 8 : span == 64 ? row / 2 % 4 : span == 32 ? row / 4 % 2 : 0;
}

/// Where element (line, k) lies from the start of the matrix, and the descriptor that says so: the
/// layouts of the manual, written down without the interpreter's functions.
struct layout {
  uint32_t span = 0;
  bool mn_major = false;
  uint32_t size = 2;
  /// Steps of 32 bytes into the rows of a K-major pattern.
  uint32_t step = 0;

  uint32_t leading() const { return mn_major && span != 0 ? 16 * span : 128; }
  uint32_t stride() const { return span == 0 ? 256 : 8 * span; }
  uint32_t place(uint32_t line, uint32_t k) const {
    const uint32_t byte = k * size;
    if (!mn_major && span == 0)
      return line / 8 * 256 + byte / 16 * 128 + line % 8 * 16 + byte % 16;
    if (!mn_major)
      return line * span + ((byte / 16 + 2 * step) ^ phase(line % 8, span)) * 16 + byte % 16;
    if (span == 0)
      return line / 8 * 256 + k / 8 * 128 + k % 8 * 16 + line % 8 * size;
    const uint32_t in_row = span / size;
    return line / in_row * leading() + k / 8 * stride() + k % 8 * span
      + ((line % in_row / 8) ^ phase(k % 8, span)) * 16 + line % 8 * size;
  }
  uint64_t descriptor(uint32_t base) const {
    const uint64_t mode = span == 0 ? 0 : span == 128 ? 1 : span == 64 ? 2 : 3;
    return (base + 32 * step) >> 4 | uint64_t{leading() >> 4} << 16 | uint64_t{stride() >> 4} << 32
      | mode << 62;
  }
};

struct product {
  format a{}, b{};
  std::string d = "f32";
  uint32_t n = 40;
  layout left{}, right{};
  bool a_in_registers = false;
  std::string tail{};
  std::string modifier{};
  std::string suffix{};
  uint32_t start = 0;

  uint32_t k() const { return 32 / a.bytes; }
  uint32_t registers() const { return d == "f16" ? n / 4 : n / 2; }
};

std::string register_list(const char* name, uint32_t count) {
  std::string out = "{";
  for (uint32_t i = 0; i < count; ++i)
    out += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
  return out + "}";
}

std::string text_of(const product& p) {
  std::string body = R"(
    .shared .align 1024 .b8 tile[32768]; .shared .align 8 .b64 bar;
    .reg .b32 %d<128>; .reg .b32 %a<4>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd6, [p2];
    ld.param.u64 %rd3, [p3]; ld.param.u64 %rd4, [p4];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar;
    cvt.u64.u32 %rd9, %r2; shr.u64 %rd9, %rd9, 4; add.s64 %rd3, %rd3, %rd9; add.s64 %rd4, %rd4, %rd9;
    setp.ne.u32 %p1, %r1, 0; setp.eq.u32 %p3, %r1, %r1;
    @%p1 bra arrived;
    mbarrier.init.shared.b64 [%r3], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 32768;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 32768, [%r3];
arrived:
    bar.sync 0;
again:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
    @!%p2 bra again;
    mad.wide.u32 %rd7, %r1, 16, %rd6;
    ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%rd7];
)";
  for (uint32_t i = 0; i < p.registers(); ++i)
    body += "mov.b32 %d" + std::to_string(i) + ", " + std::to_string(p.start) + ";\n";
  body += "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(p.n) + "k"
    + std::to_string(p.a.name == "b1" ? 256 : p.k()) + p.modifier + "." + p.d + "." + p.a.name + "."
    + p.b.name + p.suffix + " " + register_list("d", p.registers()) + ", "
    + (p.a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%rd3") + ", %rd4, " + p.tail
    + ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      "mul.lo.u32 %r4, %r1, "
    + std::to_string(4 * p.registers()) + "; cvt.u64.u32 %rd8, %r4; add.s64 %rd2, %rd2, %rd8;\n";
  for (uint32_t i = 0; i < p.registers(); ++i)
    body += "st.global.b32 [%rd2+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  return entry(body, 5);
}

using values = std::function<int(uint32_t, uint32_t)>;

/// Runs a product; gives the result by rows and columns, as bits.
std::vector<uint32_t> run_product(const product& p, const values& a, const values& b) {
  std::vector<uint8_t> image(image_bytes, 0x7b);
  const auto put = [&](uint32_t at, uint32_t bits, uint32_t bytes) {
    std::memcpy(image.data() + at, &bits, bytes);
  };
  std::vector<uint32_t> fragments(128 * 4);
  const uint32_t per_word = 4 / p.a.bytes;
  for (uint32_t row = 0; row < 64; ++row)
    for (uint32_t k = 0; k < p.k(); ++k) {
      const uint32_t bits = p.a.bits(a(row, k));
      put(p.left.place(row, k), bits, p.a.bytes);
      const uint32_t word = k / per_word % 4;
      const uint32_t thread = row / 16 * 32 + row % 8 * 4 + word;
      fragments[4 * thread + row / 8 % 2 + (k / per_word / 4) * 2] |= bits
        << (k % per_word * 8 * p.a.bytes);
    }
  for (uint32_t column = 0; column < p.n; ++column)
    for (uint32_t k = 0; k < p.k(); ++k)
      put(b_at + p.right.place(column, k), p.b.bits(b(column, k)), p.b.bytes);
  std::vector<uint32_t> out(128 * p.registers(), 0xdeadbeef);
  setup s;
  s.buffer(image).buffer(out).buffer(fragments).block(128);
  s.value(p.left.descriptor(0)).value(p.right.descriptor(b_at));
  const outcome result = s.run(text_of(p));
  if (result.failed)
    FAIL(result.failed->what);
  const uint32_t depth = p.a.name == "b1" ? 256 : p.k();
  CHECK(result.done.mma_flops == uint64_t{2} * 64 * p.n * depth);
  std::vector<uint32_t> by_place(64 * p.n);
  for (uint32_t thread = 0; thread < 128; ++thread)
    for (uint32_t i = 0; i < p.registers(); ++i) {
      const uint32_t lane = thread % 32;
      const uint32_t word = out[thread * p.registers() + i];
      const uint32_t row = thread / 32 * 16 + lane / 4;
      if (p.d == "f16") {
        const uint32_t at = (row + i % 2 * 8) * p.n + i / 2 * 8 + lane % 4 * 2;
        by_place[at] = word & 0xffff;
        by_place[at + 1] = word >> 16;
      } else {
        by_place[(row + i % 4 / 2 * 8) * p.n + i / 4 * 8 + lane % 4 * 2 + i % 2] = word;
      }
    }
  return by_place;
}

void check_product(const product& p, int sign = 1) {
  INFO(p.a.name << " " << p.b.name << " " << p.d << " spans " << p.left.span << " " << p.right.span
                << " mn " << p.left.mn_major << p.right.mn_major << " steps " << p.left.step
                << p.right.step << " registers " << p.a_in_registers);
  const auto a = [&](uint32_t r, uint32_t k) { return element(r, k, 1, p.a.is_signed); };
  const auto b = [&](uint32_t c, uint32_t k) { return element(c, k, 2, p.b.is_signed); };
  const std::vector<uint32_t> got = run_product(p, a, b);
  size_t wrong = 0;
  for (uint32_t r = 0; r < 64; ++r)
    for (uint32_t c = 0; c < p.n; ++c) {
      int sum = 0;
      for (uint32_t k = 0; k < p.k(); ++k)
        sum += sign * a(r, k) * b(c, k);
      const uint32_t want = p.d == "f32" ? std::bit_cast<uint32_t>(static_cast<float>(sum))
        : p.d == "f16"                   ? float_bits(sum, 16, 5)
                                         : static_cast<uint32_t>(sum);
      wrong += got[r * p.n + c] != want;
    }
  CHECK(wrong == 0);
}

const format f16{"f16", 2, true}, bf16{"bf16", 2, true}, tf32{"tf32", 4, true};
const format e4m3{"e4m3", 1, true}, e5m2{"e5m2", 1, true}, s8{"s8", 1, true}, u8{"u8", 1, false};

layout lies(uint32_t span, bool mn_major, uint32_t size, uint32_t step = 0) {
  layout out;
  out.span = span;
  out.mn_major = mn_major;
  out.size = size;
  out.step = step;
  return out;
}

} // namespace

TEST_CASE("wgmma of 16-bit types reads both operands in every swizzle, K-major and MN-major") {
  for (const format& type : {f16, bf16})
    for (const uint32_t span : {0U, 32U, 64U, 128U})
      for (const int majors : {0, 1, 2, 3}) {
        product p{.a = type, .b = type};
        p.left = lies(span, majors & 1, 2);
        p.right = lies(span, majors & 2, 2);
        p.tail =
          std::string("%p3, 1, 1, ") + (majors & 1 ? "1" : "0") + (majors & 2 ? ", 1" : ", 0");
        check_product(p);
      }
}

TEST_CASE("wgmma of the other types reads K-major operands in every swizzle") {
  for (const uint32_t span : {0U, 32U, 64U, 128U}) {
    for (const auto& [a, b] :
      {std::pair(tf32, tf32), {e4m3, e4m3}, {e4m3, e5m2}, {e5m2, e4m3}, {e5m2, e5m2}}) {
      product p{.a = a, .b = b};
      p.left = lies(span, false, a.bytes);
      p.right = lies(span, false, a.bytes);
      p.tail = "%p3, 1, 1";
      check_product(p);
    }
    for (const auto& [a, b] : {std::pair(s8, s8), {s8, u8}, {u8, s8}, {u8, u8}}) {
      product p{.a = a, .b = b, .d = "s32", .n = 48};
      p.left = lies(span, false, 1);
      p.right = lies(span, false, 1);
      p.tail = "%p3";
      check_product(p);
    }
  }
}

TEST_CASE("a descriptor may begin inside the rows of a swizzled pattern, and the two may differ") {
  for (const uint32_t left : {64U, 128U})
    for (const uint32_t right : {0U, 32U, 64U, 128U})
      for (uint32_t step = 0; step < left / 32; ++step) {
        product p{.a = bf16, .b = bf16};
        p.left = lies(left, false, 2, step);
        p.right = lies(right, false, 2, right > 32 ? 1 : 0);
        p.tail = "%p3, 1, 1, 0, 0";
        check_product(p);
      }
}

TEST_CASE("the left operand of wgmma may be in registers, and results may be half precision") {
  for (const format& type : {f16, bf16, tf32, e4m3, e5m2, s8, u8}) {
    const bool whole = type.name == "s8" || type.name == "u8";
    product p{.a = type, .b = type, .d = whole ? "s32" : "f32", .n = whole ? 16U : 8U};
    p.left = lies(0, false, type.bytes);
    p.right = lies(128, false, type.bytes);
    p.a_in_registers = true;
    p.tail = whole ? "%p3" : type.bytes == 2 ? "%p3, 1, 1, 0" : "%p3, 1, 1";
    check_product(p);
    if (type.name != "f16" && type.name != "e4m3" && type.name != "e5m2")
      continue;
    p.d = "f16";
    check_product(p);
  }
}

TEST_CASE("the largest product has 128 accumulators a thread") {
  product p{.a = f16, .b = f16, .n = 256};
  p.left = lies(128, false, 2);
  p.right = lies(32, false, 2);
  p.tail = "%p3, 1, 1, 0, 0";
  check_product(p);
}

TEST_CASE("scale-d drops the accumulators, -1 negates an operand, and both negations cancel") {
  product p{.a = f16, .b = f16};
  p.left = p.right = lies(128, false, 2);
  p.start = 0x7fc00000; // Whoever adds to it gets NaN.
  for (const auto& [tail, sign] : {std::pair("!%p3, 1, 1, 0, 0", 1), {"0, 1, 1, 0, 0", 1},
         {"0, -1, 1, 0, 0", -1}, {"0, 1, -1, 0, 0", -1}, {"0, -1, -1, 0, 0", 1}}) {
    p.tail = tail;
    check_product(p, sign);
  }
  p.start = std::bit_cast<uint32_t>(1000.0F);
  p.tail = "%p3, 1, 1, 0, 0";
  const auto zero = [](uint32_t, uint32_t) { return 0; };
  for (const uint32_t bits : run_product(p, zero, zero))
    CHECK(std::bit_cast<float>(bits) == 1000.0F);
}

TEST_CASE("sums of integers wrap, or stay at the end with satfinite") {
  product p{.a = u8, .b = u8, .d = "s32", .n = 16};
  p.left = p.right = lies(32, false, 1);
  p.tail = "%p3";
  p.start = INT32_MAX - 10;
  const auto two = [](uint32_t, uint32_t) { return 2; };
  CHECK(run_product(p, two, two)[5] == static_cast<uint32_t>(INT32_MAX) - 10 + 128);
  p.modifier = ".satfinite";
  CHECK(run_product(p, two, two)[5] == static_cast<uint32_t>(INT32_MAX));
}

TEST_CASE("products of single bits count where both are set") {
  product p{.a = {"b1", 1, false}, .b = {"b1", 1, false}, .d = "s32", .n = 16};
  p.left = lies(64, false, 1);
  p.right = lies(0, false, 1);
  p.suffix = ".and.popc";
  p.tail = "%p3";
  const auto a = [](uint32_t r, uint32_t k) { return static_cast<int>((r * 37 + k * 11) % 256); };
  const auto b = [](uint32_t c, uint32_t k) { return static_cast<int>((c * 59 + k * 7) % 256); };
  const std::vector<uint32_t> got = run_product(p, a, b);
  for (uint32_t r = 0; r < 64; ++r)
    for (uint32_t c = 0; c < 16; ++c) {
      uint32_t sum = 0;
      for (uint32_t k = 0; k < 32; ++k)
        sum += static_cast<uint32_t>(std::popcount(static_cast<uint32_t>(a(r, k) & b(c, k))));
      CHECK(got[r * 16 + c] == sum);
    }
}

namespace {

/// A kernel whose descriptors are parameters; the whole fault, or nothing.
std::string fault_of(uint64_t a, uint64_t b, uint32_t threads) {
  const std::string text = entry(R"(
    .shared .align 1024 .b8 tile[4096];
    ld.param.u64 %rd3, [p0]; ld.param.u64 %rd4, [p1]; setp.eq.u32 %p3, 0, 0;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd3, %rd4, %p3, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;)",
    2);
  setup s;
  s.value(a).value(b).block(threads);
  const outcome result = s.run(text);
  return result.failed ? result.failed->what : "";
}

} // namespace

TEST_CASE("a descriptor that leaves shared memory is a fault with its line, whatever it holds") {
  const uint64_t fine = uint64_t{1} << 16 | uint64_t{16} << 32;
  CHECK(fault_of(fine, fine, 128).empty());
  numbers random(5);
  for (int i = 0; i < 60; ++i) {
    const uint64_t bad = random.next() | 0x3000;
    for (const std::string& what : {fault_of(bad, fine, 128), fault_of(fine, bad, 128)}) {
      CHECK(what.find("shared memory out of bounds") != std::string::npos);
      CHECK(what.find("wgmma.mma_async") != std::string::npos);
    }
  }
}

TEST_CASE("wgmma needs a whole warpgroup") {
  const uint64_t fine = uint64_t{1} << 16 | uint64_t{16} << 32;
  for (const uint32_t threads : {32U, 96U, 120U})
    CHECK(fault_of(fine, fine, threads).find("warpgroup") != std::string::npos);
  CHECK(fault_of(fine, fine, 256).empty());
}

TEST_CASE("wait_group holds a warp until its whole warpgroup has issued") {
  // Warp 3 is late; warp 0 overwrites the operand as soon as its own wait is over.
  const std::string text = entry(R"(
    .shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 go;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd3, [p1];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4;
    cvt.u64.u32 %rd9, %r2; shr.u64 %rd9, %rd9, 4; add.s64 %rd3, %rd3, %rd9; add.u32 %r2, %r2, %r3;
    mov.b32 %r4, 0x3c003c00; st.shared.v4.b32 [%r2], {%r4,%r4,%r4,%r4};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.lt.u32 %p1, %r1, 96; @%p1 bra early;
    mov.u32 %r5, 0;
loop: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 100000; @%p2 bra loop;
early:
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd3, %rd3, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mov.b32 %r4, 0; setp.gt.u32 %p3, %r1, 31; @%p3 bra out;
    st.shared.v4.b32 [%r2], {%r4,%r4,%r4,%r4}; st.shared.v4.b32 [%r2+512], {%r4,%r4,%r4,%r4};
out:
    mad.wide.u32 %rd5, %r1, 4, %rd1; st.global.f32 [%rd5], %f3;)",
    2);
  std::vector<float> out(128);
  setup s;
  s.buffer(out).value(uint64_t{8} << 16 | uint64_t{16} << 32).block(128);
  must_pass(s.run(text));
  for (const float x : out)
    CHECK(x == 16.0F);
}

TEST_CASE("forms of wgmma that do not exist are refused with their line") {
  const std::string head_text = "setp.eq.u32 %p3, 0, 0; ld.param.u64 %rd3, [p0];\n";
  for (const char* wrong :
    {"m64n12k16.f32.f16.f16 {%f0,%f1,%f2,%f3,%f4,%f5}, %rd3, %rd3, %p3, 1, 1, 0, 0",
      "m64n8k8.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd3, %rd3, %p3, 1, 1, 0, 0",
      "m64n8k16.f32.f16.bf16 {%f0,%f1,%f2,%f3}, %rd3, %rd3, %p3, 1, 1, 0, 0",
      "m64n8k16.f32.f16.f16 {%f0,%f1,%f2}, %rd3, %rd3, %p3, 1, 1, 0, 0",
      "m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd3, %rd3, %p3, 2, 1, 0, 0",
      "m64n8k8.f32.tf32.tf32 {%f0,%f1,%f2,%f3}, %rd3, %rd3, %p3, 1, 1, 0, 0",
      "m64n40k32.s32.s8.s8 {%r0}, %rd3, %rd3, %p3"}) {
    const auto refused = parse(entry(head_text + "wgmma.mma_async.sync.aligned." + wrong + ";"));
    CAPTURE(wrong);
    REQUIRE(!refused);
    CHECK(refused.error().what.find("wgmma.mma_async") != std::string::npos);
  }
}
