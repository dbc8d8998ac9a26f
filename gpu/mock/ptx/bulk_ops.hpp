#pragma once

#include "gpu/mock/ptx/warp.hpp"

/// Copies and reductions in bulk, without a tensor map. Like all asynchronous copies they are done
/// at once. The address of the target is in a, that of the source in b, the number of bytes in c,
/// all of them multiples of 16. `bytes`: of the registers with shared addresses in b and e.
namespace gristmill::ptx {

/// cp.async.bulk from global memory to shared memory; e: the mbarrier.
void bulk_to_shared(lane_state& s, const operation& o);
/// cp.async.bulk from shared memory to global memory.
void bulk_to_global(lane_state& s, const operation& o);
/// cp.async.bulk from shared memory to that of a block of the cluster; e: the mbarrier, in the
/// block of the target.
void bulk_in_cluster(lane_state& s, const operation& o);
/// cp.reduce.async.bulk from shared memory: `mode` a `bulk_reduction`, `target` a
/// `tensor_map_type`. To global memory, or, when `elements` is 2, to shared memory with the
/// mbarrier in e.
void bulk_reduce(lane_state& s, const operation& o);
/// cp.async.bulk.prefetch.L2: the address is in a.
void bulk_prefetch(lane_state& s, const operation& o);

} // namespace gristmill::ptx
