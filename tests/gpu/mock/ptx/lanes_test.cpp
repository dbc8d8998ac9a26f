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

TEST_CASE(
  "a register falls into its parts and is made of them, lane by lane, the first part lowest") {
  struct shape {
    uint32_t bytes;
    uint32_t parts;
  };
  // The whole is in the second half, the parts in the first one: no two registers overlap.
  const uint32_t list[] = {0, 128, 256, 384};
  constexpr uint32_t whole_at = 512;
  for (const shape& each : {shape{2, 2}, shape{2, 4}, shape{4, 2}})
    for (const lane_library* library : {&lanes_portable::library, &lanes()})
      for (const uint32_t active : {all_lanes, 0x0f35a96cU, 1U}) {
        CAPTURE(each.bytes);
        CAPTURE(each.parts);
        CAPTURE(active);
        lane_bench packed(3, active);
        packed.op.list = list;
        packed.op.d = whole_at;
        lane_bench unpacked(3, active);
        unpacked.op.list = list;
        unpacked.op.a = whole_at;
        const lane_bench before(3, active);
        library->pack(each.bytes, each.parts)(packed.state, packed.op);
        library->unpack(each.bytes, each.parts)(unpacked.state, unpacked.op);
        for (uint32_t l = 0; l < warp_lanes; ++l)
          for (uint32_t k = 0; k < each.parts; ++k) {
            const uint32_t in_whole = whole_at + (l * each.parts + k) * each.bytes;
            const uint32_t in_part = list[k] + l * each.bytes;
            const bool runs = (active >> l & 1) != 0;
            REQUIRE(std::memcmp(packed.registers + in_whole,
                      before.registers + (runs ? in_part : in_whole), each.bytes)
              == 0);
            REQUIRE(std::memcmp(unpacked.registers + in_part,
                      before.registers + (runs ? in_whole : in_part), each.bytes)
              == 0);
          }
      }
  CHECK((lanes().pack(1, 4) == nullptr));
  CHECK((lanes().unpack(4, 4) == nullptr));
  CHECK((lanes().pack(8, 2) == nullptr));
}

TEST_CASE("a shuffle of a full warp takes the value of the lane that the manual says") {
  numbers random(11);
  for (int round = 0; round < 200; ++round)
    for (uint32_t mode = 0; mode < 4; ++mode)
      for (const lane_library* library : {&lanes_portable::library, &lanes()}) {
        lane_bench bench(static_cast<uint64_t>(round) + 1, all_lanes);
        auto* const by = reinterpret_cast<uint32_t*>(bench.registers + bench.op.b);
        auto* const shape = reinterpret_cast<uint32_t*>(bench.registers + bench.op.c);
        // From one number for all lanes to one for each, and segments of all sizes and of none.
        for (uint32_t l = 0; l < warp_lanes; ++l)
          if (l == 0 || round % 3 == 0) {
            by[l] = static_cast<uint32_t>(random.next() >> 20) % (round % 2 == 0 ? 40 : 6);
            shape[l] = round % 4 == 1 ? (mode == 0 ? 0U : 31U)
                                      : static_cast<uint32_t>(random.next() >> 20) & 0x1f1f;
          } else {
            by[l] = by[0];
            shape[l] = shape[0];
          }
        bench.op.d = round % 2 == 0 ? bench.op.a : 4 * 256;
        lane_bench expected = bench;
        uint32_t inside = 0;
        for (uint32_t l = 0; l < warp_lanes; ++l) {
          const uint32_t mask = shape[l] >> 8;
          const auto lane = static_cast<int>(l);
          const auto offset = static_cast<int>(by[l] & 31);
          const auto last = static_cast<int>((l & mask) | (shape[l] & 31 & ~mask));
          const int from = mode == 0 ? lane - offset
            : mode == 1              ? lane + offset
            : mode == 2              ? lane ^ offset
                                     : static_cast<int>((l & mask) | (by[l] & 31 & ~mask));
          const bool reaches = mode == 0 ? from >= last : from <= last;
          inside |= reaches ? 1U << l : 0U;
          std::memcpy(expected.registers + expected.op.d + 4 * l,
            bench.registers + bench.op.a + 4 * (reaches ? from % 32 : lane), 4);
        }
        expected.predicates[expected.op.p] = inside;
        library->shuffle_all[mode](bench.state, bench.op);
        CAPTURE(mode);
        CAPTURE(round);
        REQUIRE(std::memcmp(bench.registers, expected.registers, sizeof bench.registers) == 0);
        REQUIRE(std::memcmp(bench.predicates, expected.predicates, sizeof bench.predicates) == 0);
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
