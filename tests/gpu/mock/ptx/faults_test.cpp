#include "tests/gpu/mock/ptx/ptx_run.hpp"

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

/// Runs a body with one read-only buffer p0 and one writable buffer p1 of 32 words each.
fault must_fail(const std::string& body, uint32_t threads = 32, uint64_t limit = 100000) {
  std::vector<uint32_t> in(32), out(32);
  setup s;
  s.buffer(in, false).buffer(out).block(threads);
  s.what.instruction_limit = limit;
  const outcome result = s.run(
    entry("mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];\n" + body, 2));
  REQUIRE(result.failed);
  CHECK(result.failed->entry == "k");
  return *result.failed;
}

} // namespace

TEST_CASE("a read past the end of its buffer is a fault that names line, thread and buffer") {
  const fault f = must_fail("mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, %rd1;\n"
                            "add.s64 %rd3, %rd3, 12;\nld.global.u32 %r2, [%rd3];");
  CHECK(f.kind == fault_kind::out_of_bounds);
  CHECK(f.ptx_line == 11);
  CHECK(f.thread == std::array<uint32_t, 3>{29, 0, 0});
  CHECK(f.instruction == "ld.global.u32 %r2, [%rd3];");
  CHECK(f.what.find("kernel 'k', PTX line 11, `ld.global.u32 %r2, [%rd3];`: read of 4 bytes") == 0);
  CHECK(f.what.find("0 bytes past the end of 'buffer 0' (128 bytes)") != std::string::npos);
}

TEST_CASE("an access that begins inside and ends outside its buffer is a fault") {
  const fault f = must_fail("ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%rd1+128];");
  CHECK(f.kind == fault_kind::out_of_bounds);
  CHECK(must_fail("add.s64 %rd3, %rd1, -16; ld.global.v2.u64 {%rd4,%rd5}, [%rd3];").kind
    == fault_kind::out_of_bounds);
  CHECK(must_fail("mov.u64 %rd3, 0; ld.global.u32 %r2, [%rd3];").what.find("a null pointer")
    != std::string::npos);
  CHECK(must_fail("mov.u64 %rd3, -4; ld.u32 %r2, [%rd3];").kind == fault_kind::out_of_bounds);
}

TEST_CASE("shared and local memory have their bounds") {
  CHECK(must_fail(".shared .align 4 .b8 x[64]; mov.u32 %r2, x; ld.shared.u32 %r3, [%r2+64];").kind
    == fault_kind::out_of_bounds);
  CHECK(must_fail(".shared .align 4 .b8 x[64]; mov.u32 %r2, x; shl.b32 %r3, %r1, 2; "
                  "add.s32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1;")
          .what.find("the block has 64 bytes")
    != std::string::npos);
  CHECK(must_fail(".local .align 4 .b8 x[8]; mov.u64 %rd3, x; ld.local.u32 %r3, [%rd3+-4];").kind
    == fault_kind::out_of_bounds);
  CHECK(must_fail(".local .align 4 .b8 x[8]; mov.u64 %rd3, x; cvta.local.u64 %rd4, %rd3; "
                  "st.u32 [%rd4+8], %r1;")
          .kind
    == fault_kind::out_of_bounds);
}

TEST_CASE("addresses have to be multiples of the size of the access") {
  CHECK(must_fail("ld.global.u32 %r2, [%rd1+2];").kind == fault_kind::misaligned);
  const fault f =
    must_fail("mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, %rd2; setp.lt.u32 %p1, %r1, 8; "
              "@%p1 st.global.v2.u32 [%rd3], {%r1, %r1};");
  CHECK(f.kind == fault_kind::misaligned);
  CHECK(f.thread[0] == 1);
  CHECK(must_fail(".shared .align 16 .b8 x[64]; ld.shared.u64 %rd3, [x+4];").kind
    == fault_kind::misaligned);
}

TEST_CASE("a buffer that is read-only stays so") {
  const fault f = must_fail("st.global.u32 [%rd1], %r1;");
  CHECK(f.kind == fault_kind::write_to_read_only);
  CHECK(f.what.find("'buffer 0', which must not be written") != std::string::npos);
  CHECK(must_fail("red.global.add.u32 [%rd1], 1;").kind == fault_kind::write_to_read_only);
}

TEST_CASE("half a warp at a barrier is a fault when the other half waits elsewhere") {
  CHECK(
    must_fail("setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bar.sync 1; bra B; A: bar.sync 2; B: ").kind
    == fault_kind::barrier_divergence);
  CHECK(
    must_fail("setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;").kind == fault_kind::barrier_divergence);
}

TEST_CASE("a mask must name those who execute, and those whom it names must arrive") {
  CHECK(must_fail("shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff;").kind == fault_kind::bad_mask);
  // The others wait at a barrier and never come.
  const fault f =
    must_fail("setp.lt.u32 %p1, %r1, 16; @!%p1 bra OTHER; vote.sync.ballot.b32 %r2, %p1, -1; "
              "OTHER: bar.sync 0;");
  CHECK((f.kind == fault_kind::bad_mask || f.kind == fault_kind::barrier_divergence));
  CHECK(must_fail("setp.lt.u32 %p1, %r1, 16; @%p1 redux.sync.add.s32 %r2, %r1, -1;").kind
    == fault_kind::bad_mask);
  CHECK(must_fail("mov.u32 %r2, 0xff; setp.lt.u32 %p1, %r1, 8; @!%p1 bra END; "
                  "shfl.sync.idx.b32 %r3, %r1, 20, 31, %r2; END: bar.warp.sync -1;")
          .kind
    == fault_kind::bad_mask);
}

TEST_CASE("barriers and mbarriers that never complete are deadlocks") {
  const fault f = must_fail("bar.sync 3, 96;", 64);
  CHECK(f.kind == fault_kind::deadlock);
  CHECK(f.what.find("barrier 3 is never complete: 64 threads have arrived, 96 are expected")
    != std::string::npos);
  CHECK(must_fail(".shared .align 8 .b8 b[8]; mbarrier.init.shared.b64 [b], 2; "
                  "W: mbarrier.try_wait.parity.shared.b64 %p1, [b], 0; @!%p1 bra W;",
          32, 10'000'000)
          .kind
    == fault_kind::deadlock);
}

TEST_CASE("endless loops end at the instruction limit") {
  const fault f = must_fail("L: add.s32 %r2, %r2, 1; bra L;", 64, 5000);
  CHECK(f.kind == fault_kind::instruction_limit);
  CHECK(f.what.find("5000 warp instructions") != std::string::npos);
}

TEST_CASE("traps, unknown branch targets and misused mbarriers") {
  CHECK(must_fail("trap;").kind == fault_kind::trap);
  CHECK(must_fail("T: .branchtargets A; brx.idx %r1, T; A: ").kind == fault_kind::trap);
  CHECK(must_fail(".shared .align 8 .b8 b[8]; mbarrier.arrive.shared.b64 _, [b];")
          .what.find("used before mbarrier.init")
    != std::string::npos);
}

TEST_CASE("launches that a GPU would refuse are refused") {
  std::vector<uint32_t> out(32);
  const auto m = must_parse(std::string(head)
    + ".visible .entry k(.param .u64 p) .maxntid 64, 1, 1 { .shared .b8 x[1000]; .reg .u32 %r<2>; "
      "mov.u32 %r1, x; ret; }");
  const auto refused = [&](auto&& change) {
    setup s;
    s.buffer(out).block(32);
    change(s.what);
    const outcome result = s.run(m);
    REQUIRE(result.failed);
    CHECK(result.failed->kind == fault_kind::bad_launch);
    CHECK(result.done.blocks_run == 0);
    return result.failed->what;
  };
  CHECK(refused([](launch& l) { l.entry = "j"; }).find("no such entry") != std::string::npos);
  CHECK(refused([](launch& l) { l.block[0] = 65; }).find("at most 64") != std::string::npos);
  refused([](launch& l) { l.block[1] = 0; });
  refused([](launch& l) { l.block = {1, 1, 65}; });
  refused([](launch& l) { l.grid[1] = 65536; });
  refused([](launch& l) { l.parameters.resize(7); });
  refused([](launch& l) { l.dynamic_shared = 300000; });
  refused([](launch& l) { l.first_block = 1; });
  refused([](launch& l) { l.memory[0].device = 100; });
  refused([](launch& l) { l.memory[0].device = device_address_end; });
  CHECK(refused([](launch& l) { l.memory.push_back(l.memory[0]); }).find("overlap")
    != std::string::npos);
  setup fine;
  fine.buffer(out).block(64);
  must_pass(fine.run(m));
}

TEST_CASE("warnings name what is doubtful but works on a GPU") {
  std::vector<uint32_t> out(1);
  setup s;
  s.buffer(out).block(32);
  const outcome result = s.run(entry("mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 16; @%p1 ret; "
                                     "bar.sync 0; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;"));
  must_pass(result);
  REQUIRE(result.done.warnings.size() == 2);
  CHECK(result.done.warnings[0].find("a barrier after some lanes of a warp have exited") == 0);
  CHECK(result.done.warnings[1].find("the mask names lanes that have exited") == 0);
}
