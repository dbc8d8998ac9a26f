#pragma once

#include <string>
#include <string_view>

namespace gristmill {

/// Device functions of `sweep_template`: reductions over the threads of a row, which may be those
/// of several blocks of a cluster, with `reduction_operators`. Expects `block_threads`,
/// `row_threads`, `numbers`, VEC and CLUSTER, and where a block has
/// groups (`sweep_ring.hpp`) STAGES. `fast`: approximate exponentials.
std::string sweep_reduction_code(bool fast);

/// A kernel that adds up the shares of a sum over all rows, each of them always in the same order.
std::string column_sum_code(std::string_view entry, std::string_view element_type);

/// The same for few shares, as a dependent launch: it may begin while the shares are being written.
/// Blocks of 256 threads; expects VEC and `packed`.
std::string early_column_sum_code(std::string_view entry, std::string_view element_type);

} // namespace gristmill
