#pragma once

#include "kernels/kernel_ir.hpp"
#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"

namespace gristmill {

/// Reads an operator graph as one fused kernel, or says why it is none.
///
/// The outputs are followed back to the inputs: views (`split`, `slice`, `view`, `expand`,
/// `permute`, …) become index maps, operators on elements become arithmetic in float32 with a
/// rounding wherever the reference holds a value in 16 bits, reductions over the last dimension and
/// `_softmax`, `_log_softmax` and `native_layer_norm` become row reductions. Sizes in arguments are
/// led back to axes by their traced value.
///
/// Names decide nothing: of the definition only shapes, dtypes and the order of its tensors are
/// used. `unsupported` when no family fits; the text names the operator, such as "operator 'mm'
/// belongs to no template family yet".
result<fused_kernel> fuse(const op_graph& graph, const definition& def);

/// The same for a template that walks over all rows: outputs that are sums over all rows are read
/// too (`ir_output::is_per_column`), and sums along a row are written with the row's own factors
/// outside.
result<fused_kernel> fuse_with_columns(const op_graph& graph, const definition& def);

} // namespace gristmill
