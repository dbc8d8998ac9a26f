#include "kernels/families/convolution.hpp"

#include "kernels/families/contraction.hpp"
#include "kernels/families/gemm_space.hpp"

#include <algorithm>

namespace gristmill {

result<stage_space_ptr> read_convolution_stage(const problem& target, const op_graph& graph) {
  auto what = read_contraction(target, graph, contraction_kind::convolution);
  if (!what)
    return pass(what);
  const bool has_workload = std::any_of(target.workloads.begin(), target.workloads.end(),
    [&](const workload& work) { return resolve_axes(target.def, work.axes).has_value(); });
  if (!has_workload)
    return fail(errc::unsupported, "the problem has no workload whose axes resolve");
  return make_gemm_space("convolution", target, std::move(*what));
}

} // namespace gristmill
