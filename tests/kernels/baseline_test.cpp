#include "kernels/baseline.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/lowering/small_program.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

uint64_t fnv(const std::string& text) {
  uint64_t hash = 1469598103934665603U;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

/// y = x w + bias in float32: a tile kernel of fused multiply-adds, then a map.
small_program product_with_bias() {
  small_program p({{"M", 5, 13}, {"K", 7, 17}, {"N", 11, 19}});
  const int64_t x = p.input("x", {"M", "K"});
  const int64_t w = p.input("w", {"K", "N"});
  const int64_t bias = p.input("bias", {"N"});
  const int64_t product = p.op("mm", {value(x), value(w)}, {"M", "N"});
  p.output("y", p.op("add", {value(product), value(bias)}, {"M", "N"}), {"M", "N"});
  p.workload_at({{"M", 64}, {"K", 32}, {"N", 48}});
  return p;
}

/// y = softmax(q k^T) v in bfloat16: tensor cores, a row kernel, tensor cores.
small_program softmax_between_products() {
  small_program p({{"Q", 5, 13}, {"K", 7, 17}, {"D", 11, 19}});
  const int64_t q = p.input("q", {"Q", "D"}, "bfloat16");
  const int64_t k = p.input("k", {"K", "D"}, "bfloat16");
  const int64_t v = p.input("v", {"K", "D"}, "bfloat16");
  const int64_t turned = p.op("t", {value(k)}, {"D", "K"});
  const int64_t scores = p.op("mm", {value(q), value(turned)}, {"Q", "K"});
  const int64_t share = p.op("_softmax", {value(scores), integer(-1), flag(false)}, {"Q", "K"});
  p.output("y", p.op("mm", {value(share), value(v)}, {"Q", "D"}), {"Q", "D"});
  p.workload_at({{"Q", 64}, {"K", 96}, {"D", 32}});
  return p;
}

/// A layer norm over two dimensions, which no plain row kernel reads, and an activation.
small_program norm_of_planes() {
  small_program p({{"B", 5, 13}, {"H", 7, 17}, {"W", 11, 19}});
  const int64_t x = p.input("x", {"B", "H", "W"});
  const int64_t gain = p.input("gain", {"H", "W"});
  const int64_t shift = p.input("shift", {"H", "W"});
  const auto norm = p.ops("native_layer_norm",
    {value(x), integers({7, 11}), value(gain), value(shift), number(1e-5)},
    {{"B", "H", "W"}, {"B", "1", "1"}, {"B", "1", "1"}});
  p.output("y", p.op("silu", {value(norm.front())}, {"B", "H", "W"}), {"B", "H", "W"});
  p.workload_at({{"B", 4}, {"H", 8}, {"W", 16}});
  return p;
}

const std::string moved =
  "the text of a plain kernel has changed, and T_b with it: give the baseline a new version name "
  "and write a page in docs/decisions, or take the change of the kernel writers back";

} // namespace

TEST_CASE("the plain kernels are frozen: their texts are those of the day they were decided") {
  const std::map<std::string, uint64_t> frozen = {{"rmsnorm", 18113383914978827400U},
    {"silu_and_mul", 14006331976601719461U}, {"softmax", 5993217834629913291U}};
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto plain = plain_baseline(one.graph, one.target.def);
    REQUIRE(plain);
    CHECK(plain->version == "plain/1");
    CHECK_MESSAGE(fnv(plain->source + plain->plan) == frozen.at(one.target.name), moved);
  }
}

TEST_CASE("the plain programs are frozen, with the kernels for products and norms in them") {
  struct frozen_program {
    std::string name;
    small_program program;
    std::string kernel;
    uint64_t hash;
  };
  const frozen_program frozen[] = {
    {"a product with a bias", product_with_bias(), "ffma_tile<64, 64, 16, 4, 4,",
      17087520550111089497U},
    {"a softmax between two products", softmax_between_products(),
      "mma_tile<64, 64, 32, 32, 32, 3,", 1204234323972111705U},
    {"a norm and an activation", norm_of_planes(), "sqrt", 16326823549907016231U},
  };
  for (const auto& one : frozen) {
    CAPTURE(one.name);
    const auto plain = plain_baseline(one.program.target, one.program.graph);
    REQUIRE_MESSAGE(plain, (plain ? std::string{} : plain.error().what));
    CHECK(plain->version == "plain/2");
    CHECK(plain->source.find(one.kernel) != std::string::npos);
    const uint64_t now = fnv(plain->source + plain->plan);
    CHECK_MESSAGE(now == one.hash, moved << "; the hash is now " << now);
  }
}

TEST_CASE("a plain kernel has a plan that fits every workload") {
  for (const auto& one : whole_corpus()) {
    CAPTURE(one.target.name);
    const auto plain = plain_baseline(one.graph, one.target.def);
    REQUIRE(plain);
    const auto plan = parse_plan(plain->plan);
    REQUIRE(plan);
    for (const workload& work : one.target.workloads) {
      const auto axes = resolve_axes(one.target.def, work.axes);
      REQUIRE(axes);
      std::vector<std::pair<std::string, scalar_value>> scalars;
      for (const auto& spec : one.target.def.inputs) {
        if (spec.is_scalar)
          scalars.emplace_back(
            spec.name, *make_scalar(spec.type, work.find_input(spec.name)->value));
      }
      const auto bound = resolve(*plan, one.target.def, *axes, scalars, device_facts{});
      REQUIRE_MESSAGE(bound, (bound ? std::string{} : bound.error().what));
      CHECK(bound->steps.size() == 1);
    }
  }
}

TEST_CASE("where no template fits there is no plain kernel either") {
  const auto one =
    map_problem(R"({"op": "mm", "inputs": [{"value": 0}, {"value": 0}], "outputs": [1]})");
  const auto plain = plain_baseline(one.graph, one.target.def);
  REQUIRE_FALSE(plain);
  CHECK(plain.error().code == errc::unsupported);
}
