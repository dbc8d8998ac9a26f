#include "tests/gpu/mock/ptx/corpus_cases.hpp"
#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <fstream>
#include <iterator>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

std::string text_of(const std::string& name) {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  std::ifstream in(std::string(source ? source : ".") + "/tests/corpus/ptx/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST_CASE("the ten kernels compute what their references say, from both front ends") {
  for (const std::string compiler : {"clang", "nvcc"})
    for (corpus_case& c : corpus_cases()) {
      CAPTURE(c.name);
      CAPTURE(compiler);
      const auto m = must_parse(text_of(c.name + "." + compiler + ".ptx"));
      c.reset();
      const outcome plain = c.with.run(m);
      must_pass(plain);
      CHECK(c.error() <= 1);
      CHECK(plain.done.warnings.empty());
      CHECK(entries(*m).front().registers >= 16);

      // The models of caches and time change no number and nothing that a lane does.
      c.reset();
      c.with.what.caches = c.with.what.timing = true;
      const outcome modelled = c.with.run(m);
      must_pass(modelled);
      CHECK(c.error() <= 1);
      // Warps take short turns then, so lanes that have diverged may meet again a little later or
      // earlier: what each lane executes stays, in how many instructions of the warp need not.
      for (size_t k = 0; k < plain.done.by_category.size(); ++k) {
        CAPTURE(k);
        const category_counts& with = modelled.done.by_category[k];
        const category_counts& without = plain.done.by_category[k];
        CHECK(with.lane_instructions == without.lane_instructions);
        CHECK(with.bytes == without.bytes);
        if (plain.done.divergent_branches == 0)
          CHECK(with == without);
      }
      CHECK(modelled.done.block_critical_cycles > 0);
      CHECK(modelled.done.dram_read_sectors > 0);
    }
}

TEST_CASE("the checks find nothing in the ten kernels, and change neither numbers nor counts") {
  for (const std::string compiler : {"clang", "nvcc"})
    for (corpus_case& c : corpus_cases()) {
      CAPTURE(c.name);
      CAPTURE(compiler);
      const auto m = must_parse(text_of(c.name + "." + compiler + ".ptx"));
      c.reset();
      const outcome plain = c.with.run(m);
      c.reset();
      c.with.what.checks = all_checks;
      c.with.what.per_line = true;
      const outcome checked = c.with.run(m);
      must_pass(checked);
      CHECK(c.error() <= 1);
      CHECK(checked.done == plain.done);
      for (const fault& found : checked.findings)
        FAIL_CHECK(found.what);
      CHECK(checked.unwatched == 0);
    }
}

TEST_CASE(
  "the order in which warps and blocks take turns changes no result of a kernel without races") {
  for (corpus_case& c : corpus_cases())
    for (const uint64_t seed : {1U, 2U, 3U}) {
      CAPTURE(c.name);
      CAPTURE(seed);
      c.reset();
      c.with.what.order_seed = seed;
      must_pass(c.with.run(must_parse(text_of(c.name + ".clang.ptx"))));
      CHECK(c.error() <= 1);
    }
}

TEST_CASE("the instruction limit of a kernel is exact") {
  for (corpus_case& c : corpus_cases()) {
    if (c.name != "softmax_row")
      continue;
    const auto m = must_parse(text_of("softmax_row.clang.ptx"));
    const outcome whole = c.with.run(m);
    must_pass(whole);
    c.with.what.instruction_limit = whole.done.warp_instructions;
    must_pass(c.with.run(m));
    c.with.what.instruction_limit = whole.done.warp_instructions - 1;
    const outcome cut = c.with.run(m);
    REQUIRE(cut.failed);
    CHECK(cut.failed->kind == fault_kind::instruction_limit);
  }
}
