// What the built-in problems ship against what torch says: the traced graph and the reference.
// Torch takes a second or more to start for each, so that the problems are split over several
// programs: BUILTIN_PART of BUILTIN_PARTS.

#include "tests/kernels/oracle/oracle_fixture.hpp"

#include "kernels/builtin.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/trace_plan.hpp"
#include "tensors/compare.hpp"

using namespace gristmill;

namespace {

/// Sums in another order may round to the neighbour, and one such neighbour may go through a
/// function and a product.
tolerance allowed_for(dtype type) {
  tolerance allowed;
  allowed.matched_ratio = 1;
  allowed.atol = allowed.rtol = type == dtype::bfloat16 ? 0.02 : 1e-3;
  if (type == dtype::int8) {
    allowed.atol = 1; // A quotient half-way between two integers.
    allowed.rtol = 0;
  } else if (!is_float(type)) {
    allowed.atol = allowed.rtol = 0;
  }
  return allowed;
}

} // namespace

TEST_CASE_FIXTURE(oracle_fixture,
  "a built-in problem ships the graph that torch traces and the reference that torch computes") {
  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  const auto problems = builtin_problems();
  for (size_t index = BUILTIN_PART; index < problems.size(); index += BUILTIN_PARTS) {
    const auto& one = problems[index];
    CAPTURE(one.name);
    what.prepare.definition_text = one.definition_text;
    what.prepare.workloads.clear();
    what.prepare.trace.clear();
    what.prepare.graph_file.clear();
    add("w", one.workloads.back().axes);
    const auto references = what.prepare.workloads[0].references;
    what.prepare.oracle = oracle_kind::native;
    const auto native = prepare();
    CHECK_MESSAGE(
      native.workloads.at(0).status == verdict_status::passed, native.workloads[0].reason);
    std::vector<std::string> ours;
    for (const auto& reference : references)
      ours.push_back(content(reference.file));

    auto attempts = make_trace_attempts(one.def, {});
    REQUIRE_MESSAGE(attempts, attempts.error().what);
    what.prepare.trace = *attempts;
    what.prepare.graph_file = "graph.json";
    what.prepare.oracle = oracle_kind::torch;
    const auto torch = prepare();
    CHECK_MESSAGE(
      torch.workloads.at(0).status == verdict_status::passed, torch.workloads[0].reason);
    CHECK(torch.workloads[0].reason == "");
    for (size_t i = 0; i < references.size(); ++i) {
      CAPTURE(references[i].name);
      const auto theirs = content(references[i].file);
      const auto compared =
        compare(references[i].type, references[i].shape, std::as_bytes(std::span(ours[i])),
          std::as_bytes(std::span(theirs)), allowed_for(references[i].type));
      CHECK(compared.passed);
    }

    REQUIRE_MESSAGE(torch.graph_reason == "", torch.graph_reason);
    const auto traced = parse_op_graph(content(torch.graph_file));
    const auto shipped = parse_op_graph(one.graph_json);
    REQUIRE(traced);
    REQUIRE_MESSAGE(shipped, shipped.error().what);
    CHECK(serialise(*traced) == serialise(*shipped));
  }
}
