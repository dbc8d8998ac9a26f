// The checks of `checks.hpp`, on PTX written by hand.

#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <fmt/format.h>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

/// What a body finds with these checks. p0 is read-only, p1 is writable, of 256 words each; %r1 is
/// the thread, %r2 the block, %rd1 and %rd2 the buffers, %rd3 four times the thread.
struct watched {
  std::vector<uint32_t> in = std::vector<uint32_t>(256, 5);
  std::vector<uint32_t> out = std::vector<uint32_t>(256);
  std::vector<uint8_t> undefined = std::vector<uint8_t>(1024, 0);
  setup s;
  bool output = false;

  outcome run(
    const std::string& body, check_set checks, uint32_t threads = 64, uint32_t blocks = 1) {
    s.buffer(in, false).buffer(out).block(threads).grid(blocks);
    s.what.memory[1].undefined = undefined.data();
    s.what.memory[1].is_output = output;
    s.what.checks = checks;
    s.what.instruction_limit = 100'000;
    const outcome result =
      s.run(entry(".shared .align 128 .b8 tile[1024];\n"
                  ".shared .align 8 .b8 bar[16];\n"
                  "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
                  "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];\n"
                  "mul.wide.u32 %rd3, %r1, 4; shl.b32 %r3, %r1, 2;\n"
                  "mov.u32 %r4, tile; add.s32 %r5, %r4, %r3; xor.b32 %r6, %r3, 128;\n"
                  "add.s32 %r6, %r4, %r6;\n"
          + body,
        2));
    if (result.failed)
      FAIL(result.failed->what);
    return result;
  }
};

std::vector<fault> found(
  const std::string& body, check which, uint32_t threads = 64, uint32_t blocks = 1) {
  watched w;
  return w.run(body, static_cast<check_set>(which), threads, blocks).findings;
}

constexpr const char* read_other = "ld.shared.u32 %r8, [%r6];\n";
constexpr const char* write_own = "st.shared.u32 [%r5], %r1;\n";

std::string joined(std::initializer_list<const char*> parts) {
  std::string all;
  for (const char* part : parts)
    all += part;
  return all;
}

} // namespace

TEST_CASE("a fault names the line that .loc says, and of inlined code the line that called it") {
  std::string text = entry(".loc 1 10 3\nmov.u64 %rd3, 0;\n"
                           ".loc 2 77 1, function_name $L_name, inlined_at 1 12 5\n"
                           "ld.global.u32 %r2, [%rd3];\n");
  text += ".file 1 \"/some/folder/kernel.cu\", 1700000000, 512\n.file 2 \"header.h\"\n";
  setup s;
  std::vector<uint32_t> one(1);
  const outcome result = s.buffer(one).run(text);
  REQUIRE(result.failed);
  CHECK(result.failed->source.file == "kernel.cu");
  CHECK(result.failed->source.line == 12);
  CHECK(result.failed->what.find("(kernel.cu:12)") != std::string::npos);
  CHECK_FALSE(parse(entry(".loc 1 99999999999999999999 1\n")));
}

TEST_CASE("warps that write and read shared memory race unless a barrier lies between") {
  const auto race = found(joined({write_own, read_other}), check::shared_races);
  REQUIRE(race.size() == 2); // The first warp reads early, the second one late.
  CHECK(race[0].kind == fault_kind::shared_race);
  REQUIRE(race[0].other);
  CHECK(race[0].ptx_line != race[0].other->ptx_line);
  CHECK(found(joined({write_own, "bar.sync 0;\n", read_other}), check::shared_races).empty());
  // And back: who overwrites what others have read needs one as well.
  CHECK_FALSE(
    found(joined({write_own, "bar.sync 0;\n", read_other, write_own}), check::shared_races)
      .empty());
  CHECK(found(joined({write_own, "bar.sync 0;\n", read_other, "bar.sync 0;\n", write_own}),
    check::shared_races)
          .empty());
}

TEST_CASE("a named barrier orders those that take part, and nobody else") {
  const std::string body = joined({"setp.lt.u32 %p1, %r1, 64;\n", write_own,
    "@%p1 bra TWO;\nbar.sync 2, 32;\nbra READ;\nTWO: bar.sync 1, 64;\nREAD:\n"});
  CHECK(found(body + "@%p1 ld.shared.u32 %r8, [%r6];\n", check::shared_races, 96).empty());
  const auto race = found(body + "@!%p1 ld.shared.u32 %r8, [%r4];\n", check::shared_races, 96);
  REQUIRE(race.size() == 1);
  CHECK(race[0].thread[0] >= 64);
}

TEST_CASE("lanes of a warp need a warp-synchronous instruction between") {
  const char* neighbour = "xor.b32 %r7, %r3, 4; add.s32 %r7, %r4, %r7; ld.shared.u32 %r8, [%r7];\n";
  CHECK(found(joined({write_own, neighbour}), check::shared_races, 32).size() == 1);
  CHECK(
    found(joined({write_own, "bar.warp.sync -1;\n", neighbour}), check::shared_races, 32).empty());
  CHECK(found(joined({write_own, "ld.shared.u32 %r8, [%r5];\n"}), check::shared_races, 32).empty());
}

TEST_CASE("writes of one value by several threads are no race, of different ones they are") {
  CHECK(found("st.shared.u32 [%r4], %r2;\n", check::shared_races).empty());
  CHECK(found("st.shared.u32 [%r4], %r1;\n", check::shared_races).size() == 1);
  CHECK(found("st.global.u32 [%rd2], %r3;\n", check::global_races, 1, 2).empty());
  CHECK(found("st.global.u32 [%rd2], %r2;\n", check::global_races, 1, 2).size() == 1);
}

TEST_CASE("neighbouring bytes of a word belong to different threads without a race") {
  CHECK(found("add.s32 %r7, %r4, %r1; cvt.u16.u32 %h1, %r1; st.shared.u8 [%r7], %h1;\n"
              "ld.shared.u8 %h2, [%r7];\n",
    check::shared_races)
          .empty());
}

TEST_CASE("a flag orders blocks only behind a fence of whoever sets it") {
  const auto body = [](const char* before, const char* store, const char* load) {
    return fmt::format("setp.ne.u32 %p1, %r2, 0;\n@%p1 bra READ;\n"
                       "st.global.u32 [%rd2+64], %r1;\n{}\n{} [%rd2], 7;\nret;\n"
                       "READ: {} %r9, [%rd2];\nsetp.eq.u32 %p2, %r9, 0;\n@%p2 bra READ;\n"
                       "ld.global.u32 %r10, [%rd2+64];\n",
      before, store, load);
  };
  const char* poll = "ld.volatile.global.u32";
  CHECK(found(body("", "st.volatile.global.u32", poll), check::global_races, 1, 2).size() == 1);
  CHECK(
    found(body("membar.gl;", "st.volatile.global.u32", poll), check::global_races, 1, 2).empty());
  CHECK(found(body("fence.acq_rel.gpu;", "red.global.add.u32", poll), check::global_races, 1, 2)
          .empty());
  // Among the threads of a block only.
  CHECK(
    found(body("fence.acq_rel.cta;", "red.global.add.u32", poll), check::global_races, 1, 2).size()
    == 1);
  CHECK(found(
    body("", "st.release.gpu.global.u32", "ld.acquire.gpu.global.u32"), check::global_races, 1, 2)
          .empty());
}

TEST_CASE(
  "what a thread of the block has fenced may be published by another one behind a barrier") {
  const std::string body = "setp.ne.u32 %p1, %r2, 0; setp.ne.u32 %p3, %r1, 0;\n@%p1 bra READ;\n"
                           "add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4+512], %r1;\nmembar.gl;\n"
                           "bar.sync 0;\n@%p3 ret;\nst.volatile.global.u32 [%rd2], 7;\nret;\n"
                           "READ: @%p3 bra WAIT;\nPOLL: ld.volatile.global.u32 %r9, [%rd2];\n"
                           "setp.eq.u32 %p2, %r9, 0;\n@%p2 bra POLL;\nWAIT: bar.sync 0;\n"
                           "add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r10, [%rd4+512];\n";
  CHECK(found(body, check::global_races, 64, 2).empty());
}

TEST_CASE("atomic operations do not race with each other, but with plain accesses") {
  CHECK(found(
    "red.global.add.u32 [%rd2], 1; red.shared.add.u32 [%r4], 1;\n", check::global_races, 32, 3)
          .empty());
  CHECK(
    found("red.global.add.u32 [%rd2], 1; ld.global.u32 %r9, [%rd2];\n", check::global_races, 1, 2)
      .size()
    >= 1);
}

TEST_CASE("a copy's bytes may be read when it has been waited for, not before") {
  const char* copy = "cp.async.ca.shared.global [%r5], [%rd1], 4;\ncp.async.commit_group;\n";
  const char* own = "ld.shared.u32 %r8, [%r5];\n";
  CHECK(found(joined({copy, own}), check::shared_races, 32).size() == 1);
  CHECK(found(joined({copy, "cp.async.wait_group 0;\n", own}), check::shared_races, 32).empty());
  // A newer group may still be under way.
  CHECK(found(joined({copy, copy, "cp.async.wait_group 1;\n", own}), check::shared_races, 32).size()
    >= 1);
  CHECK(found(joined({copy, "cp.async.wait_all;\n", read_other}), check::shared_races).size() >= 1);
  CHECK(found(joined({copy, "cp.async.wait_all;\nbar.sync 0;\n", read_other}), check::shared_races)
          .empty());
}

TEST_CASE("a bulk copy is waited for at its mbarrier") {
  const std::string begin =
    "setp.ne.u32 %p3, %r1, 0;\n@%p3 bra READY;\n"
    "mbarrier.init.shared.b64 [bar], 1;\nREADY: bar.sync 0;\n@%p3 bra WAIT;\n"
    "mov.u32 %r7, bar;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r7], 512;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 512, [%r7];\n"
    "WAIT:\n";
  const char* wait = "POLL: mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0;\n@!%p4 bra POLL;\n";
  CHECK(found(begin + "ld.shared.u32 %r8, [%r5];\n", check::shared_races).size() >= 1);
  CHECK(found(begin + wait + "ld.shared.u32 %r8, [%r5];\n", check::shared_races).empty());
}

TEST_CASE("a tile that a bulk copy still reads must not be overwritten") {
  const auto body = [](const char* wait) {
    return fmt::format("st.shared.u32 [%r5], %r1;\nfence.proxy.async;\nbar.sync 0;\n"
                       "setp.ne.u32 %p3, %r1, 0;\n@%p3 bra ON;\n"
                       "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r4], 256;\n"
                       "cp.async.bulk.commit_group;\n{}\nON: bar.sync 0;\n"
                       "st.shared.u32 [%r5], 3;\n",
      wait);
  };
  CHECK(found(body(""), check::shared_races).size() == 1);
  CHECK(found(body("cp.async.bulk.wait_group.read 0;"), check::shared_races).empty());
}

TEST_CASE("a bulk copy sees what threads wrote only behind a proxy fence") {
  const auto body = [](const char* before, const char* after) {
    return fmt::format("st.shared.u32 [%r5], %r1;\n{}\nbar.sync 0;\n{}\n"
                       "setp.ne.u32 %p3, %r1, 0;\n@%p3 ret;\n"
                       "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r4], 256;\n",
      before, after);
  };
  const auto missing = found(body("", ""), check::fences);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].kind == fault_kind::missing_proxy_fence);
  CHECK(missing[0].other);
  CHECK(found(body("fence.proxy.async.shared::cta;", ""), check::fences).empty());
  CHECK(found(body("", "fence.proxy.async;"), check::fences).empty());
  CHECK(found(body("fence.acq_rel.cta;", ""), check::fences).size() == 1);
}

TEST_CASE("the barrier of a cluster orders accesses to another block's shared memory") {
  const auto body = [](const char* barrier) {
    return fmt::format("xor.b32 %r7, %r2, 1;\nmapa.shared::cluster.u32 %r8, %r5, %r7;\n"
                       "st.shared::cluster.u32 [%r8], %r1;\n{}\nld.shared.u32 %r9, [%r5];\n"
                       "barrier.cluster.arrive; barrier.cluster.wait;\n",
      barrier);
  };
  const auto run = [&](const char* barrier) {
    watched w;
    w.s.what.cluster = {2, 1, 1};
    return w.run(body(barrier), static_cast<check_set>(check::shared_races), 32, 2).findings.size();
  };
  CHECK(run("") >= 1);
  CHECK(run("barrier.cluster.arrive; barrier.cluster.wait;") == 0);
}

TEST_CASE(
  "a value that nobody has given may be moved and computed with, and is reported where it counts") {
  const char* take = "ld.shared.u32 %r9, [%r5];\nadd.s32 %r10, %r9, 1;\n";
  const auto kinds = [&](const std::string& rest) {
    watched w;
    w.output = true;
    return w.run(take + rest, static_cast<check_set>(check::uninitialised), 32).findings;
  };
  CHECK(kinds("mov.u32 %r11, %r10;\nst.shared.u32 [%r5], %r11;\n").empty());
  const auto branch =
    kinds("setp.eq.u32 %p1, %r10, 3;\n@%p1 bra ON;\nadd.s32 %r11, %r11, 1;\nON:\n");
  REQUIRE(branch.size() == 1);
  CHECK(branch[0].kind == fault_kind::uninitialised);
  REQUIRE(branch[0].other);
  CHECK(branch[0].other->instruction == "ld.shared.u32 %r9, [%r5];");
  CHECK(
    kinds("and.b32 %r10, %r10, 252; add.s32 %r10, %r10, %r4;\nld.shared.u32 %r11, [%r10];\n").size()
    == 1);
  CHECK(kinds("add.s64 %rd4, %rd2, %rd3;\nst.global.u32 [%rd4], %r10;\n").size() == 1);
  // Through memory and back.
  CHECK(
    kinds("st.shared.u32 [%r5], %r10;\nld.shared.u32 %r12, [%r5];\nst.global.u32 [%rd2], %r12;\n")
      .size()
    == 1);
  CHECK(
    kinds("shfl.sync.bfly.b32 %r12, %r10, 1, 31, -1;\nst.global.u32 [%rd2], %r12;\n").size() == 1);
}

TEST_CASE("what a predicate discards does not count") {
  const auto clean = [&](const std::string& rest) {
    watched w;
    w.output = true;
    return w
      .run("ld.shared.u32 %r9, [%r5];\nsetp.lt.u32 %p1, %r1, 0;\n" + rest,
        static_cast<check_set>(check::uninitialised), 32)
      .findings.empty();
  };
  CHECK(clean("selp.u32 %r10, %r9, %r1, %p1;\nst.global.u32 [%rd2], %r10;\n"));
  CHECK_FALSE(clean("selp.u32 %r10, %r1, %r9, %p1;\nst.global.u32 [%rd2], %r10;\n"));
  CHECK(clean("setp.gt.u32 %p2, %r9, 3;\nand.pred %p3, %p1, %p2;\n@%p3 bra ON;\nON:\n"));
  CHECK_FALSE(clean("setp.gt.u32 %p2, %r9, 3;\nor.pred %p3, %p1, %p2;\n@%p3 bra ON;\nON:\n"));
  CHECK(clean("setp.gt.and.u32 %p3, %r9, 3, %p1;\n@%p3 bra ON;\nON:\n"));
  CHECK_FALSE(clean("setp.gt.and.u32 %p3, %r9, 3, !%p1;\n@%p3 bra ON;\nON:\n"));
}

TEST_CASE("an undefined element of a product spoils its row or column, and nothing else") {
  const auto run = [&](const char* stored) {
    watched w;
    w.output = true;
    // Lane 0 holds row 0 of the left operand; lane 31 the last row.
    return w
      .run("mov.u32 %r10, 0; setp.eq.u32 %p1, %r1, 0;\n@%p1 ld.shared.u32 %r10, [%r5];\n"
           "mov.u32 %r11, 0; mov.f32 %f1, 0f00000000;\n"
           "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, {%r10,%r11}, "
           "{%r11}, {%f1,%f1,%f1,%f1};\n"
          + std::string(stored),
        static_cast<check_set>(check::uninitialised), 32)
      .findings.size();
  };
  CHECK(run("setp.eq.u32 %p2, %r1, 1;\n@%p2 st.global.f32 [%rd2], %f2;\n") == 1);
  CHECK(run("setp.eq.u32 %p2, %r1, 31;\n@%p2 st.global.f32 [%rd2], %f2;\n") == 0);
  CHECK(run("st.global.f32 [%rd2], %f4;\n") == 0);
}

TEST_CASE("an output that is read, or added to, before anybody has written it is a finding") {
  const auto run = [&](const std::string& body) {
    watched w;
    w.output = true;
    w.undefined.assign(w.undefined.size(), 1);
    return w.run(body, static_cast<check_set>(check::outputs), 1).findings.size();
  };
  CHECK(run("ld.global.u32 %r9, [%rd2];\n") == 1);
  CHECK(run("red.global.add.u32 [%rd2], 1;\n") == 1);
  CHECK(run("st.global.u32 [%rd2], 1;\nld.global.u32 %r9, [%rd2];\nred.global.add.u32 [%rd2], 1;\n")
    == 0);
}

TEST_CASE("a wait for a phase that the thread has waited for before is a finding") {
  const auto body = [](int second) {
    return fmt::format("mbarrier.init.shared.b64 [bar], 1;\n"
                       "mbarrier.arrive.shared.b64 _, [bar];\n"
                       "A: mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0;\n@!%p4 bra A;\n"
                       "mbarrier.arrive.shared.b64 _, [bar];\n"
                       "B: mbarrier.try_wait.parity.shared.b64 %p4, [bar], {};\n@!%p4 bra B;\n",
      second);
  };
  CHECK(found(body(1), check::mbarriers, 1).empty());
  watched w;
  w.s.buffer(w.in, false).buffer(w.out).block(1);
  w.s.what.checks = static_cast<check_set>(check::mbarriers);
  w.s.what.instruction_limit = 100'000;
  // The wrong parity waits for the phase behind: nobody will ever arrive in it.
  const outcome stuck = w.s.run(entry(".shared .align 8 .b8 bar[16];\n" + body(0), 2));
  REQUIRE(stuck.failed);
  CHECK(stuck.failed->kind == fault_kind::deadlock);
  REQUIRE(stuck.findings.size() == 1);
  CHECK(stuck.findings[0].kind == fault_kind::mbarrier_phase);
}

TEST_CASE("a finding that occurs often is kept once and counted") {
  watched w;
  const outcome result =
    w.run(joined({write_own, read_other}), static_cast<check_set>(check::shared_races), 64, 3);
  REQUIRE(!result.findings.empty());
  CHECK(result.findings[0].times > 1);
}

TEST_CASE("without checks there are no findings, and no line counts unless they are asked for") {
  watched w;
  const outcome result = w.run(joined({write_own, read_other}), 0);
  CHECK(result.findings.empty());
  CHECK(result.lines.empty());
}

TEST_CASE("the counts of lines add up to those of the launch") {
  watched w;
  w.s.what.per_line = true;
  const outcome result =
    w.run("mul.lo.u32 %r7, %r3, 32; and.b32 %r7, %r7, 1020; add.s32 %r7, %r7, %r4;\n"
          "st.shared.u32 [%r7], %r1;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra ON;\n"
          "ld.global.u32 %r9, [%rd1];\nON:\n",
      0);
  uint64_t instructions = 0;
  uint64_t diverged = 0;
  for (const line_counts& line : result.lines) {
    instructions += line.warp_instructions;
    diverged += line.diverged;
    if (line.instruction == "st.shared.u32 [%r7], %r1;") {
      CHECK(line.passes[1] == 16); // Eight words, all in one bank, for each of two warps.
      CHECK(line.bytes[1] == 256);
    }
  }
  CHECK(instructions == result.done.warp_instructions);
  CHECK(diverged == 1);
  CHECK(result.done.divergent_branches == 1);
}
