#include "gpu/mock/explain.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace gristmill;

namespace {

ptx::line_counts line(int number, ptx::category counted, uint64_t instructions) {
  ptx::line_counts out;
  out.ptx_line = number;
  out.instruction = "line " + std::to_string(number);
  out.counted = counted;
  out.warp_instructions = instructions;
  out.lane_instructions = 32 * instructions;
  return out;
}

/// 132 blocks of 256 threads; a load of shared memory at line 41 that takes 8.5 passes.
explained_launch conflicts() {
  explained_launch out;
  out.entry.name = "f";
  out.entry.registers = 32;
  out.entry.static_shared = 4096;
  out.grid = {132, 1, 1};
  out.block = {256, 1, 1};
  ptx::line_counts load = line(41, ptx::category::load_shared, 1000);
  load.source = {"kernel.cu", 23};
  load.bytes[1] = 128'000;
  load.passes[1] = 8500;
  out.lines = {line(40, ptx::category::fp32, 3000), load};
  out.counts.warp_instructions = 4000;
  out.counts.lane_instructions = 128'000;
  launch_time time;
  time.ns = 10'000;
  time.terms = {{"issue", 2000}, {"shared", 7800}, {"dram", 100}, {"launch", 2500}};
  time.bound = "shared";
  out.time = time;
  return out;
}

bool says(const launch_profile& p, const std::string& text) {
  return std::any_of(p.words.begin(), p.words.end(),
    [&](const std::string& word) { return word.find(text) != std::string::npos; });
}

} // namespace

TEST_CASE(
  "the first sentence says where most of the time goes, the second one where the rest does") {
  const launch_profile p = explain(*profile("h200"), conflicts());
  REQUIRE(p.words.size() >= 2);
  CHECK(p.words[0] == "78 % of the time: shared memory (7.8 of 10.0 us; terms overlap).");
  CHECK(p.words[1] == "Next: 25 % launching the kernel, 20 % issuing instructions.");
}

TEST_CASE("a bank conflict is named with its passes and its lines") {
  const launch_profile p = explain(*profile("h200"), conflicts());
  CHECK(says(p, "Shared memory: 8.5 wavefronts where 1.0 is ideal at line 41 (kernel.cu:23)"));
  REQUIRE(!p.lines.empty());
  CHECK(p.lines[0].counts.ptx_line == 41);
  CHECK(p.lines[0].memory == "shared");
  CHECK(p.lines[0].passes == 8.5);
  CHECK(p.lines[0].passes_ideal == 1.0);
  CHECK(p.shared_wavefronts == 8500);
  CHECK(p.shared_wavefronts_ideal == 1000);
}

TEST_CASE("accesses that need no more passes than their bytes are not complained about") {
  explained_launch good = conflicts();
  good.lines[1].passes[1] = 1000;
  CHECK_FALSE(says(explain(*profile("h200"), good), "Shared memory:"));
  // 16 bytes a lane are four passes at best.
  good.lines[1].bytes[1] = 512'000;
  good.lines[1].passes[1] = 4000;
  CHECK_FALSE(says(explain(*profile("h200"), good), "Shared memory:"));
  good.lines[1].passes[1] = 8000;
  CHECK(says(explain(*profile("h200"), good), "8.0 wavefronts where 4.0 are ideal"));
}

TEST_CASE("global memory is judged by sectors") {
  explained_launch strided = conflicts();
  strided.lines[1] = line(50, ptx::category::load_global, 100);
  strided.lines[1].bytes[0] = 12'800;
  strided.lines[1].passes[0] = 3200;
  const launch_profile p = explain(*profile("h200"), strided);
  CHECK(says(p, "Global memory: 32.0 sectors where 4.0 are ideal at line 50"));
  CHECK(p.global_sectors_ideal == 400);
}

TEST_CASE("occupancy is said with what limits it") {
  explained_launch what = conflicts();
  CHECK(explain(*profile("h200"), what).limiter == "threads");
  what.entry.registers = 168;
  launch_profile p = explain(*profile("h200"), what);
  CHECK(p.limiter == "registers");
  CHECK(says(p, "limited by registers (168 registers a thread"));
  what.entry.registers = 32;
  what.dynamic_shared = 100'000;
  p = explain(*profile("h200"), what);
  CHECK(p.limiter == "shared memory");
  CHECK(p.blocks_per_sm == 2);
  CHECK(p.warps_per_sm == 16);
  what.block = {32, 1, 1};
  what.dynamic_shared = 0;
  what.entry.static_shared = 0;
  CHECK(explain(*profile("h200"), what).limiter == "block slots");
}

TEST_CASE("a small grid, divergence, barriers and local memory are named where they matter") {
  explained_launch what = conflicts();
  CHECK_FALSE(says(explain(*profile("h200"), what), "SMs"));
  what.grid = {3, 1, 1};
  CHECK(says(explain(*profile("h200"), what), "The grid has 3 blocks for 132 SMs"));
  CHECK_FALSE(says(explain(*profile("h200"), what), "Divergence"));
  what.counts.divergent_branches = 50;
  what.counts.lane_instructions = 40'000;
  what.lines.push_back(line(60, ptx::category::branch, 100));
  what.lines.back().diverged = 50;
  CHECK(says(explain(*profile("h200"), what),
    "Divergence: 10.0 of 32 lanes work on average; 50 of 100 branches part a warp, most of them at "
    "line 60"));
  what.lines.push_back(line(61, ptx::category::load_local, 10));
  what.lines.back().bytes[2] = 1280;
  CHECK(says(explain(*profile("h200"), what), "Local memory: 1280 bytes"));
  what.counts.by_category[static_cast<size_t>(ptx::category::barrier)].warp_instructions = 400;
  CHECK(says(explain(*profile("h200"), what), "Barriers: one in 10 warp instructions."));
}

TEST_CASE("a launch without a time, or without anything, still has a profile") {
  explained_launch what = conflicts();
  what.time.reset();
  CHECK_FALSE(says(explain(*profile("h200"), what), "of the time"));
  what.lines.clear();
  what.counts = {};
  const launch_profile p = explain(*profile("h200"), what);
  CHECK(p.lines.empty());
  CHECK(p.lanes_per_instruction == 0);
}

TEST_CASE("the profile is bounded however many lines there are and however long they are") {
  explained_launch what = conflicts();
  for (int i = 0; i < 5000; ++i) {
    what.lines.push_back(line(100 + i, ptx::category::load_shared, 1000));
    what.lines.back().source = {std::string(5000, 'x'), i + 1};
    what.lines.back().bytes[1] = 128'000;
    what.lines.back().passes[1] = 32'000;
  }
  const launch_profile p = explain(*profile("h200"), what);
  CHECK(p.lines.size() == hot_lines_max);
  CHECK(p.words.size() <= words_max);
  for (const std::string& word : p.words)
    CHECK(word.size() <= 300);
}
