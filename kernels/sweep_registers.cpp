#include "kernels/sweep_registers.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/row_passes.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Registers of a multiprocessor, and those of a thread that addresses and loops take.
constexpr int registers_of_all = 65536;
constexpr int registers_beside = 32;
constexpr int registers_max = 216;

} // namespace

load_role role_of(const ir_load& load) {
  if (!load.uses_last)
    return load_role::row_number;
  return load.uses_leading ? load_role::element : load_role::column;
}

sweep_load sweep_load_of(const fused_kernel& kernel) {
  sweep_load out;
  for (const ir_load& load : kernel.loads) {
    const load_role role = role_of(load);
    if (role == load_role::element)
      out.row_bytes += element_bytes(load.type);
    else if (role == load_role::column)
      out.column_bytes += element_bytes(load.type);
  }
  for (const ir_output& output : kernel.outputs)
    out.sums += output.is_per_column ? 1 : 0;
  const auto passes = passes_of(kernel, true);
  out.reusable = static_cast<int>(reusable_nodes(kernel, passes).size());
  for (const row_pass& pass : passes)
    out.reusable += static_cast<int>(pass.pairs.size());
  return out;
}

int64_t sweep_columns_max(const sweep_load& load, const sweep_point& point) {
  const int threads =
    point.walk == row_walk::ring ? ring_threads(point) : point.threads * point.blocks;
  const int registers =
    std::min(registers_of_all / threads - registers_beside, registers_max) - 2 * point.width;
  // A kept value takes the place of the row that it was made of, where that has as many bytes.
  const int kept = std::max(0, 4 * load.reusable - load.row_bytes);
  const int column_bytes = holds_columns(point.walk) ? load.column_bytes : 0;
  const int bytes =
    load.row_bytes * (point.walk == row_walk::ahead ? 2 : 1) + column_bytes + 4 * load.sums + kept;
  if (registers <= 0 || bytes == 0)
    return 0;
  const int64_t chunks = int64_t{registers} * 4 / (int64_t{bytes} * point.width);
  return chunks * point.threads * point.cluster * point.width;
}

} // namespace gristmill
