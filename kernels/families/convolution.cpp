#include "kernels/families/convolution.hpp"

#include "kernels/families/contraction.hpp"
#include "kernels/families/gemm_space.hpp"

namespace gristmill {

result<stage_space_ptr> read_convolution_stage(const problem& target, const op_graph& graph) {
  auto what = read_contraction(target, graph, contraction_kind::convolution);
  if (!what)
    return pass(what);
  return make_gemm_space("convolution", target, std::move(*what));
}

} // namespace gristmill
