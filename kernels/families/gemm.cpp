#include "kernels/families/gemm.hpp"

#include "kernels/families/contraction.hpp"
#include "kernels/families/gemm_space.hpp"

#include <algorithm>

namespace gristmill {

result<stage_space_ptr> read_gemm_stage(const problem& target, const op_graph& graph) {
  auto what = read_contraction(target, graph, contraction_kind::matrix_product);
  if (!what)
    return pass(what);
  const bool has_workload = std::any_of(target.workloads.begin(), target.workloads.end(),
    [&](const workload& work) { return resolve_axes(target.def, work.axes).has_value(); });
  if (!has_workload)
    return fail(errc::unsupported, "the problem has no workload whose axes resolve");
  return make_gemm_space("gemm", target, std::move(*what));
}

result<generated_kernel> plain_product(const problem& target, const op_graph& graph) {
  auto what = read_contraction(target, graph, contraction_kind::matrix_product);
  if (!what)
    return pass(what);
  return plain_gemm(target, std::move(*what));
}

} // namespace gristmill
