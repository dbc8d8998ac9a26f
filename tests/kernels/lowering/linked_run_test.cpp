#include "kernels/baseline.hpp"
#include "kernels/lowering/program_space.hpp"
#include "kernels/native/native_reference.hpp"
#include "protocol/shrink.hpp"
#include "tensors/codec.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/mock_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <doctest/doctest.h>
#include <set>
#include <span>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// Small enough to interpret in a moment.
constexpr uint64_t elements_max = 12'000;

std::vector<std::byte> encoded(dtype type, const tensor& values) {
  std::vector<std::byte> raw(values.size() * element_bits(type) / 8);
  encode_from_float(type, values, raw);
  return raw;
}

std::vector<tensor> native_outputs(
  const problem& target, const axis_values& axes, const std::vector<tensor>& inputs) {
  std::vector<std::vector<std::byte>> in;
  for (const auto& spec : target.def.inputs)
    in.push_back(encoded(spec.type, inputs[in.size()]));
  std::vector<std::vector<std::byte>> out;
  for (const auto& spec : target.def.outputs)
    out.emplace_back(*storage_bytes(spec.type, *resolve_shape(spec, axes)));
  const auto ran = run_native_reference(
    target.definition_text, axes, {in.begin(), in.end()}, {out.begin(), out.end()});
  REQUIRE_MESSAGE(ran, (ran ? std::string{} : ran.error().what));
  std::vector<tensor> values;
  for (size_t i = 0; i < out.size(); ++i) {
    values.emplace_back(out[i].size() * 8 / element_bits(target.def.outputs[i].type));
    decode_to_float(target.def.outputs[i].type, out[i], values.back());
  }
  return values;
}

/// The workload with its axes made small, as the correctness twin of a run is.
workload shortened(const problem& target, workload work) {
  const auto axes = shrink_axes(target.def, work, elements_max);
  REQUIRE_MESSAGE(axes, (axes ? std::string{} : axes.error().what));
  for (auto& [name, value] : work.axes)
    value = *find_axis_value(*axes, name);
  return work;
}

void check(
  mock_bench& bench, const problem& target, const workload& work, const generated_kernel& kernel) {
  const auto axes = resolve_axes(target.def, work.axes);
  REQUIRE(axes);
  const auto inputs = drawn_inputs(target, work);
  const auto wanted = native_outputs(target, *axes, inputs);
  const auto got = bench.outputs(kernel, target, work, inputs);
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].size() == wanted[i].size());
    const bool is_wide = target.def.outputs[i].type == dtype::float32;
    const double allowed = is_wide ? 2e-4 : 0.03;
    size_t wrong = 0;
    for (size_t e = 0; e < got[i].size(); ++e) {
      const auto x = static_cast<double>(got[i][e]);
      const auto y = static_cast<double>(wanted[i][e]);
      wrong += !(std::abs(x - y) <= allowed + allowed * std::abs(y)) && !(x == y) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

bool has_plain_inputs(const problem& target) {
  return std::all_of(target.def.inputs.begin(), target.def.inputs.end(),
    [](const tensor_spec& spec) { return !spec.is_scalar && is_float(spec.type); });
}

} // namespace

TEST_CASE("the most and the least fused program of a problem compute what its reference computes") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  const char* only = std::getenv("GRISTMILL_CASE");
  for (const graph_problem& one : all_builtins()) {
    if (!has_plain_inputs(one.target) || (only != nullptr && one.target.name != only))
      continue;
    CAPTURE(one.target.name);
    const auto work = shortened(one.target, one.target.workloads.front());
    const auto space = program_space::make(one.target, one.graph);
    REQUIRE_MESSAGE(space, (space ? std::string{} : space.error().what));
    std::set<size_t> cuts{0, space->partitions() - 1};
    for (size_t p = 0; only != nullptr && p < space->partitions(); ++p)
      cuts.insert(p);
    for (size_t p : cuts) {
      CAPTURE(p);
      CAPTURE(space->key(space->first(p)));
      const auto kernel = space->generate(space->first(p));
      REQUIRE_MESSAGE(kernel, (kernel ? std::string{} : kernel.error().what));
      check(bench, one.target, work, *kernel);
    }
    const auto plain = plain_baseline(one.target, one.graph);
    REQUIRE_MESSAGE(plain, (plain ? std::string{} : plain.error().what));
    if (plain->version == "plain/2")
      check(bench, one.target, work, {plain->source, plain->plan});
  }
}
