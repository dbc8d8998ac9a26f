#include "gpu/mock/clock.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace gristmill;
using ptx::category;

namespace {

const gpu_profile& h200() {
  static const gpu_profile gpu = *profile("h200");
  return gpu;
}

ptx::entry_info entry(uint32_t registers = 32, uint32_t shared = 0) {
  ptx::entry_info e;
  e.name = "k";
  e.registers = registers;
  e.static_shared = shared;
  return e;
}

/// 1,056 blocks of 256 threads, all executed, that read and write so many sectors each.
sample streaming(uint64_t sectors_per_block) {
  sample s;
  s.grid_blocks = 1056;
  s.threads = 256;
  s.counts.blocks_run = 1056;
  s.counts.dram_read_sectors = 1056 * sectors_per_block / 2;
  s.counts.dram_write_sectors = 1056 * sectors_per_block / 2;
  s.counts.l2_sectors = 1056 * sectors_per_block;
  s.counts.l2_write_sectors = 1056 * sectors_per_block / 2;
  return s;
}

/// One block that reads so many sectors from DRAM and does nothing else.
sample reading(uint64_t sectors) {
  sample s;
  s.grid_blocks = s.counts.blocks_run = 1;
  s.threads = 32;
  s.counts.dram_read_sectors = sectors;
  return s;
}

/// Nanoseconds for reading alone.
double read_ns(double bytes) {
  return bytes / (h200().dram_tb_per_s * 1e3);
}

double term(const launch_time& time, const std::string& name) {
  for (const time_term& t : time.terms)
    if (t.name == name)
      return t.ns;
  return -1;
}

launch_time model(const sample& s, const ptx::entry_info& e = entry()) {
  const auto time = model_launch(h200(), e, s);
  REQUIRE_MESSAGE(time, (time ? "" : time.error().what));
  return *time;
}

} // namespace

TEST_CASE("occupancy is the tightest of slots, warps, registers and shared memory") {
  CHECK(resident_blocks(h200(), entry(16), 32, 0) == 32);
  CHECK(resident_blocks(h200(), entry(32), 256, 0) == 8);
  CHECK(resident_blocks(h200(), entry(32), 1024, 0) == 2);
  CHECK(resident_blocks(h200(), entry(64), 256, 0) == 4);
  CHECK(resident_blocks(h200(), entry(128), 256, 0) == 2);
  CHECK(resident_blocks(h200(), entry(32), 128, 100 << 10) == 2);
  CHECK(resident_blocks(h200(), entry(32, 50 << 10), 128, 50 << 10) == 2);
  CHECK(resident_blocks(h200(), entry(32), 1, 0) == 32);
  // 227 KiB fit in one block, more does not.
  CHECK(resident_blocks(h200(), entry(32), 128, 227 << 10) == 1);
  CHECK(resident_blocks(h200(), entry(32), 128, (227 << 10) + 1) == 0);
  CHECK(resident_blocks(h200(), entry(255), 1024, 0) == 0);
  CHECK(resident_blocks(h200(), entry(32), 0, 0) == 0);
}

TEST_CASE("a launch that does nothing costs a launch") {
  const auto time = model(reading(0));
  CHECK(time.bound == "launch");
  CHECK(term(time, "launch") == 1311);
  // Starting the block takes a little, too.
  CHECK(time.ns > 1311);
  CHECK(time.ns < 1700);
  CHECK(sum_of(h200(), {time}).ns == time.ns + 1152);
}

TEST_CASE("twice the bytes take twice the time") {
  const auto once = model(streaming(10000));
  const auto twice = model(streaming(20000));
  CHECK(once.bound == "dram");
  const double ratio = static_cast<double>(twice.ns - 1311) / static_cast<double>(once.ns - 1311);
  CHECK(ratio == doctest::Approx(2).epsilon(0.001));
}

TEST_CASE("blocks that start together mix reads and writes worse than those that follow others") {
  // 1,056 blocks of 10,000 sectors of 32 bytes, half of them written: all of them are resident.
  const double half = 1056 * 5000 * 32;
  auto s = streaming(10000);
  CHECK(
    term(model(s), "dram") == doctest::Approx((half / 4610 + half / 4680) * 1.207).epsilon(1e-4));
  s.grid_blocks = 100 * 1056;
  CHECK(term(model(s), "dram")
    == doctest::Approx(100 * (half / 4610 + half / 4680) * (1.075 + 0.132 / 100)).epsilon(1e-4));
}

TEST_CASE("the time lies between the largest term and their sum") {
  auto s = streaming(10000);
  s.counts.machine.issue = s.counts.machine.fma = 8 * 400'000'000ULL;
  const auto time = model(s);
  double largest = 0, sum = 0;
  for (const time_term& t : time.terms) {
    if (t.name == "launch")
      continue;
    largest = std::max<double>(largest, t.ns);
    sum += t.ns;
  }
  CHECK(static_cast<double>(time.ns - 1311) >= largest - 1);
  CHECK(static_cast<double>(time.ns - 1311) <= sum + 1);
}

TEST_CASE("two equal terms take the fourth root of two longer than one") {
  auto s = reading(0);
  s.counts.l2_sectors = 1'000'000'000;
  const auto one = model(s);
  s.counts.atomic_updates = static_cast<uint64_t>(term(one, "l2") * h200().atomics_per_ns);
  const auto two = model(s);
  CHECK(static_cast<double>(two.ns - 1311) / static_cast<double>(one.ns - 1311)
    == doctest::Approx(1.189207115).epsilon(1e-6));
}

TEST_CASE(
  "latency beside DRAM adds more than latency beside other units, and more so for one stream") {
  auto s = streaming(10000);
  const auto alone = model(s);
  const double dram = term(alone, "dram");
  s.counts.block_critical_cycles = static_cast<uint64_t>(1056 * (dram * 1.98 - 540));
  const auto eight = model(s);
  CHECK(term(eight, "latency") == doctest::Approx(dram).epsilon(1e-3));
  // Eight blocks a multiprocessor: the 2.5-norm of D and D + 0.6 D / 8.
  CHECK(static_cast<double>(eight.ns - 1311) == doctest::Approx(1.3703 * dram).epsilon(2e-3));
  // One block a multiprocessor of the same work.
  s.grid_blocks = s.counts.blocks_run = 132;
  s.counts.block_critical_cycles /= 8;
  CHECK(static_cast<double>(model(s).ns - 1311) == doctest::Approx(1.7819 * dram).epsilon(2e-3));
  // Against the load/store unit: the fourth root of two.
  auto other = reading(0);
  other.counts.block_critical_cycles = 1'000'000;
  other.counts.l2_sectors = static_cast<uint64_t>(term(model(other), "latency") * 9500 / 32);
  CHECK(static_cast<double>(model(other).ns - 1311)
    == doctest::Approx(1.1892 * term(model(other), "latency")).epsilon(1e-3));
}

TEST_CASE("reading and writing together take longer than one after the other, at most by the mix") {
  const auto both = model_transfer(h200(), 1 << 30, 1 << 30);
  const double apart = term(model_transfer(h200(), 1 << 30, 0), "dram")
    + term(model_transfer(h200(), 0, 1 << 30), "dram");
  CHECK(term(both, "dram") / apart == doctest::Approx(1.075).epsilon(1e-4));
}

TEST_CASE("reads of single pairs of sectors take longer than those of whole lines") {
  auto s = reading(1'000'000);
  const auto lines = model(s);
  s.counts.dram_lone_sectors = 1'000'000;
  CHECK(term(model(s), "dram") == doctest::Approx(1.61 * term(lines, "dram")));
}

TEST_CASE("requests to L2 are limited as well as bytes, those that write twice as much") {
  auto s = reading(0);
  s.counts.l2_sectors = s.counts.l2_read_requests = 1'000'000;
  CHECK(term(model(s), "l2") == doctest::Approx(1e6 / 150));
  s.counts.l2_write_sectors = s.counts.l2_write_requests = 1'000'000;
  s.counts.l2_read_requests = 0;
  CHECK(term(model(s), "l2") == doctest::Approx(1e6 / 67));
  // Four sectors a request: the bytes count.
  s.counts.l2_sectors = 4'000'000;
  s.counts.l2_read_requests = 1'000'000;
  s.counts.l2_write_sectors = s.counts.l2_write_requests = 0;
  CHECK(term(model(s), "l2") == doctest::Approx(4e6 * 32 / 9500));
}

TEST_CASE("what all blocks of a multiprocessor find in L1 does not go to L2") {
  auto s = reading(0);
  s.counts.l2_sectors = 3'000'000;
  s.counts.l1_hits = 1'000'000;
  const auto alone = model(s);
  s.l1_share = 0.625;
  CHECK(term(model(s), "l2") == doctest::Approx(0.5 * term(alone, "l2")));
  // Never more than one block at a time asked for.
  s.l1_share = 0.1;
  CHECK(term(model(s), "l2") == term(alone, "l2"));
}

TEST_CASE("atomics on one piece of memory wait for each other, and floats on one address longer") {
  auto s = reading(0);
  s.counts.atomic_updates = 1'000'000;
  CHECK(term(model(s), "atomics") == doctest::Approx(1e6 / 93));
  s.counts.hottest_updates = 1'000'000;
  CHECK(term(model(s), "atomics") == doctest::Approx(0.635e6));
  s.counts.hottest_float_conflicts = 500'000;
  CHECK(term(model(s), "atomics") == doctest::Approx(0.635e6 + 0.56e6));
}

TEST_CASE("launch bounds keep registers low enough for the blocks that they promise") {
  auto e = entry(200);
  CHECK(resident_blocks(h200(), e, 256, 0) == 1);
  e.max_threads = 256;
  e.blocks_per_sm_min = 3;
  CHECK(resident_blocks(h200(), e, 256, 0) == 3);
  e.blocks_per_sm_min = 0;
  e.registers_max = 64;
  CHECK(resident_blocks(h200(), e, 256, 0) == 4);
}

TEST_CASE("blocks that are interleaved read from DRAM what others have not brought to L2") {
  auto s = reading(1'000'000);
  s.counts.unshared_read_sectors = 2'000'000;
  s.unshared_reads_left = 0.25;
  CHECK(term(model(s), "dram") == doctest::Approx(read_ns(500'000.0 * 32)));
}

TEST_CASE("a sample stands for the whole grid") {
  auto part = streaming(10000);
  part.grid_blocks = 10 * part.grid_blocks;
  const auto whole = model(part);
  const auto tenth = model(streaming(10000));
  // The first of ten rounds starts together.
  CHECK(
    term(whole, "dram") == doctest::Approx(10 * term(tenth, "dram") * (1.075 + 0.0132) / 1.207));
  CHECK(whole.blocks_sampled == 1056);
}

TEST_CASE("one block more than the SMs hold in a round makes a round more") {
  sample s;
  s.grid_blocks = 132;
  s.threads = 1024;
  s.counts.blocks_run = 132;
  s.counts.block_critical_cycles = 132 * 100'000;
  const auto one_round = model(s);
  CHECK(one_round.bound == "latency");
  s.grid_blocks = 132 * 3;
  const auto more = model(s);
  // Two blocks of 1,024 threads share an SM, three take one and a half rounds.
  CHECK(term(more, "latency") == doctest::Approx(1.5 * term(one_round, "latency")));
  CHECK(term(one_round, "latency") == doctest::Approx((100'000 + 540) / 1.98));
  s.grid_blocks = 133;
  s.counts.machine.issue = 8'000'000;
  const auto ragged = model(s);
  s.grid_blocks = 132;
  const auto even = model(s);
  CHECK(term(ragged, "issue") == doctest::Approx(2 * term(even, "issue")));
}

TEST_CASE("more blocks never take less time") {
  uint64_t before = 0;
  for (uint64_t blocks = 1; blocks < 3000; blocks += 37) {
    auto s = streaming(500);
    s.grid_blocks = blocks;
    s.counts.block_critical_cycles = s.counts.blocks_run * 1000;
    s.counts.machine.issue = 8 * s.counts.blocks_run * 500;
    const auto time = model(s);
    CHECK(time.ns >= before);
    before = time.ns;
  }
}

TEST_CASE("bank conflicts cost what their wavefronts cost") {
  auto s = streaming(0);
  auto& loads = s.counts.by_category[static_cast<size_t>(category::load_shared)];
  loads.warp_instructions = 10'000'000;
  loads.wavefronts = 10'000'000;
  const auto free = model(s);
  loads.wavefronts = 80'000'000;
  const auto conflicts = model(s);
  CHECK(conflicts.bound == "shared");
  CHECK(term(conflicts, "shared") == doctest::Approx(8 * term(free, "shared")));
}

TEST_CASE("buffers that fit in L2 are read from DRAM once at most") {
  auto s = reading(1'000'000);
  s.footprint_bytes = 3'200'000;
  CHECK(term(model(s), "dram") == doctest::Approx(read_ns(3'200'000)));
  s.footprint_bytes = 0;
  CHECK(term(model(s), "dram") == doctest::Approx(read_ns(32'000'000)));
  s.footprint_bytes = 1ULL << 33;
  CHECK(term(model(s), "dram") == doctest::Approx(read_ns(32'000'000)));
}

TEST_CASE("imbalance scales the work of the grid") {
  auto s = streaming(10000);
  const auto even = model(s);
  s.imbalance = 3;
  CHECK(term(model(s), "dram") == doctest::Approx(3 * term(even, "dram")));
}

TEST_CASE("what does not fit has no time, and the message says what is too much") {
  auto s = streaming(1);
  s.dynamic_shared = 300 << 10;
  const auto time = model_launch(h200(), entry(), s);
  REQUIRE_FALSE(time);
  CHECK(time.error().code == errc::refused);
  CHECK(time.error().what.find("307200 bytes") != std::string::npos);
  s = streaming(1);
  s.counts.blocks_run = 0;
  CHECK_FALSE(model_launch(h200(), entry(), s));
}

TEST_CASE("memsets and copies take their bytes over the bandwidth, and a launch") {
  const auto set = model_transfer(h200(), 0, 4'680'000);
  CHECK(set.ns == 2311);
  CHECK(model_transfer(h200(), 4'610'000, 0).ns == 2311);
  CHECK(model_transfer(h200(), 0, 0).ns == 1311);
}

TEST_CASE("a call is the sum of its steps, term by term") {
  const auto set = model_transfer(h200(), 0, 43'000'000);
  const auto work = model(streaming(10000));
  const auto sum = sum_of(h200(), {set, work, work});
  CHECK(sum.ns == set.ns + 2 * work.ns + 1152);
  CHECK(sum.bound == "dram");
  for (const time_term& t : sum.terms) {
    if (t.name == "dram")
      CHECK(t.ns == doctest::Approx(term(set, "dram") + 2 * term(work, "dram")));
    if (t.name == "launch")
      CHECK(t.ns == 3 * 1311);
    if (t.name == "events")
      CHECK(t.ns == 1152);
  }
  CHECK(sum_of(h200(), {}).ns == 0);
}

TEST_CASE("a faster GPU is faster, and all of them give times") {
  for (const std::string& name : known_profiles()) {
    CAPTURE(name);
    const auto time = model_launch(*profile(name), entry(), streaming(10000));
    REQUIRE(time);
    CHECK(time->ns > 1311);
  }
  CHECK(model_launch(*profile("b200"), entry(), streaming(10000))->ns
    < model_launch(*profile("l4"), entry(), streaming(10000))->ns);
}

TEST_CASE("golden times: they must be the same in every build") {
  auto s = streaming(12345);
  s.counts.machine = {.issue = 987'654'321,
    .alu = 345'678'901,
    .fma = 456'789'012,
    .heavy = 123'456'789,
    .xu = 34'567'890,
    .fp64 = 1'234'567};
  s.counts.by_category[static_cast<size_t>(category::load_global)].wavefronts = 9'876'543;
  s.counts.block_critical_cycles = 1056ULL * 54'321;
  s.counts.mma_flops = 987'654'321'098;
  CHECK(model(s, entry(40, 1000)).ns == 1'436'988);
}

TEST_CASE("L1 is what shared memory leaves, never nothing") {
  CHECK(l1_beside(h200(), 0, 8) == 256 << 10);
  CHECK(l1_beside(h200(), 99 << 10, 2) == (256 - 200) << 10);
  CHECK(l1_beside(h200(), 227 << 10, 1) == (256 - 228) << 10);
  CHECK(l1_beside(h200(), 56 << 10, 4) == (256 - 228) << 10);
  CHECK(l1_beside(h200(), 250 << 10, 1) == 16 << 10);
  // A block that is interpreted alone has its part of it.
  CHECK(hardware_of(h200(), 0, 8).l1_bytes == 32 << 10);
  CHECK(hardware_of(h200(), 56 << 10, 4).l1_bytes == 7 << 10);
  CHECK(hardware_of(h200(), 0, 1).l2_bytes == 50ULL << 20);
}

TEST_CASE("what a block reads again and has no room for comes from DRAM again") {
  auto s = reading(1'000'000);
  s.grid_blocks = 2;
  s.counts.blocks_run = 2;
  s.footprint_bytes = 1ULL << 33;
  s.counts.unshared_read_sectors = 1'000'000;
  s.counts.crowded_read_sectors = 3'000'000;
  CHECK(term(model(s), "dram") == doctest::Approx(read_ns(3'000'000.0 * 32)));
  // Where other blocks read the same, they keep it in L2.
  s.footprint_bytes = 1 << 20;
  CHECK(reads_are_shared(s));
  s.unshared_reads_left = 0.5;
  CHECK(
    term(model(s), "dram") == doctest::Approx(std::min(read_ns(500'000.0 * 32), read_ns(1 << 20))));
}

TEST_CASE("mma.sync and the loads that feed it do not overlap, wgmma reads shared memory itself") {
  auto s = reading(0);
  s.counts.by_category[static_cast<size_t>(category::load_shared)].wavefronts = 1'000'000;
  const double loads = term(model(s), "shared");
  CHECK(loads == doctest::Approx(1e6 / 1.98));
  s.counts.mma_flops = 4'096'000'000;
  const auto sync = model(s);
  CHECK(sync.bound == "mma");
  CHECK(term(sync, "mma") == doctest::Approx(loads + 1e6 / 0.66 / 1.98));
  s.counts.wgmma_flops = 4'096'000'000;
  const auto async = model(s);
  CHECK(term(async, "shared") == loads);
  CHECK(term(async, "tensor") == doctest::Approx(1e6 / 0.99 / 1.98));
}
