#include "gpu/mock/ptx/lanes/lanes.hpp"

#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <algorithm>
#include <map>
#include <set>

using namespace gristmill::ptx;
using gristmill::ptx::testing::numbers;

namespace {

/// Registers with random bits, four of 256 bytes and the result.
struct lane_bench {
  alignas(64) uint8_t registers[5 * 256];
  uint32_t predicates[4];
  lane_state state;
  operation op;

  lane_bench(uint64_t seed, uint32_t active) {
    numbers random(seed);
    for (size_t i = 0; i < sizeof registers; i += 8) {
      uint64_t value = random.next();
      // Some rows of floats of moderate size.
      if (seed % 2 == 0)
        value = (value & 0x81ffffff81ffffffULL) | 0x3c0000003c000000ULL;
      std::memcpy(registers + i, &value, 8);
    }
    for (uint32_t& p : predicates)
      p = static_cast<uint32_t>(random.next());
    state = {registers, predicates, active};
    op.d = 4 * 256;
    op.a = 0;
    op.b = 256;
    op.c = 512;
    op.e = 768;
    op.p = 2;
    op.q = 3;
  }
};

void compare(const char* name, handler portable, handler fast, uint8_t mode, int64_t imm) {
  for (uint64_t seed = 1; seed < 12; ++seed)
    for (const uint32_t active : {all_lanes, 0x0f35a96cU}) {
      lane_bench one(seed, active);
      lane_bench two(seed, active);
      one.op.mode = two.op.mode = mode;
      one.op.imm = two.op.imm = imm;
      portable(one.state, one.op);
      fast(two.state, two.op);
      CAPTURE(name);
      CAPTURE(seed);
      CAPTURE(active);
      REQUIRE(std::memcmp(one.registers, two.registers, sizeof one.registers) == 0);
      REQUIRE(std::memcmp(one.predicates, two.predicates, sizeof one.predicates) == 0);
    }
}

} // namespace

TEST_CASE("both builds of the lane library give the same bits for every instruction") {
  const lane_library* fast = lanes_for_avx2();
  if (!fast) {
    MESSAGE("SKIPPED: this processor has no AVX2");
    return;
  }
  const lane_library& slow = lanes_portable::library;
  const std::pair<lane_entries, lane_entries> parts[] = {{slow.integer, fast->integer},
    {slow.floating, fast->floating}, {slow.half, fast->half}, {slow.math, fast->math},
    {slow.packed, fast->packed}};
  for (const auto& [a, b] : parts) {
    REQUIRE(a.size == b.size);
    for (size_t i = 0; i < a.size; ++i) {
      REQUIRE(std::string(a.first[i].name) == b.first[i].name);
      compare(a.first[i].name, a.first[i].run, b.first[i].run, 0, 0);
    }
  }
  REQUIRE(slow.compare_size == fast->compare_size);
  for (size_t i = 0; i < slow.compare_size; ++i)
    compare(slow.compare[i].name, slow.compare[i].run, fast->compare[i].run, 5, 0);
  REQUIRE(slow.convert_size == fast->convert_size);
  for (size_t i = 0; i < slow.convert_size; ++i)
    for (const uint8_t mode : {round_none, round_nearest, round_zero})
      for (const int64_t flags : {0, 1, 6})
        compare(slow.convert[i].name, slow.convert[i].run, fast->convert[i].run, mode, flags);
  for (size_t i = 0; i < 4; ++i)
    compare("pair", slow.convert_pair[i], fast->convert_pair[i], 0, 0);
}

TEST_CASE("both builds multiply 16-bit matrices to the same bits") {
  const lane_library* fast = lanes_for_avx2();
  if (!fast) {
    MESSAGE("SKIPPED: this processor has no AVX2");
    return;
  }
  // d, a, b, c: registers of 128 bytes among the bench's random ones; d is among the sources.
  const uint32_t list[] = {0, 128, 256, 384, 512, 640, 768, 896, 128, 256, 384, 512, 640, 768};
  for (const uint8_t depth : {uint8_t{8}, uint8_t{16}})
    for (size_t i = 0; i < 3; ++i)
      for (uint64_t seed = 1; seed < 12; ++seed) {
        lane_bench one(seed, all_lanes);
        lane_bench two(seed, all_lanes);
        one.op.list = two.op.list = list;
        one.op.mode = two.op.mode = depth;
        lanes_portable::library.multiply[i](one.state, one.op);
        fast->multiply[i](two.state, two.op);
        CAPTURE(i);
        CAPTURE(seed);
        REQUIRE(std::memcmp(one.registers, two.registers, sizeof one.registers) == 0);
      }
}

TEST_CASE("words that meet and banks that they meet in are counted as one would by hand") {
  numbers random(7);
  for (int round = 0; round < 200; ++round) {
    // From one word for all to far apart.
    const uint64_t spread = uint64_t{1} << (round % 12);
    const uint32_t active =
      round % 3 == 0 ? all_lanes : static_cast<uint32_t>(random.next()) | 1U << (round % 32);
    uint32_t words[warp_lanes];
    std::map<uint32_t, uint32_t> times;
    std::map<uint32_t, std::set<uint32_t>> banks;
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      words[l] = static_cast<uint32_t>(random.next() >> 20) % static_cast<uint32_t>(spread);
      if (!(active >> l & 1))
        continue;
      ++times[words[l]];
      banks[words[l] % 32].insert(words[l]);
    }
    uint32_t most_times = 0;
    for (const auto& [word, count] : times)
      most_times = std::max(most_times, count);
    size_t most_words = 0;
    for (const auto& [bank, different] : banks)
      most_words = std::max(most_words, different.size());
    for (const lane_library* library : {&lanes_portable::library, &lanes()}) {
      REQUIRE(library->most_equal(active, words) == most_times);
      REQUIRE(library->most_in_a_bank(active, words) == most_words);
    }
  }
}
