#pragma once

#include "gpu/mock/ptx/warp.hpp"

/// Copies by tensor maps, and changes of maps. Like all asynchronous copies they are done at once.
namespace gristmill::ptx {

/// The registers in `list` of a copy by a tensor map: the address of the map and what is added to
/// it, the same of the mbarrier, the mask of blocks, then the coordinates.
enum tensor_copy_register : uint32_t {
  tensor_copy_map,
  tensor_copy_map_offset,
  tensor_copy_mbarrier,
  tensor_copy_mbarrier_offset,
  tensor_copy_blocks,
  tensor_copy_coordinates
};

// tensor_copy_ops.cpp. The shared address is in `a`, `bytes` are those of the mbarrier's address,
// `elements` is the number of coordinates.

/// `mode` 1: to the blocks of a mask.
void tensor_load(lane_state& s, const operation& o);
void tensor_store(lane_state& s, const operation& o);
/// `mode`: a `bulk_reduction`.
void tensor_reduce(lane_state& s, const operation& o);
void tensor_prefetch(lane_state& s, const operation& o);

/// tensormap.replace: the map at a, the dimension `target`, the value in b (`bytes` wide); `mode` a
/// `tensor_map_field`.
void replace_in_tensor_map(lane_state& s, const operation& o);
/// tensormap.cp_fenceproxy: 128 bytes from the shared address b (`bytes` wide) to a.
void copy_tensor_map(lane_state& s, const operation& o);

} // namespace gristmill::ptx
