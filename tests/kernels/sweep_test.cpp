#include "kernels/sweep_template.hpp"

#include "kernels/fusion.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "tests/kernels/corpus.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

struct written {
  generated_kernel code;
  problem target;
  sweep_load load;

  /// The macro `name` where rows have `cols` columns.
  std::string macro(const std::string& name, int64_t cols, uint32_t arch = 90) const {
    const auto plan = parse_plan(code.plan);
    REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().what));
    auto axes = target.workloads[0].axes;
    axes.back().second = cols;
    const auto all = resolve_axes(target.def, axes);
    REQUIRE(all);
    const device_facts h200{.sm_count = 132,
      .smem_per_block = 232448,
      .smem_per_sm = 233472,
      .l2_bytes = 50 << 20,
      .arch = arch};
    const auto bound = resolve(*plan, target.def, *all, {}, h200);
    REQUIRE_MESSAGE(bound, (bound ? "" : bound.error().what));
    for (const auto& [macro, value] : bound->unit.defines)
      if (macro == name)
        return value;
    FAIL("no macro " << name);
    return {};
  }
};

written write(const std::string& name, const sweep_point& point) {
  const auto one = builtin_graph(name);
  const auto kernel = fuse_with_columns(one.graph, one.target.def);
  REQUIRE_MESSAGE(kernel, (kernel ? "" : kernel.error().what));
  return {sweep_kernel(*kernel, one.target.def, point), one.target, sweep_load_of(*kernel)};
}

size_t place_of(const written& one, const std::string& text) {
  const size_t place = one.code.source.find(text);
  REQUIRE_MESSAGE(place != std::string::npos, text << " is not in\n" << one.code.source);
  return place;
}

} // namespace

TEST_CASE("guards at the end of a row are there only where a row does not fill all vectors") {
  const sweep_point point{
    .threads = 128, .cluster = 1, .width = 4, .blocks = 4, .walk = row_walk::one, .full = true};
  const auto one = write("softmax", point);
  place_of(one, "if (FULL || column < cols)");
  CHECK(one.macro("FULL", 512) == "1");
  CHECK(one.macro("FULL", 1024) == "1");
  CHECK(one.macro("FULL", 1028) == "0");
  CHECK(one.macro("FULL", 508) == "0");
  CHECK(one.macro("CHUNKS", 1028) == "3");
  // What vectors do not fit takes the other variant, which has no vectors to be full.
  CHECK(one.macro("FULL", 1026) == "0");
  CHECK(one.macro("CHUNKS", 1026) == "0");
  auto shared = point;
  shared.cluster = 4;
  CHECK(write("softmax", shared).macro("FULL", 1024) == "0");
  CHECK(write("softmax", shared).macro("FULL", 2048) == "1");
  auto guarded = point;
  guarded.full = false;
  CHECK(write("softmax", guarded).code.source.find("FULL") == std::string::npos);
}

TEST_CASE(
  "a block with one row reads what its columns share where it is used, a walk before all rows") {
  sweep_point point{.threads = 128, .cluster = 1, .width = 8, .blocks = 4, .walk = row_walk::one};
  const auto single = write("layernorm", point);
  point.walk = row_walk::all;
  const auto walk = write("layernorm", point);
  const std::string read = ".load(gain_all";
  const std::string loop = "for (int row = first_row";
  CHECK(place_of(single, read) > place_of(single, loop));
  CHECK(place_of(walk, read) < place_of(walk, loop));
  // Registers that hold no columns hold longer rows.
  const sweep_load load{.row_bytes = 2, .column_bytes = 4};
  auto one = point;
  one.walk = row_walk::one;
  CHECK(sweep_columns_max(load, one) > sweep_columns_max(load, point));
}

TEST_CASE("each group of a block has as many places of a ring as the others, and two at least") {
  for (int groups : {1, 2, 3}) {
    const sweep_point point{
      .threads = 128, .cluster = 1, .width = 8, .blocks = groups, .walk = row_walk::ring};
    const auto one = write("rmsnorm_backward", point);
    for (int64_t cols : {8, 776, 1024, 2048, 4096}) {
      const int stages = std::stoi(one.macro("STAGES", cols));
      CAPTURE(cols);
      CHECK(stages % groups == 0);
      CHECK(stages >= 2 * groups);
      CHECK(stages * cols * 4 <= std::max<int64_t>(65536, 2 * groups * cols * 4));
    }
  }
}

TEST_CASE("where there are no bulk copies, or rows that they cannot bring, there is no ring") {
  const sweep_point point{
    .threads = 128, .cluster = 1, .width = 8, .blocks = 2, .walk = row_walk::ring};
  const auto one = write("rmsnorm_backward", point);
  CHECK(one.macro("CHUNKS", 4096) == "4");
  CHECK(one.macro("CHUNKS", 4096, 80) == "0");
  CHECK(one.macro("STAGES", 4096, 80) == "0");
  // 4100 columns of two bytes are no multiple of 16 bytes.
  CHECK(one.macro("STAGES", 4100) == "0");
  // Two rows for each of two groups have 256 KiB.
  CHECK(one.macro("STAGES", 16384) == "0");
}

TEST_CASE("a ring that shared memory does not hold is not asked for") {
  for (int groups : {1, 2}) {
    const sweep_point point{
      .threads = 256, .cluster = 1, .width = 4, .blocks = groups, .walk = row_walk::ring};
    const auto one = write("softmax_backward", point);
    const int64_t longest = sweep_columns_max(one.load, point);
    for (int64_t cols = 1024; cols <= longest; cols += 1024) {
      CAPTURE(groups);
      CAPTURE(cols);
      // `macro` resolves the plan, which fails where a block has not so much.
      const bool has_ring = one.macro("STAGES", cols) != "0";
      CHECK(has_ring == (2 * groups * cols * one.load.row_bytes <= 232448 - 4096));
    }
  }
}
