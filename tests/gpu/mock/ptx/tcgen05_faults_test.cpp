// What a program must not do with tensor memory, and with what words it is told so.

#include "tests/gpu/mock/ptx/tcgen05_run.hpp"

#include <algorithm>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;
using namespace gristmill::ptx::testing::tcgen05;

namespace {

product small() {
  product p{.n = 16};
  p.kind = "f16";
  return p;
}

fault failure_of(const product& p, const pieces& with) {
  const ran r = run_product(p, with);
  REQUIRE(r.result.failed);
  return *r.result.failed;
}

void fails(fault_kind kind, const std::string& words, const product& p, const pieces& with) {
  const fault f = failure_of(p, with);
  INFO(f.what);
  CHECK(f.kind == kind);
  CHECK(f.what.find(words) != std::string::npos);
}

/// One warp that has 32 columns at %r7, an address of shared memory in %r5 and ones in %r10.
outcome with_columns(const std::string& body, const std::string& after = "") {
  return setup().block(32).run(entry(
    ".shared .align 8 .b64 where; .reg .b32 %e<4>; mov.u32 %r5, where; mov.u32 %r1, %laneid;\n"
    "mov.u32 %r10, 1; setp.eq.u32 %p1, %r1, 0;\n"
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32; ld.shared.b32 %r7, [%r5];\n"
      + body + "\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;\n" + after,
    0));
}

void refused(fault_kind kind, const std::string& words, const std::string& body,
  const std::string& after = "") {
  const outcome result = with_columns(body, after);
  REQUIRE(result.failed);
  INFO(result.failed->what);
  CHECK(result.failed->kind == kind);
  CHECK(result.failed->what.find(words) != std::string::npos);
}

} // namespace

TEST_CASE("tensor memory is allocated in powers of two, used where it is, and given back") {
  must_pass(with_columns(""));
  using enum fault_kind;
  fails(tensor_memory, "48 columns of tensor memory; a power of two", small(), {.columns = "48"});
  fails(tensor_memory, "still allocated (tcgen05.dealloc)", small(), {.free = ""});
  fails(tensor_memory, "no tcgen05.alloc gave that", small(),
    {.free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 256;\n"});
  fails(tensor_memory, "columns 0 to 127 of tensor memory, which are not all allocated", small(),
    {.columns = "64"});
  fails(tensor_memory, "after tcgen05.relinquish_alloc_permit", small(),
    {.after_alloc = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
                    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32;\n"});
  refused(tensor_memory, "none is allocated", "",
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%e0}, [%r7];\n");
  refused(tensor_memory, "cta_group::2 after cta_group::1",
    "@%p1 tcgen05.cp.cta_group::2.128x128b [%r7], 0x400000000000;");
  // Also once all of it has been given back.
  refused(tensor_memory, "cta_group::2 after cta_group::1", "",
    "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r5], 32;");
  refused(tensor_memory, "cta_group::2 after cta_group::1", "",
    "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  refused(tensor_memory, "warp 0 of its block reaches lanes 0 to 31",
    "add.s32 %r8, %r7, 0x200000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%e0}, [%r8];");
  refused(tensor_memory, "in one lane and",
    "add.s32 %r8, %r7, %r1; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%e0}, [%r8];");
}

TEST_CASE("an allocation for which there is no room waits, and for ever where nobody frees") {
  refused(fault_kind::deadlock, "no warp of the block can go on",
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 512;");
}

TEST_CASE(
  "results that nobody has waited for may not be read, nor registers that are being filled") {
  using enum fault_kind;
  fails(
    missing_tensor_wait, "before anybody has waited for a tcgen05.commit", small(), {.wait = ""});
  product p = small();
  p.a_in_memory = true;
  fails(missing_tensor_wait, "before tcgen05.wait::st has waited", p, {.wait_stores = ""});
  refused(missing_tensor_wait, "that a tcgen05.ld reads",
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%r10}; tcgen05.wait::st.sync.aligned;\n"
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%e0}, [%r7];\n"
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%r10};");
  p = small();
  p.checks = all_checks;
  const ran r = run_product(p, {.wait_loads = ""});
  must_pass(r.result);
  REQUIRE(!r.result.findings.empty());
  CHECK(r.result.findings[0].kind == missing_tensor_wait);
  CHECK(r.result.findings[0].what.find("tcgen05.wait::ld") != std::string::npos);
}

TEST_CASE("another warp's results need a fence behind the wait") {
  product p = small();
  p.checks = all_checks;
  const ran r = run_product(p, {.fence = ""});
  must_pass(r.result);
  REQUIRE(r.result.findings.size() == 1);
  CHECK(r.result.findings[0].kind == fault_kind::missing_tensor_fence);
}

TEST_CASE("products do not add to, nor loads hand on, what nobody has written") {
  product p = small();
  p.tail = "";
  const std::string text = text_of(p);
  const std::string adds = replaced(text, "!%p4", "%p4");
  std::vector<uint8_t> image = image_of(p);
  std::vector<uint32_t> out(128 * out_columns);
  setup s;
  s.buffer(image).buffer(out).block(128);
  s.value(p.left.descriptor(p.a, 0)).value(p.right.descriptor(p.b, b_at));
  s.value(uint64_t{p.instruction()});
  const outcome result = s.run(adds);
  REQUIRE(result.failed);
  CHECK(result.failed->kind == fault_kind::uninitialised);
  CHECK(result.failed->what.find("read of D of column 0") != std::string::npos);
  // Columns past N are loaded, and stored as a result.
  p.checks = all_checks;
  s.what.checks = all_checks;
  s.what.memory[1].is_output = true;
  std::vector<uint8_t> undefined(out.size() * 4, 1);
  s.what.memory[1].undefined = undefined.data();
  const outcome loaded = s.run(text);
  must_pass(loaded);
  REQUIRE(!loaded.findings.empty());
  CHECK(std::all_of(loaded.findings.begin(), loaded.findings.end(),
    [](const fault& f) { return f.kind == fault_kind::uninitialised; }));
}

TEST_CASE("descriptors that mean nothing are faults") {
  using enum fault_kind;
  const auto with_descriptor = [&](auto&& change) {
    product p = small();
    change(p);
    return failure_of(p, {}).what;
  };
  CHECK(with_descriptor([](product& p) { p.m = 96; }).find("wants M = 96, N = 16")
    != std::string::npos);
  CHECK(with_descriptor([](product& p) { p.a.code = 5; }).find("gives A the type 5")
    != std::string::npos);
  CHECK(
    with_descriptor([](product& p) { p.saturates = true; }).find("saturates") != std::string::npos);
  CHECK(
    with_descriptor([](product& p) { p.d = 2; }).find("gives D the type 2") != std::string::npos);
  CHECK(with_descriptor([](product& p) {
    p.a = p.b = bf16;
    p.d = 0;
  }).find("operands of bf16")
    != std::string::npos);
  refused(trap, "constant 0b001 in bits 46", "@%p1 tcgen05.cp.cta_group::1.128x128b [%r7], 0;");
  refused(trap, "the swizzle 3",
    "mov.b64 %rd1, 0x6000400000000000;\n"
    "@%p1 tcgen05.cp.cta_group::1.128x128b [%r7], %rd1;");
  refused(out_of_bounds, "tcgen05.cp read",
    "mov.b64 %rd1, 0x400000010000;\n@%p1 tcgen05.cp.cta_group::1.128x128b [%r7], %rd1;");
}

TEST_CASE("products of two blocks need a second block, and scales in every quarter of the lanes") {
  product p = small();
  p.group = 2;
  p.m = 256;
  std::vector<uint8_t> image = image_of(p);
  std::vector<uint32_t> out(size_t{128} * out_columns * 2);
  setup s;
  s.buffer(image).buffer(out).block(128).grid(1);
  s.value(p.left.descriptor(p.a, 0)).value(p.right.descriptor(p.b, b_at));
  s.value(uint64_t{p.instruction()});
  const outcome alone = s.run(text_of(p));
  REQUIRE(alone.failed);
  CHECK(alone.failed->what.find("without a second block") != std::string::npos);

  product scaled{
    .a = e4m3, .b = e4m3, .n = 16, .kind = "mxf8f6f4", .suffix = ".block_scale", .block = 32};
  std::vector<uint8_t> tiles = image_of(scaled);
  setup t;
  t.buffer(tiles).buffer(out).block(128);
  t.value(scaled.left.descriptor(scaled.a, 0)).value(scaled.right.descriptor(scaled.b, b_at));
  t.value(uint64_t{scaled.instruction()});
  must_pass(t.run(text_of(scaled)));
  const outcome once = t.run(replaced(text_of(scaled), "32x128b.warpx4", "64x128b.warpx2::02_13"));
  REQUIRE(once.failed);
  INFO(once.failed->what);
  CHECK(once.failed->what.find("each quarter of the lanes") != std::string::npos);
}
