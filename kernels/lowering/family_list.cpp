#include "kernels/families/attention.hpp"
#include "kernels/families/attention_units.hpp"
#include "kernels/families/convolution.hpp"
#include "kernels/families/fold.hpp"
#include "kernels/families/gemm.hpp"
#include "kernels/families/indexed_map.hpp"
#include "kernels/families/parts_map.hpp"
#include "kernels/families/scan.hpp"
#include "kernels/families/top_values.hpp"
#include "kernels/families/transpose.hpp"
#include "kernels/lowering/fused_stage.hpp"
#include "kernels/lowering/sweep_stage.hpp"
#include "kernels/naive/naive_stage.hpp"
#include "kernels/stage.hpp"

namespace gristmill {

const std::vector<stage_family>& stage_families() {
  // Best first. A family that is merely correct stands behind the good ones.
  static const std::vector<stage_family> families = {
    {"transpose", read_transpose_stage, true},
    {"map", read_map_stage, true},
    {"row", read_row_stage, true},
    {"sweep", read_sweep_stage, true},
    {"attention_units", read_attention_units_stage, true},
    {"attention", read_attention_stage, true},
    {"parts", read_parts_map_stage, true},
    {"index", read_indexed_map_stage, true},
    {"fold", read_fold_stage, true},
    {"scan", read_scan_stage, true},
    {"topk", read_top_values_stage, true},
    {"gemm", read_gemm_stage, true},
    {"convolution", read_convolution_stage, true},
    {"naive", read_naive_stage, false},
  };
  return families;
}

} // namespace gristmill
