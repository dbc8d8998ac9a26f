#include "tests/gpu/mock/device/device_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// The reads of a matrix product: a block reads a panel of rows of `a` and one of columns of `b`.
/// Tiles are walked in bands of `group` rows, column by column within a band.
constexpr const char* panels = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry panels(.param .u64 a, .param .u64 b, .param .u64 y, .param .u32 columns, .param .u32 group)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [y];
  ld.param.u32 %r1, [columns];
  ld.param.u32 %r2, [group];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %tid.x;
  mul.lo.s32 %r5, %r1, %r2;
  div.u32 %r6, %r3, %r5;
  rem.u32 %r7, %r3, %r5;
  rem.u32 %r8, %r7, %r2;
  mad.lo.s32 %r9, %r6, %r2, %r8;
  div.u32 %r10, %r7, %r2;
  mul.wide.u32 %rd4, %r9, 524288;
  add.s64 %rd5, %rd1, %rd4;
  mul.wide.u32 %rd6, %r10, 524288;
  add.s64 %rd7, %rd2, %rd6;
  mul.wide.u32 %rd8, %r4, 4;
  add.s64 %rd9, %rd5, %rd8;
  add.s64 %rd10, %rd7, %rd8;
  mov.u32 %r11, 0;
  mov.f32 %f3, 0f00000000;
again:
  ld.global.f32 %f1, [%rd9];
  ld.global.f32 %f2, [%rd10];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  add.s64 %rd9, %rd9, 128;
  add.s64 %rd10, %rd10, 128;
  add.s32 %r11, %r11, 1;
  setp.lt.u32 %p1, %r11, 4096;
  @%p1 bra again;
  mad.lo.s32 %r12, %r3, 32, %r4;
  mul.wide.u32 %rd11, %r12, 4;
  add.s64 %rd12, %rd3, %rd11;
  st.global.f32 [%rd12], %f3;
  ret;
}
)";

constexpr uint32_t tiles = 128;

/// 128 x 128 tiles, one block a multiprocessor at a time.
call_time product(uint32_t group) {
  // A few blocks, and some thousand instructions of each of those that take turns.
  mock_device_config config{*profile("h200"), 10'000'000, {}};
  config.clock.instructions = 200'000;
  config.clock.interleaved_instructions = 600'000;
  auto gpu = make_mock_device(config);
  const auto a = good(gpu->allocate(uint64_t{tiles} << 19, "a"));
  const auto b = good(gpu->allocate(uint64_t{tiles} << 19, "b"));
  const auto y = good(gpu->allocate(uint64_t{tiles} * tiles * 128, "y"));
  const auto module = good(gpu->load_module(panels));
  const auto entry = good(gpu->find_function(module, "panels"));
  auto shape = line_of(tiles * tiles, 32);
  shape.dynamic_shared = 200 << 10;
  REQUIRE(gpu->begin_timing());
  const auto report = good(gpu->launch(entry, shape, parameters(a, b, y, tiles, group)));
  REQUIRE_MESSAGE(!report.fault, report.fault->what);
  return good(gpu->end_timing());
}

double dram_of(const call_time& time) {
  for (const time_term& term : time.terms)
    if (term.name == "dram")
      return term.ns;
  return 0;
}

} // namespace

TEST_CASE("the order of the tiles decides what blocks find in L2") {
  const auto rows = product(1);
  const auto bands = product(8);
  // 132 blocks of one row read 130 panels, those of a band of eight rows 25.
  CHECK(dram_of(rows) / dram_of(bands) > 4);
  CHECK(dram_of(rows) / dram_of(bands) < 6);
  // 16,384 blocks of 1 MiB, of which about half comes from DRAM at 4.6 bytes a picosecond.
  CHECK(dram_of(rows) == doctest::Approx(16384.0 * (1 << 20) * 0.49 / 4610).epsilon(0.1));
}

TEST_CASE("what blocks share is the same in every run") {
  const auto once = product(4);
  const auto again = product(4);
  CHECK(once.ns == again.ns);
  CHECK(dram_of(once) == dram_of(again));
}
