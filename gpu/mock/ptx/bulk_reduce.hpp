#pragma once

#include "messages/tensor_map.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

/// The reductions of `cp.reduce.async.bulk`, one element after the other.
namespace gristmill::ptx {

enum class bulk_reduction : uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// "add", "min", ..., "xor".
std::optional<bulk_reduction> bulk_reduction_of(std::string_view name);
/// "u32", "s64", "f16", "b32", ...; of the types that such a copy has.
std::optional<tensor_map_type> bulk_type_of(std::string_view name);
/// Whether hardware has this reduction for elements of that type.
bool reduction_exists(bulk_reduction how, tensor_map_type type);
/// `to` = `to` combined with `from`, `bytes` long. The reduction has to exist.
void reduce_bytes(
  bulk_reduction how, tensor_map_type type, uint8_t* to, const uint8_t* from, uint64_t bytes);

} // namespace gristmill::ptx
