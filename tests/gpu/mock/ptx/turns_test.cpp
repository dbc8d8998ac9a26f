#include "tests/gpu/mock/ptx/ptx_run.hpp"

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

/// A launch of `blocks` blocks with one buffer of words, all zero at first.
struct trial {
  std::vector<uint32_t> words;
  setup with;

  explicit trial(uint32_t blocks, uint32_t threads = 64, size_t size = 64) : words(size) {
    with.buffer(words).grid(blocks).block(threads);
    with.what.instruction_limit = 20'000'000;
  }
  outcome run(const std::string& body) {
    return with.run(entry("mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x;\n"
                          "ld.param.u64 %rd1, [p0];\n"
      + body));
  }
  fault must_fail(const std::string& body) {
    const outcome result = run(body);
    REQUIRE(result.failed);
    return *result.failed;
  }
};

/// All blocks meet at the first word; `%r9` is how often they have met.
std::string meet(const std::string& look, const std::string& label) {
  return "bar.sync 0; setp.ne.u32 %p1, %r1, 0; add.s32 %r9, %r9, 1; mul.lo.s32 %r8, %r9, %r3;\n"
         "@%p1 bra "
    + label + "DONE; red.global.add.u32 [%rd1], 1;\n" + label + ": " + look
    + " setp.lt.u32 %p2, %r7, %r8; @%p2 bra " + label + ";\n" + label + "DONE: bar.sync 0;\n";
}

const std::string looks[] = {"ld.volatile.global.u32 %r7, [%rd1];", "ld.global.u32 %r7, [%rd1];",
  "ld.acquire.gpu.global.u32 %r7, [%rd1];", "atom.global.add.u32 %r7, [%rd1], 0;",
  "nanosleep.u32 20; ld.global.u32 %r7, [%rd1];"};

} // namespace

TEST_CASE("blocks that meet at a counter all pass it, however they look at it") {
  for (const std::string& look : looks) {
    CAPTURE(look);
    trial t(20);
    // Each block leaves a number before the first meeting, and adds its right neighbour's after it.
    must_pass(t.run("mov.u32 %r9, 0; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd2, %rd1;\n"
                    "add.s32 %r4, %r2, 100; st.global.u32 [%rd2+4], %r4;\n"
      + meet(look, "A")
      + "add.s32 %r5, %r2, 1; rem.u32 %r5, %r5, %r3; mul.wide.u32 %rd3, %r5, 4;\n"
        "add.s64 %rd3, %rd3, %rd1; ld.global.u32 %r6, [%rd3+4];\n"
      + meet(look, "B") + "st.global.u32 [%rd2+4], %r6;"));
    for (uint32_t b = 0; b < 20; ++b)
      CHECK(t.words[b + 1] == (b + 1) % 20 + 100);
    CHECK(t.words[0] == 40);
  }
}

TEST_CASE("blocks that never meet run one after the other, in their order") {
  trial t(8, 32);
  must_pass(t.run("setp.ne.u32 %p1, %r1, 0; @%p1 ret; atom.global.inc.u32 %r4, [%rd1], 1000;\n"
                  "mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd2, %rd1;\n"
                  "st.global.u32 [%rd2+4], %r4;"));
  for (uint32_t b = 0; b < 8; ++b)
    CHECK(t.words[b + 1] == b);
}

TEST_CASE("a chain of blocks that wait for the one before, or behind, comes to its end") {
  for (const bool behind : {false, true})
    for (const std::optional<uint64_t> seed : {std::optional<uint64_t>{}, {7}, {8}}) {
      trial t(50, 32);
      t.with.what.order_seed = seed;
      // Word b becomes 1 more than that of the block before; the first has nobody to wait for.
      const std::string mine = behind ? "sub.s32 %r2, 49, %r2;\n" : "";
      must_pass(t.run(mine
        + "mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd2, %rd1; mov.u32 %r4, 0;\n"
          "setp.eq.u32 %p1, %r2, 0; @%p1 bra GO;\n"
          "W: ld.volatile.global.u32 %r4, [%rd2+-4]; setp.eq.u32 %p2, %r4, 0; @%p2 bra W;\n"
          "GO: add.s32 %r4, %r4, 1; st.global.u32 [%rd2], %r4;"));
      CHECK(t.words[49] == 50);
    }
}

TEST_CASE("lanes of one warp take a lock one after the other") {
  trial t(2, 64);
  must_pass(t.run("mov.u32 %r5, 0; L: atom.global.cas.b32 %r4, [%rd1], 0, 1;\n"
                  "setp.ne.u32 %p1, %r4, 0; @%p1 bra L;\n"
                  "ld.volatile.global.u32 %r6, [%rd1+4]; add.s32 %r6, %r6, 1;\n"
                  "st.volatile.global.u32 [%rd1+4], %r6; membar.gl;\n"
                  "atom.global.exch.b32 %r7, [%rd1], 0;"));
  CHECK(t.words[1] == 128);
}

TEST_CASE("a wait for what no block will write is a deadlock that says who waits where") {
  for (const std::string& look : looks) {
    CAPTURE(look);
    trial t(3, 64);
    const fault f = t.must_fail("W: " + look + " setp.eq.u32 %p1, %r7, 0; @%p1 bra W;");
    CHECK(f.kind == fault_kind::deadlock);
    CHECK(
      f.what.find("none of the 3 resident blocks can go on: a loop waits for a change of memory "
                  "that never comes")
      != std::string::npos);
    CHECK(f.what.find("6 warps, first in block (0, 0, 0)") != std::string::npos);
  }
}

TEST_CASE("a barrier that is never complete is a deadlock of its block, and no other is started") {
  trial t(500, 64);
  const outcome result = t.run("bar.sync 3, 96;");
  REQUIRE(result.failed);
  CHECK(result.failed->kind == fault_kind::deadlock);
  CHECK(result.failed->what.find("no warp of the block can go on: barrier 3 is never complete")
    != std::string::npos);
  CHECK(result.done.blocks_run == 1);
}

TEST_CASE("what waits for a block that finds no room is a deadlock") {
  trial t(6, 32);
  t.with.what.resident_blocks = 4;
  const fault f = t.must_fail("mov.u32 %r9, 0; " + meet(looks[0], "A"));
  CHECK(f.kind == fault_kind::deadlock);
  CHECK(f.what.find("there is no room for the 2 that have not started") != std::string::npos);
}

TEST_CASE("a cooperative grid that does not fit is refused, one that fits runs") {
  trial t(6, 32);
  t.with.what.cooperative = true;
  t.with.what.resident_blocks = 5;
  const fault f = t.must_fail("mov.u32 %r9, 0; " + meet(looks[0], "A"));
  CHECK(f.kind == fault_kind::bad_launch);
  CHECK(
    f.what.find("a cooperative grid of 6 blocks; the device holds 5 at once") != std::string::npos);
  t.with.what.resident_blocks = 6;
  must_pass(t.run("mov.u32 %r9, 0; " + meet(looks[0], "A")));
}

TEST_CASE("a loop that counts while it waits is no deadlock: the limit of instructions ends it") {
  trial t(2, 32);
  const fault f = t.must_fail("mov.u32 %r4, 0; W: add.s32 %r4, %r4, 1;\n"
                              "ld.volatile.global.u32 %r7, [%rd1]; setp.eq.u32 %p1, %r7, 0;\n"
                              "@%p1 bra W; st.global.u32 [%rd1+4], %r4;");
  CHECK(f.kind == fault_kind::instruction_limit);
}

TEST_CASE("a race shows as results that differ between orders") {
  const auto last = [](uint64_t seed) {
    trial t(40, 32);
    t.with.what.order_seed = seed;
    must_pass(t.run("st.global.u32 [%rd1], %r2;"));
    return t.words[0];
  };
  CHECK(last(3) == last(3));
  CHECK((last(1) != last(2) || last(2) != last(3) || last(3) != last(4)));
}
