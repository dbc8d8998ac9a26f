#include "gpu/mock/partial_results.hpp"
#include "tests/gpu/mock/device/device_fixture.hpp"

#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// `number`: where[i] = i. `pick`: y[i] = x[where[n - 1 - i]], whose addresses are what the last
/// blocks of `number` computed. `near`: the same with where[i]. `raise`: where[i % 64] += 1.
constexpr const char* picking = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry number(.param .u64 where)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [where];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}
.visible .entry pick(.param .u64 where, .param .u64 x, .param .u64 y, .param .u32 last, .param .u32 sign)
{
  .reg .f32 %f<3>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [where];
  ld.param.u64 %rd2, [x];
  ld.param.u64 %rd3, [y];
  ld.param.u32 %r1, [last];
  ld.param.u32 %r2, [sign];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  mad.lo.s32 %r7, %r6, %r2, %r1;
  mul.wide.u32 %rd4, %r7, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.u32 %r8, [%rd5];
  mul.wide.u32 %rd6, %r8, 4;
  add.s64 %rd7, %rd2, %rd6;
  ld.global.f32 %f1, [%rd7];
  mul.wide.u32 %rd8, %r6, 4;
  add.s64 %rd9, %rd3, %rd8;
  st.global.f32 [%rd9], %f1;
  ret;
}
.visible .entry raise(.param .u64 where)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [where];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 63;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  red.global.add.u32 [%rd3], 1;
  ret;
}
)";

constexpr uint32_t threads = 256;

struct call {
  std::unique_ptr<device> gpu;
  uint32_t blocks = 0;
  uint64_t where = 0, x = 0, y = 0;
  module_handle module;

  explicit call(uint32_t grid) : blocks(grid) {
    mock_device_config config{*profile("h200"), 10'000'000, {}};
    config.clock.instructions = 20'000; // Some 200 blocks.
    gpu = make_mock_device(config);
    const uint64_t bytes = uint64_t{grid} * threads * 4;
    where = good(gpu->allocate(bytes, "where"));
    x = good(gpu->allocate(bytes, "x"));
    y = good(gpu->allocate(bytes, "y"));
    module = good(gpu->load_module(picking));
    REQUIRE(gpu->begin_timing());
  }

  void launch(const char* entry, const std::vector<uint8_t>& values) {
    const auto function = good(gpu->find_function(module, entry));
    const auto report = good(gpu->launch(function, line_of(blocks, threads), values));
    REQUIRE_MESSAGE(!report.fault, report.fault->what);
  }
  void number() { launch("number", parameters(where)); }
  void raise() { launch("raise", parameters(where)); }
  void pick_far() {
    launch("pick", parameters(where, x, y, static_cast<int32_t>(blocks * threads - 1), -1));
  }
  void pick_near() { launch("pick", parameters(where, x, y, int32_t{0}, int32_t{1})); }
};

std::string refusal(call& of) {
  const auto time = of.gpu->end_timing();
  REQUIRE_FALSE(time);
  CHECK(time.error().code == errc::refused);
  return time.error().what;
}

} // namespace

TEST_CASE("a launch whose addresses nobody has computed has no modelled time") {
  call far(2000);
  far.number();
  far.pick_far();
  const std::string why = refusal(far);
  CAPTURE(why);
  CHECK(why.find("`pick` cannot be modelled") != std::string::npos);
  CHECK(why.find("`number` (") != std::string::npos);
  CHECK(why.find("of 2000 blocks were executed)") != std::string::npos);
}

TEST_CASE("what the sample did compute may decide") {
  call near(2000);
  near.number();
  near.pick_near();
  CHECK(near.gpu->end_timing());

  // The whole grid was executed, so the last element is known as well.
  call small(20);
  small.number();
  small.pick_far();
  CHECK(small.gpu->end_timing());
}

TEST_CASE("a sum that atomics of a part of the blocks made is not computed") {
  call sums(2000);
  REQUIRE(sums.gpu->memset(sums.where, 2000 * threads * 4, 4, 0));
  sums.raise();
  sums.pick_near();
  CHECK(refusal(sums).find("`raise`") != std::string::npos);
}

TEST_CASE("a memset computes what was missing, and a new timing forgets") {
  call cleared(2000);
  cleared.number();
  REQUIRE(cleared.gpu->memset(cleared.where, 2000 * threads * 4, 4, 0));
  cleared.pick_far();
  CHECK(cleared.gpu->end_timing());
  REQUIRE(cleared.gpu->begin_timing());
  cleared.pick_far();
  CHECK(cleared.gpu->end_timing());
}

TEST_CASE("values that are only stored decide nothing") {
  call stored(2000);
  stored.number();
  const auto module = good(stored.gpu->load_module(doubling));
  const auto twice = good(stored.gpu->find_function(module, "twice"));
  const auto report = good(stored.gpu->launch(twice, line_of(stored.blocks, threads),
    parameters(stored.where, stored.y, static_cast<int32_t>(stored.blocks * threads))));
  REQUIRE_FALSE(report.fault);
  CHECK(stored.gpu->end_timing());
}

TEST_CASE("what is missing is told byte by byte") {
  partial_results some;
  std::vector<ptx::region> memory(1);
  memory[0].device = 1 << 20;
  memory[0].bytes = 1000;
  some.watch(memory);
  REQUIRE(memory[0].written != nullptr);
  memory[0].written[1] = 1;
  some.launched("k", 3, 10);
  CHECK(some.bytes() == 1000);
  CHECK(some.words() == "`k` (3 of 10 blocks were executed)");
  const auto marked = some.marked(memory);
  REQUIRE(marked[0].undefined != nullptr);
  CHECK(marked[0].undefined[255] == 1);
  CHECK(marked[0].undefined[256] == 0);
  CHECK(marked[0].undefined[511] == 0);
  CHECK(marked[0].undefined[999] == 1);
  // A memset of whole grains, the last of them short.
  some.overwritten((1 << 20) + 512, 488);
  CHECK(some.marked(memory)[0].undefined[999] == 0);
  CHECK_FALSE(some.empty());
  some.overwritten(1 << 20, 256);
  CHECK(some.empty());
}

TEST_CASE("more memory than can be followed is said to be too much") {
  call large((1U << 20) + 1); // 1 GiB and a block.
  large.number();
  large.pick_near();
  CHECK(refusal(large).find("more than 1073741824 bytes") != std::string::npos);
}
