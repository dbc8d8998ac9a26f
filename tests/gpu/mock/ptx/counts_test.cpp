#include "tests/gpu/mock/ptx/ptx_run.hpp"

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

counts count(const std::string& body, setup& s, size_t parameters = 1) {
  const outcome result = s.run(entry("mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; mul.wide.u32 "
                                     "%rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
      + body,
    parameters));
  must_pass(result);
  return result.done;
}

} // namespace

TEST_CASE("instructions are counted by category, for warps and for lanes") {
  std::vector<uint32_t> data(64);
  setup s;
  s.buffer(data).block(48);
  const counts c = count("setp.lt.u32 %p1, %r1, 8; @%p1 add.s32 %r2, %r1, 1; @%p1 bra A; A: "
                         "fma.rn.f32 %f1, %f2, %f3, %f4; sqrt.rn.f32 %f1, %f2; bar.sync 0;",
    s);
  CHECK(c[category::fp32].warp_instructions == 2);
  CHECK(c[category::fp32].lane_instructions == 48);
  CHECK(c[category::sfu].warp_instructions == 2);
  CHECK(c[category::barrier].warp_instructions == 2);
  // mov, mul.wide, add.s64, setp and add; of the last, eight lanes.
  CHECK(c[category::integer].warp_instructions == 10);
  CHECK(c[category::integer].lane_instructions == 4 * 48 + 8);
  CHECK(c.divergent_branches == 1);
  CHECK(c.blocks_run == 1);
  uint64_t total = 0;
  for (const category_counts& k : c.by_category)
    total += k.warp_instructions;
  CHECK(total == c.warp_instructions);
}

TEST_CASE("sectors, lines and bytes of global memory are exact") {
  std::vector<uint32_t> data(32 * 64);
  setup s;
  s.buffer(data).block(32);
  const counts contiguous = count("ld.global.u32 %r2, [%rd3];", s);
  CHECK(contiguous[category::load_global] == category_counts{1, 32, 4, 128, 1});
  const counts strided = count("mul.wide.u32 %rd4, %r1, 256; add.s64 %rd4, %rd4, %rd1; "
                               "st.global.u32 [%rd4], %r1;",
    s);
  CHECK(strided[category::store_global] == category_counts{1, 32, 32, 128, 32});
  const counts same = count("ld.global.u32 %r2, [%rd1];", s);
  CHECK(same[category::load_global] == category_counts{1, 32, 1, 128, 1});
  const counts shifted = count("ld.global.u32 %r2, [%rd3+16];", s);
  CHECK(shifted[category::load_global] == category_counts{1, 32, 5, 128, 2});
  const counts part = count("setp.lt.u32 %p1, %r1, 8; @%p1 ld.global.u32 %r2, [%rd3];", s);
  CHECK(part[category::load_global] == category_counts{1, 8, 1, 32, 1});
  const counts wide = count("mul.wide.u32 %rd4, %r1, 16; add.s64 %rd4, %rd4, %rd1; "
                            "ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%rd4];",
    s);
  CHECK(wide[category::load_global] == category_counts{1, 32, 16, 512, 4});
}

TEST_CASE("bank conflicts and atomic conflicts are counted as wavefronts") {
  std::vector<uint32_t> data(64);
  setup s;
  s.buffer(data).block(32);
  const std::string tile = ".shared .align 16 .b8 t[4224]; mov.u32 %r3, t; ";
  const auto waves = [&](const std::string& stride) {
    return count(tile + "mad.lo.s32 %r4, %r1, " + stride + ", %r3; ld.shared.u32 %r5, [%r4];",
      s)[category::load_shared]
      .wavefronts;
  };
  CHECK(waves("4") == 1);
  CHECK(waves("8") == 2);
  CHECK(waves("128") == 32);
  CHECK(waves("132") == 1);
  CHECK(waves("0") == 1);
  CHECK(count(tile + "red.shared.add.u32 [t], 1;", s)[category::atomic_shared].wavefronts == 32);
  CHECK(count("red.global.add.u32 [%rd3], 1;", s)[category::atomic_global].wavefronts == 2);
}

TEST_CASE("generic accesses are counted where they went") {
  std::vector<uint32_t> data(64);
  setup s;
  s.buffer(data).block(32);
  const counts c =
    count(".shared .align 4 .b8 t[128]; mov.u64 %rd4, t; cvta.shared.u64 %rd4, %rd4; "
          "add.s64 %rd4, %rd4, %rd2; st.u32 [%rd4], %r1; ld.u32 %r2, [%rd3];",
      s);
  CHECK(c[category::store_shared] == category_counts{1, 32, 0, 128, 1});
  CHECK(c[category::store_global] == category_counts{});
  CHECK(c[category::load_global] == category_counts{1, 32, 4, 128, 1});
}

TEST_CASE("caches keep what was read, and the critical path sees it") {
  std::vector<uint32_t> data(1024);
  const auto run = [&](const std::string& body, uint64_t l1_bytes) {
    setup s;
    s.buffer(data).block(32);
    s.what.caches = s.what.timing = true;
    s.what.hw.l1_bytes = l1_bytes;
    return count(body, s);
  };
  const std::string twice = "ld.global.u32 %r2, [%rd3]; add.s32 %r4, %r2, 1; bar.sync 0; "
                            "ld.global.u32 %r3, [%rd3]; add.s32 %r4, %r3, 1; bar.sync 0;";
  const counts c = run(twice, 128 << 10);
  CHECK(c.dram_read_sectors == 4);
  CHECK(c.l2_sectors == 4);
  CHECK(c.l1_hits == 4);
  CHECK(c.block_critical_cycles > 600 + 38);
  CHECK(c.block_critical_cycles < 600 + 38 + 60);
  // Independent loads overlap, dependent ones add up.
  const counts two = run(
    "ld.global.u32 %r2, [%rd3]; ld.global.u32 %r3, [%rd3+2048]; add.s32 %r4, %r2, %r3; bar.sync 0;",
    128 << 10);
  CHECK(two.block_critical_cycles < 700);
  const counts chain =
    run("ld.global.u32 %r2, [%rd3]; cvt.u64.u32 %rd5, %r2; add.s64 %rd6, %rd3, %rd5; "
        "ld.global.u32 %r3, [%rd6+2048]; add.s32 %r4, %r2, %r3; bar.sync 0;",
      128 << 10);
  CHECK(chain.block_critical_cycles > 1200);
  const counts past =
    run("ld.volatile.global.u32 %r2, [%rd3]; ld.volatile.global.u32 %r2, [%rd3];", 128 << 10);
  CHECK(past.l1_hits == 0);
  CHECK(past.l2_sectors == 8);
}

TEST_CASE("DRAM is read in pairs of sectors, and a request names sectors of one line") {
  std::vector<uint32_t> data(32 * 32);
  setup s;
  s.buffer(data).block(32);
  s.what.caches = true;
  // A sector of each of 32 lines, then the other half of its pair, then the next pair.
  const counts c =
    count("mul.wide.u32 %rd4, %r1, 128; add.s64 %rd4, %rd4, %rd1; "
          "ld.volatile.global.u32 %r2, [%rd4]; ld.volatile.global.u32 %r2, [%rd4+32]; "
          "ld.volatile.global.u32 %r2, [%rd4+64];",
      s);
  CHECK(c.l2_sectors == 96);
  CHECK(c.l2_read_requests == 96);
  CHECK(c.l2_write_requests == 0);
  CHECK(c.dram_read_sectors == 128);
  CHECK(c.dram_lone_sectors == 128);
  CHECK(c.unshared_read_sectors == 128);
}

TEST_CASE("updates by atomics are counted where they meet") {
  std::vector<uint32_t> data(1024);
  setup s;
  s.buffer(data).block(32);
  s.what.caches = true;
  const counts one = count("red.global.add.u32 [%rd1], %r1;", s);
  CHECK(one.atomic_updates == 32);
  CHECK(one.hottest_updates == 32);
  CHECK(one.atomic_float_conflicts == 0);
  const counts apart = count("red.global.add.u32 [%rd3], %r1;", s);
  CHECK(apart.atomic_updates == 4);
  CHECK(apart.l2_write_requests == 0);
  const counts floats = count("mov.f32 %f1, 0f3F800000; red.global.add.f32 [%rd1], %f1;", s);
  CHECK(floats.atomic_float_conflicts == 31);
  CHECK(floats.hottest_float_conflicts == 31);
}

TEST_CASE("the same launch gives the same numbers and counts, wherever its memory lies") {
  const auto text = entry(R"(
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r3, %r2, 64, %r1; mul.wide.u32 %rd2, %r3, 4;
    ld.param.u64 %rd1, [p0]; add.s64 %rd3, %rd1, %rd2; ld.global.f32 %f1, [%rd3]; and.b32 %r4, %r3, 15;
    mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd1, %rd4; red.global.add.f32 [%rd5], %f1;
    setp.lt.u32 %p1, %r4, 5; @%p1 bra A; ex2.approx.f32 %f2, %f1; st.global.f32 [%rd3], %f2; A: )");
  const auto m = must_parse(text);
  std::optional<outcome> first;
  std::vector<float> first_data;
  std::vector<std::vector<float>> kept;
  for (int i = 0; i < 3; ++i) {
    std::vector<float> data(64 * 20);
    numbers random(5);
    for (float& x : data)
      x = random.unit();
    kept.push_back(data); // Moves the next one elsewhere.
    setup s;
    s.buffer(data).grid(20).block(64);
    s.what.caches = s.what.timing = true;
    outcome result = s.run(m);
    must_pass(result);
    if (!first) {
      first = std::move(result);
      first_data = data;
      continue;
    }
    CHECK(result.done == first->done);
    CHECK(std::memcmp(data.data(), first_data.data(), data.size() * 4) == 0);
  }
  CHECK(first->done.block_critical_cycles > 0);
}

TEST_CASE("a sample of the blocks runs those blocks only") {
  std::vector<uint32_t> data(10);
  setup s;
  s.buffer(data).grid(10).block(1);
  s.what.first_block = 3;
  s.what.block_count = 4;
  const outcome result = s.run(entry("mov.u32 %r1, %ctaid.x; ld.param.u64 %rd1, [p0]; "
                                     "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; "
                                     "st.global.u32 [%rd1], 1;"));
  must_pass(result);
  CHECK(result.done.blocks_run == 4);
  CHECK(data == std::vector<uint32_t>{0, 0, 0, 1, 1, 1, 1, 0, 0, 0});
}

TEST_CASE("registers are estimated from what is alive at once") {
  // A chain needs few registers, however many names it uses; values kept to the end need many.
  std::string chain = "mov.u32 %r1, 1;";
  std::string kept;
  for (int i = 2; i < 60; ++i) {
    chain += "add.s32 %r" + std::to_string(i) + ", %r" + std::to_string(i - 1) + ", 1;";
    kept += "ld.global.u32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * i) + "];";
  }
  for (int i = 2; i < 60; ++i)
    kept += "st.global.u32 [%rd1], %r" + std::to_string(i) + ";";
  const std::string begin = "ld.param.u64 %rd1, [p0];";
  const auto registers = [](const std::string& body) {
    return entries(*must_parse(entry(body))).front().registers;
  };
  CHECK(registers(begin + chain + "st.global.u32 [%rd1], %r59;") == 16);
  CHECK(registers(begin + kept) == (58 + 2 + reserved_registers + 7) / 8 * 8);
  // Alive around a loop, although not between the last use and its end.
  CHECK(registers(begin + kept + "ret;") == registers(begin + kept));
}

TEST_CASE("values that share a place in the register file do not disturb each other") {
  // Long-lived values across loops and divergent branches, short-lived ones between.
  std::vector<uint32_t> out(64);
  setup s;
  s.buffer(out).block(64);
  std::string body =
    "mov.u32 %r1, %tid.x; mul.lo.s32 %r2, %r1, 3; mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
    "L: add.s32 %r10, %r4, 1; mul.lo.s32 %r11, %r10, %r1; and.b32 %r12, %r11, 1; "
    "setp.eq.s32 %p1, %r12, 0; @%p1 bra E;\n"
    "add.s32 %r20, %r11, 7; xor.b32 %r21, %r20, %r2; add.s32 %r3, %r3, %r21; bra J;\n"
    "E: mul.lo.s32 %r30, %r11, 5; sub.s32 %r31, %r30, %r2; add.s32 %r3, %r3, %r31;\n"
    "J: add.s32 %r4, %r4, 1; add.s32 %r40, %r1, 5; setp.lt.u32 %p2, %r4, %r40; @%p2 bra L;\n"
    "ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; "
    "st.global.u32 [%rd1], %r3;";
  must_pass(s.run(entry(body)));
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < t + 5; ++i) {
      const uint32_t x = (i + 1) * t;
      sum += x & 1 ? (x + 7) ^ (3 * t) : 5 * x - 3 * t;
    }
    CHECK(out[t] == sum);
  }
}
