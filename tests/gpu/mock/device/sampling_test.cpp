#include "tests/gpu/mock/device/device_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// A loop that runs as often as its block's number says: a causal mask in small.
constexpr const char* triangle = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry triangle()
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, 0;
again:
  add.s32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra again;
  ret;
}
)";

call_time time_twice(device& gpu, uint32_t blocks) {
  gpu.reset();
  const uint64_t bytes = uint64_t{blocks} * 256 * 4;
  const auto in = good(gpu.allocate(bytes, "x"));
  const auto out = good(gpu.allocate(bytes, "y"));
  const auto module = good(gpu.load_module(doubling));
  const auto twice = good(gpu.find_function(module, "twice"));
  REQUIRE(gpu.begin_timing());
  const auto report = good(gpu.launch(
    twice, line_of(blocks, 256), parameters(in, out, static_cast<int32_t>(blocks * 256))));
  REQUIRE_MESSAGE(!report.fault, report.fault->what);
  return good(gpu.end_timing());
}

} // namespace

TEST_CASE("the time of a streaming kernel grows with its bytes") {
  auto gpu = new_device();
  const auto once = time_twice(*gpu, 1U << 17);
  const auto twice = time_twice(*gpu, 1U << 18);
  const double ratio = static_cast<double>(twice.ns - 2463) / static_cast<double>(once.ns - 2463);
  CHECK(ratio > 1.9);
  CHECK(ratio < 2.1);
  // 2^27 bytes are read and as many written, at 4.3 TB/s at best.
  CHECK(once.ns > 62'000);
  CHECK(once.ns < 124'000);
}

TEST_CASE("only a sample is executed while the clock runs") {
  auto gpu = new_device(1000);
  const auto in = good(gpu->allocate(1ULL << 32, "x"));
  const auto out = good(gpu->allocate(1ULL << 32, "y"));
  const auto module = good(gpu->load_module(doubling));
  const auto twice = good(gpu->find_function(module, "twice"));
  REQUIRE(gpu->begin_timing());
  const auto report =
    good(gpu->launch(twice, line_of(1U << 20, 1024), parameters(in, out, int32_t{1 << 30})));
  REQUIRE_MESSAGE(!report.fault, report.fault->what);
  CHECK(report.counts->blocks_run <= 2 * 2 * 132);
  CHECK(good(gpu->end_timing()).ns > 1'900'000);
}

TEST_CASE("the same launch takes the same nanoseconds, whatever ran before") {
  auto first = new_device();
  const auto alone = time_twice(*first, 5000);
  auto second = new_device();
  time_twice(*second, 777);
  const auto later = time_twice(*second, 5000);
  CHECK(alone.ns == later.ns);
  CHECK(alone.bound == later.bound);
  REQUIRE(alone.terms.size() == later.terms.size());
  for (size_t i = 0; i < alone.terms.size(); ++i)
    CHECK(alone.terms[i].ns == later.terms[i].ns);
}

TEST_CASE("steps of one call add up, transfers among them") {
  auto gpu = new_device();
  const auto a = good(gpu->allocate(43'000'000, "a"));
  const auto b = good(gpu->allocate(43'000'000, "b"));
  const auto module = good(gpu->load_module(doubling));
  const auto count = good(gpu->find_function(module, "count"));
  REQUIRE(gpu->begin_timing());
  REQUIRE(gpu->memset(a, 43'000'000, 4, 0));
  REQUIRE(gpu->copy(b, a, 43'000'000));
  // 43 MB written; then as much read and written, each at its rate and with what mixing costs.
  const double mixed = (43e6 / 4610 + 43e6 / 4680) * 1.075;
  CHECK(static_cast<double>(good(gpu->end_timing()).ns)
    == doctest::Approx(1152 + 2 * 1311 + 43e6 / 4680 + mixed).epsilon(1e-4));

  REQUIRE(gpu->begin_timing());
  REQUIRE(gpu->launch(count, line_of(1, 1), {}));
  REQUIRE(gpu->launch(count, line_of(1, 1), {}));
  const auto two = good(gpu->end_timing());
  CHECK(two.ns >= 1152 + 2 * 1311);
  CHECK(two.ns < 8000);
  CHECK(two.bound == "launch");
}

TEST_CASE("timing begins once, ends once, and has something to time") {
  auto gpu = new_device();
  CHECK_FALSE(gpu->end_timing());
  REQUIRE(gpu->begin_timing());
  CHECK_FALSE(gpu->begin_timing());
  const auto nothing = gpu->end_timing();
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == errc::refused);
}

TEST_CASE("a fault in the sample is reported at the launch and at the end") {
  mock_device_config config{*profile("h200"), 1'000'000, {}};
  config.clock.instruction_limit = 100'000;
  auto gpu = make_mock_device(config);
  const auto module = good(gpu->load_module(doubling));
  const auto forever = good(gpu->find_function(module, "forever"));
  REQUIRE(gpu->begin_timing());
  const auto report = good(gpu->launch(forever, line_of(1, 32), {}));
  REQUIRE(report.fault);
  CHECK(report.fault->timeout);
  const auto time = gpu->end_timing();
  REQUIRE_FALSE(time);
  CHECK(time.error().code == errc::device_fault);
}

TEST_CASE("a sample from the start of a triangle is taken for no more than it is") {
  const auto code = good(ptx::parse(triangle));
  const auto state = ptx::load(code);
  const auto info = ptx::entries(*code).front();
  ptx::launch what;
  what.entry = "triangle";
  what.grid = {10000, 1, 1};
  what.block = {32, 1, 1};
  sampling how;
  how.instructions = 20'000;
  const auto out = take_sample(*profile("h200"), *state, info, what, 0, how);
  REQUIRE_FALSE(out.failed);
  CHECK(out.taken.counts.blocks_run > 50);
  CHECK(out.taken.counts.blocks_run < 200);
  // The mean block of the grid does about 5,000 rounds, the mean sampled one about 60.
  const double sampled = static_cast<double>(out.taken.counts.blocks_run) / 2;
  CHECK(out.taken.imbalance * sampled == doctest::Approx(5000).epsilon(0.1));

  how.instructions = UINT64_MAX;
  what.grid = {100, 1, 1};
  CHECK(take_sample(*profile("h200"), *state, info, what, 0, how).taken.imbalance == 1);
}
