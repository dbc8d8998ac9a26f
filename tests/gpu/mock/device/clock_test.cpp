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
  return s;
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
  const auto time = model(streaming(0));
  CHECK(time.ns == 2500);
  CHECK(time.bound == "launch");
  CHECK(term(time, "launch") == 2500);
}

TEST_CASE("twice the bytes take twice the time") {
  const auto once = model(streaming(10000));
  const auto twice = model(streaming(20000));
  CHECK(once.bound == "dram");
  const double ratio = static_cast<double>(twice.ns - 2500) / static_cast<double>(once.ns - 2500);
  CHECK(ratio == doctest::Approx(2).epsilon(0.001));
  // 1,056 blocks of 10,000 sectors of 32 bytes at 4.3 TB/s.
  CHECK(term(once, "dram") == doctest::Approx(1056 * 10000 * 32 / 4300.0));
}

TEST_CASE("the time lies between the largest term and their sum") {
  auto s = streaming(10000);
  s.counts.by_category[static_cast<size_t>(category::fp32)].warp_instructions = 400'000'000;
  s.counts.warp_instructions = 400'000'000;
  const auto time = model(s);
  double largest = 0, sum = 0;
  for (const time_term& t : time.terms) {
    if (t.name == "launch")
      continue;
    largest = std::max<double>(largest, t.ns);
    sum += t.ns;
  }
  CHECK(static_cast<double>(time.ns - 2500) >= largest - 1);
  CHECK(static_cast<double>(time.ns - 2500) <= sum + 1);
}

TEST_CASE("two equal terms take the fifth root of two longer than one") {
  auto s = streaming(0);
  s.counts.dram_read_sectors = 1'000'000'000;
  const auto one = model(s);
  s.counts.l2_sectors = static_cast<uint64_t>(1e9 * 5.6 / 4.3);
  const auto two = model(s);
  CHECK(static_cast<double>(two.ns - 2500) / static_cast<double>(one.ns - 2500)
    == doctest::Approx(1.148698355).epsilon(1e-6));
}

TEST_CASE("a sample stands for the whole grid") {
  auto part = streaming(10000);
  part.grid_blocks = 10 * part.grid_blocks;
  const auto whole = model(part);
  const auto tenth = model(streaming(10000));
  CHECK(term(whole, "dram") == doctest::Approx(10 * term(tenth, "dram")));
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
  s.grid_blocks = 133;
  s.counts.warp_instructions = 1'000'000;
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
    s.counts.warp_instructions = s.counts.blocks_run * 500;
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
  auto s = streaming(0);
  s.counts.dram_read_sectors = 1'000'000;
  s.footprint_bytes = 3'200'000;
  CHECK(term(model(s), "dram") == doctest::Approx(3'200'000 / 4300.0));
  s.footprint_bytes = 0;
  CHECK(term(model(s), "dram") == doctest::Approx(32'000'000 / 4300.0));
  s.footprint_bytes = 1ULL << 33;
  CHECK(term(model(s), "dram") == doctest::Approx(32'000'000 / 4300.0));
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
  const auto set = model_transfer(h200(), 0, 4'300'000);
  CHECK(set.ns == 3500);
  CHECK(model_transfer(h200(), 4'300'000, 4'300'000).ns == 4500);
  CHECK(model_transfer(h200(), 0, 0).ns == 2500);
}

TEST_CASE("a call is the sum of its steps, term by term") {
  const auto set = model_transfer(h200(), 0, 43'000'000);
  const auto work = model(streaming(10000));
  const auto sum = sum_of({set, work, work});
  CHECK(sum.ns == set.ns + 2 * work.ns);
  CHECK(sum.bound == "dram");
  for (const time_term& t : sum.terms) {
    if (t.name == "dram")
      CHECK(t.ns == doctest::Approx(term(set, "dram") + 2 * term(work, "dram")));
    if (t.name == "launch")
      CHECK(t.ns == 7500);
  }
  CHECK(sum_of({}).ns == 0);
}

TEST_CASE("a faster GPU is faster, and all of them give times") {
  for (const std::string& name : known_profiles()) {
    CAPTURE(name);
    const auto time = model_launch(*profile(name), entry(), streaming(10000));
    REQUIRE(time);
    CHECK(time->ns > 2500);
  }
  CHECK(model_launch(*profile("b200"), entry(), streaming(10000))->ns
    < model_launch(*profile("l4"), entry(), streaming(10000))->ns);
}

TEST_CASE("golden times: they must be the same in every build") {
  auto s = streaming(12345);
  s.counts.warp_instructions = 123'456'789;
  s.counts.by_category[static_cast<size_t>(category::integer)].warp_instructions = 45'678'901;
  s.counts.by_category[static_cast<size_t>(category::sfu)].warp_instructions = 3'456'789;
  s.counts.by_category[static_cast<size_t>(category::load_global)].wavefronts = 9'876'543;
  s.counts.block_critical_cycles = 1056ULL * 54'321;
  s.counts.mma_flops = 987'654'321'098;
  CHECK(model(s, entry(40, 1000)).ns == 1'657'735);
}

TEST_CASE("L1 is what shared memory leaves, never nothing") {
  CHECK(hardware_of(h200(), 0, 8).l1_bytes == 128 << 10);
  CHECK(hardware_of(h200(), 99 << 10, 2).l1_bytes == (256 - 200) << 10);
  CHECK(hardware_of(h200(), 227 << 10, 1).l1_bytes == (256 - 228) << 10);
  CHECK(hardware_of(h200(), 56 << 10, 4).l1_bytes == (256 - 228) << 10);
  CHECK(hardware_of(h200(), 0, 1).l2_bytes == 50ULL << 20);
}
