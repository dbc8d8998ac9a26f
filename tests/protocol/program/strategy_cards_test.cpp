// Every strategy card of protocol/program.md: its example compiles, runs on the mock H200 and gives
// the numbers of its problem's reference.

#include "tests/gpu/toolchain/nvrtc_fixture.hpp"
#include "tests/protocol/program/card_run.hpp"

#include <map>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// Small shapes of each card's problem: tails, edges, and enough work for every buffer to be used
/// again.
const std::map<std::string, std::vector<axis_values>>& shapes() {
  static const std::map<std::string, std::vector<axis_values>> table{
    {"vector-loads", {{{"rows", 5}, {"width", 64}}, {{"rows", 33}, {"width", 264}}}},
    {"warp-shuffle-rows", {{{"tokens", 7}, {"hidden", 130}}, {{"tokens", 1}, {"hidden", 1}}}},
    {"online-softmax", {{{"rows", 3}, {"classes", 300}}, {{"rows", 2}, {"classes", 1}}}},
    {"two-stage-reduction", {{{"rows", 70}, {"width", 264}}, {{"rows", 1}, {"width", 2}}}},
    {"shared-memory-swizzle", {{{"rows", 70}, {"columns", 45}}, {{"rows", 32}, {"columns", 32}}}},
    {"cp-async-pipeline", {{{"m", 64}, {"k", 80}, {"n", 128}}, {{"m", 64}, {"k", 16}, {"n", 64}}}},
    {"bulk-copy-pipeline", {{{"tokens", 61}, {"hidden", 136}}, {{"tokens", 1}, {"hidden", 8}}}},
    {"tma-pipeline", {{{"rows", 20}, {"width", 640}}, {{"rows", 16}, {"width", 64}}}},
    {"tensor-cores-by-mma-sync",
      {{{"tokens", 64}, {"inputs", 96}, {"outputs", 128}},
        {{"tokens", 128}, {"inputs", 32}, {"outputs", 64}}}},
    {"tensor-cores-by-wgmma",
      {{{"tokens", 64}, {"inputs", 192}, {"outputs", 64}},
        {{"tokens", 128}, {"inputs", 64}, {"outputs", 32}}}},
    {"split-k",
      {{{"tokens", 6}, {"inputs", 330}, {"outputs", 9}},
        {{"tokens", 1}, {"inputs", 2}, {"outputs", 1}}}},
    {"stream-k", {{{"m", 64}, {"k", 80}, {"n", 96}}, {{"m", 32}, {"k", 16}, {"n", 32}}}},
    {"persistent-kernel", {{{"tokens", 40}, {"width", 512}}, {{"tokens", 1}, {"width", 8}}}},
    {"epilogue-fusion",
      {{{"tokens", 32}, {"inputs", 48}, {"outputs", 128}},
        {{"tokens", 16}, {"inputs", 16}, {"outputs", 256}}}},
    {"warp-specialisation", {{{"tokens", 70}, {"width", 1024}}, {{"tokens", 1}, {"width", 512}}}},
    {"low-bit-packing-by-thresholds", {{{"rows", 3}, {"half", 44}}, {{"rows", 16}, {"half", 128}}}},
    {"small-m-product",
      {{{"tokens", 9}, {"inputs", 264}, {"outputs", 6}},
        {{"tokens", 1}, {"inputs", 8}, {"outputs", 1}}}},
    {"split-kv-attention",
      {{{"batch", 1}, {"heads", 2}, {"cached", 50}}, {{"batch", 2}, {"heads", 1}, {"cached", 1}}}},
    {"variants-by-shape", {{{"tokens", 3}, {"hidden", 250}}, {{"tokens", 2}, {"hidden", 1500}}}},
  };
  return table;
}

size_t run_all(const card_compiler& compile) {
  size_t ran = 0;
  // Few cards have a define that follows the shape.
  std::map<std::string, compile_output> units;
  const card_compiler compiler = [&](const compile_input& input) -> result<compile_output> {
    const std::string key = input.unit.key + "\n" + input.source;
    if (const auto known = units.find(key); known != units.end())
      return known->second;
    auto made = compile(input);
    if (made)
      units.emplace(key, *made);
    return made;
  };
  for (const auto& card : default_program().cards) {
    CAPTURE(card.id);
    const auto found = shapes().find(card.id);
    if (found == shapes().end())
      continue;
    for (const auto& axes : found->second) {
      // As on the machine, and with so few blocks that each walks over many tiles.
      for (const uint32_t sm_count : {132u, 3u}) {
        CAPTURE(sm_count);
        const auto out = run_card(card, axes, sm_count, compiler);
        CHECK_MESSAGE(out.trouble.empty(), out.trouble);
        CHECK(out.elements > 0);
        CHECK_MESSAGE(out.misses == 0, out.misses, " of ", out.elements, ": ", out.first_miss);
      }
    }
    ++ran;
  }
  return ran;
}

} // namespace

TEST_CASE("every strategy card is offered, and every card has shapes to run at") {
  const auto& cards = default_program().cards;
  CHECK(cards.size() >= 14);
  CHECK(cards.size() == shapes().size());
  for (const auto& card : cards) {
    CAPTURE(card.id);
    CHECK_MESSAGE(card.withheld.empty(), card.withheld);
    CHECK(shapes().count(card.id) == 1);
  }
}

TEST_CASE("the example of every strategy card gives its reference's numbers with clang") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto ran = run_all([&](const compile_input& input) {
    const scratch_folder folder;
    return compile_with_clang(input, folder.path(), *clang);
  });
  MESSAGE(ran << " cards ran with clang");
}

TEST_CASE("the example of every strategy card gives its reference's numbers with NVRTC") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc)
    return;
  const auto ran = run_all([&](const compile_input& input) {
    const scratch_folder folder;
    return compile_with_nvrtc(input, folder.path(), *nvrtc);
  });
  MESSAGE(ran << " cards ran with NVRTC");
}

TEST_CASE("an example that computes something else is noticed") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const card_compiler compiler = [&](const compile_input& input) {
    const scratch_folder folder;
    return compile_with_clang(input, folder.path(), *clang);
  };
  strategy_card card = *default_program().find_card("shared-memory-swizzle");
  const auto at = card.source.find("tile[x][y ^ x]");
  REQUIRE(at != std::string::npos);
  card.source.replace(at, 14, "tile[x][y    ]");
  const auto out = run_card(card, {{"rows", 32}, {"columns", 32}}, 132, compiler);
  CHECK(out.trouble.empty());
  CHECK(out.misses > 0);
}
