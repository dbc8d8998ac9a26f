#include "kernels/families/gemm.hpp"

#include "kernels/families/contraction.hpp"
#include "kernels/families/gemm_space.hpp"

namespace gristmill {

result<stage_space_ptr> read_gemm_stage(const problem& target, const op_graph& graph) {
  auto what = read_contraction(target, graph, contraction_kind::matrix_product);
  if (!what)
    return pass(what);
  return make_gemm_space("gemm", target, std::move(*what));
}

result<generated_kernel> plain_product(const problem& target, const op_graph& graph) {
  auto what = read_contraction(target, graph, contraction_kind::matrix_product);
  if (!what)
    return pass(what);
  return plain_gemm(target, std::move(*what));
}

} // namespace gristmill
