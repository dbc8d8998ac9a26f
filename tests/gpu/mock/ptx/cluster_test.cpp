#include "tests/gpu/mock/ptx/ptx_run.hpp"

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

const std::string meet = "barrier.cluster.arrive.release.aligned; "
                         "barrier.cluster.wait.acquire.aligned;\n";

/// Clusters of `size` blocks of 32 threads, two of them, and one word for each thread.
struct cluster_trial {
  std::vector<uint32_t> words;
  setup with;

  explicit cluster_trial(uint32_t size, uint32_t clusters = 2) : words(size * clusters * 32) {
    with.buffer(words).grid(size * clusters).block(32);
    with.what.cluster = {size, 1, 1};
    with.what.instruction_limit = 2'000'000;
  }
  /// The body gives %r10, which is stored at the word of the thread.
  outcome run(const std::string& body) {
    return with.run(entry(".shared .align 16 .b8 x[512]; .shared .align 8 .b8 m[8];\n"
                          "mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank;\n"
                          "mov.u32 %r3, %cluster_nctarank; mov.u32 %r4, x; mov.u32 %r5, m;\n"
                          "add.s32 %r6, %r2, 1; rem.u32 %r6, %r6, %r3;\n"
      + body
      + "mov.u32 %r20, %ctaid.x; mad.lo.s32 %r20, %r20, 32, %r1; mul.wide.u32 %rd20, %r20, 4;\n"
        "ld.param.u64 %rd21, [p0]; add.s64 %rd20, %rd20, %rd21; st.global.u32 [%rd20], %r10;"));
  }
  std::vector<uint32_t> of_ranks(const std::string& body) {
    must_pass(run(body));
    std::vector<uint32_t> out;
    for (size_t i = 0; i < words.size(); i += 32)
      out.push_back(words[i]);
    return out;
  }
  fault must_fail(const std::string& body) {
    const outcome result = run(body);
    REQUIRE(result.failed);
    return *result.failed;
  }
};

using list = std::vector<uint32_t>;

} // namespace

TEST_CASE("a block of a cluster reads and writes the shared memory of the others") {
  const std::string put = "add.s32 %r7, %r2, 10; st.shared.u32 [%r4], %r7;\n" + meet;
  const std::string get = "mapa.shared::cluster.u32 %r8, %r4, %r6;\n";
  CHECK(cluster_trial(4).of_ranks(put + get + "ld.shared::cluster.u32 %r10, [%r8];\n" + meet)
    == list{11, 12, 13, 10, 11, 12, 13, 10});
  // By generic addresses.
  CHECK(cluster_trial(2).of_ranks(put
          + "cvt.u64.u32 %rd1, %r4; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r6;\n"
            "ld.u32 %r10, [%rd2];\n"
          + meet)
    == list{11, 10, 11, 10});
  CHECK(cluster_trial(2).of_ranks(put + get
          + "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared::cluster.u32 [%r8], %r2;\n" + meet
          + "ld.shared.u32 %r10, [%r4];\n")
    == list{1, 0, 1, 0});
  // Every thread of every block adds to a word of rank 0.
  CHECK(cluster_trial(8).of_ranks("mov.u32 %r7, 0; st.shared.u32 [%r4], %r7;\n" + meet
          + "mov.u32 %r9, 0; mapa.shared::cluster.u32 %r8, %r4, %r9;\n"
            "atom.shared::cluster.add.u32 %r11, [%r8], 1;\n"
          + meet + "ld.shared::cluster.u32 %r10, [%r8];\n" + meet)
    == list(16, 256));
}

TEST_CASE("special registers and getctarank say where a block is in its cluster") {
  cluster_trial t(4);
  t.with.what.grid = {4, 2, 1};
  t.with.what.cluster = {2, 2, 1};
  CHECK(t.of_ranks("mov.u32 %r11, %cluster_ctaid.x; mov.u32 %r12, %cluster_ctaid.y;\n"
                   "mov.u32 %r13, %clusterid.x; mov.u32 %r14, %nclusterid.x;\n"
                   "mad.lo.s32 %r10, %r2, 10, %r11; mad.lo.s32 %r10, %r10, 10, %r12;\n"
                   "mad.lo.s32 %r10, %r10, 10, %r13; mad.lo.s32 %r10, %r10, 10, %r14;\n"
                   "mov.u32 %r15, %ctaid.y; setp.eq.u32 %p1, %r15, 1; @%p1 ret;\n")
    == list{2, 11002, 12, 11012, 0, 0, 0, 0});
  CHECK(cluster_trial(2).of_ranks("mapa.shared::cluster.u32 %r8, %r4, %r6;\n"
                                  "getctarank.shared::cluster.u32 %r9, %r8;\n"
                                  "getctarank.shared::cluster.u32 %r11, %r4;\n"
                                  "mad.lo.s32 %r10, %r9, 10, %r11;\n")
    == list{10, 1, 10, 1});
  CHECK(cluster_trial(2).of_ranks("mov.pred %p1, %is_explicit_cluster; selp.u32 %r10, 5, 6, %p1;\n")
    == list(4, 5));
  CHECK(cluster_trial(1).of_ranks("mov.pred %p1, %is_explicit_cluster; selp.u32 %r10, 5, 6, %p1;\n")
    == list(2, 6));
}

TEST_CASE("isspacep tells the own block's shared memory from that of the cluster") {
  CHECK(cluster_trial(2).of_ranks(
          "cvt.u64.u32 %rd1, %r4; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r6;\n"
          "isspacep.shared::cta %p1, %rd2; isspacep.shared::cluster %p2, %rd2;\n"
          "isspacep.shared %p3, %rd1; selp.u32 %r10, 1, 0, %p1; selp.u32 %r11, 10, 0, %p2;\n"
          "selp.u32 %r12, 100, 0, %p3; add.s32 %r10, %r10, %r11; add.s32 %r10, %r10, %r12;\n")
    == list(4, 110));
}

TEST_CASE("asynchronous stores, reductions, arrivals and copies reach a neighbour's mbarrier") {
  const std::string start = "setp.eq.u32 %p1, %r1, 0; mov.u32 %r7, 5; st.shared.u32 [%r4], %r7;\n"
                            "@%p1 mbarrier.init.shared.b64 [%r5], 1;\n"
    + meet
    + "mapa.shared::cluster.u32 %r8, %r4, %r6; mapa.shared::cluster.u32 %r9, %r5, %r6;\n"
      "add.s32 %r11, %r2, 40;\n";
  const auto expect = [](int bytes) {
    return "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], " + std::to_string(bytes) + ";\n";
  };
  const std::string wait = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra W;\n"
                           "ld.shared.u32 %r10, [%r4];\n"
    + meet;
  CHECK(cluster_trial(2).of_ranks(start + expect(4)
          + "@%p1 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r8], %r11, "
            "[%r9];\n"
          + wait)
    == list{41, 40, 41, 40});
  CHECK(cluster_trial(2).of_ranks(start + expect(4)
          + "@%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
            "[%r8], %r11, [%r9];\n"
          + wait)
    == list{46, 45, 46, 45});
  CHECK(cluster_trial(2).of_ranks(start
          + "@%p1 st.shared::cluster.u32 [%r8], %r11;\n"
            "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];\n"
          + wait)
    == list{41, 40, 41, 40});
  CHECK(cluster_trial(2).of_ranks(start + expect(16)
          + "add.s32 %r12, %r4, 16; st.shared.u32 [%r12], %r11;\n"
            "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
            "[%r8], [%r12], 16, [%r9];\n"
          + wait)
    == list{41, 40, 41, 40});
}

TEST_CASE("addresses outside the cluster are faults") {
  CHECK(cluster_trial(2)
          .must_fail("mapa.shared::cluster.u32 %r8, %r4, 2;\n")
          .what.find("mapa to rank 2 of a cluster of 2 blocks")
    != std::string::npos);
  CHECK(cluster_trial(2)
          .must_fail("or.b32 %r8, %r4, 0x7000000; ld.shared::cluster.u32 %r10, [%r8];\n")
          .what.find("in no block of the cluster")
    != std::string::npos);
  CHECK(cluster_trial(2)
          .must_fail("mapa.shared::cluster.u32 %r8, %r4, %r6; "
                     "ld.shared::cluster.u32 %r10, [%r8+4096];\n")
          .what.find("a block has 520 bytes")
    != std::string::npos);
  // Rank 0 is gone when rank 1 reads.
  CHECK(cluster_trial(2)
          .must_fail("setp.eq.u32 %p1, %r2, 0; @%p1 ret; mapa.shared::cluster.u32 %r8, %r4, 0;\n"
                     "L: add.s32 %r11, %r11, 1; setp.lt.u32 %p2, %r11, 100000; @%p2 bra L;\n"
                     "ld.shared::cluster.u32 %r10, [%r8];\n")
          .what.find("the block of rank 0 has exited")
    != std::string::npos);
  // `.shared` is the own block.
  CHECK(cluster_trial(2)
          .must_fail("mapa.shared::cluster.u32 %r8, %r4, %r6; ld.shared.u32 %r10, [%r8];\n")
          .kind
    == fault_kind::out_of_bounds);
}

TEST_CASE("a cluster's barrier that some never reach is a deadlock; those that exit do not count") {
  const fault f = cluster_trial(2).must_fail(
    "setp.eq.u32 %p1, %r2, 1; @%p1 bra OTHER;\n" + meet + "bra END; OTHER: bar.sync 1, 64; END:\n");
  CHECK(f.kind == fault_kind::deadlock);
  CHECK(f.what.find("the barrier of the cluster is never complete") != std::string::npos);
  CHECK(f.what.find("barrier 1 is never complete") != std::string::npos);
  CHECK(cluster_trial(2).of_ranks("mov.u32 %r10, 3; setp.eq.u32 %p1, %r2, 1; @%p1 ret;\n" + meet)
    == list{3, 0, 3, 0});
  CHECK(cluster_trial(2).must_fail("barrier.cluster.wait;\n").what.find("without having arrived")
    != std::string::npos);
}

TEST_CASE("the cluster of the entry counts where the launch gives none, and must not differ") {
  const auto m = must_parse(std::string(head)
    + ".visible .entry k(.param .u64 p0) .reqntid 32, 1, 1 .explicitcluster "
      ".reqnctapercluster 2, 1, 1 { .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
      "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank;\n"
      "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret; }");
  std::vector<uint32_t> words(4, 9);
  setup s;
  s.buffer(words).grid(4).block(32);
  must_pass(s.run(m));
  CHECK(words == list{0, 1, 0, 1});
  const auto refused = [&](uint32_t grid, uint32_t cluster) {
    s.grid(grid);
    s.what.cluster = {cluster, 1, 1};
    const outcome result = s.run(m);
    REQUIRE(result.failed);
    CHECK(result.failed->kind == fault_kind::bad_launch);
    return result.failed->what;
  };
  CHECK(refused(4, 4).find("the entry wants 2 x 1 x 1") != std::string::npos);
  CHECK(refused(3, 1).find("not a multiple of 2") != std::string::npos);
  CHECK(refused(4, 0).find("the entry wants 2 x 1 x 1") != std::string::npos);
  CHECK_FALSE(parse(std::string(head) + ".visible .entry k() .reqnctapercluster 3, 3, 1 { ret; }"));
}

TEST_CASE("griddepcontrol and setmaxnreg are accepted in the forms that exist") {
  must_pass(cluster_trial(1).run("griddepcontrol.wait; griddepcontrol.launch_dependents;\n"
                                 "setmaxnreg.inc.sync.aligned.u32 232; "
                                 "setmaxnreg.dec.sync.aligned.u32 40;\n"));
  CHECK_FALSE(parse(entry("griddepcontrol.stop;", 0)));
  CHECK_FALSE(parse(entry("setmaxnreg.inc.sync.aligned.u32 36;", 0)));
}
