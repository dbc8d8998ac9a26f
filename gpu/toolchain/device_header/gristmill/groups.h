// cooperative_groups: the threads of a grid, a cluster, a block, a tile of a warp, or those that
// happen to run together.
#pragma once
#include "integer.h"
#include "memory.h"
#include "threads.h"
#include "traits.h"

// All blocks of a cooperative launch count up in here; the block with index 0 adds what makes the
// top bit change when everybody has come, so that the next round needs no reset.
inline __device__ unsigned gm_grid_arrivals;
GM_DEVICE unsigned gm_arrive_at_grid(bool first_block, unsigned blocks) {
  __threadfence();
  return atomicAdd(&gm_grid_arrivals, first_block ? 0x80000000u - (blocks - 1) : 1u);
}
GM_DEVICE void gm_wait_for_grid(unsigned before) {
  unsigned now;
  do
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(&gm_grid_arrivals) : "memory");
  while (((before ^ now) & 0x80000000u) == 0);
  __threadfence();
}

#define GM_REGISTER(NAME, REGISTER)                                                                \
  GM_DEVICE unsigned NAME() {                                                                      \
    unsigned r;                                                                                    \
    asm volatile("mov.u32 %0, %%" REGISTER ";" : "=r"(r));                                         \
    return r;                                                                                      \
  }
GM_REGISTER(gm_cluster_rank, "cluster_ctarank")
GM_REGISTER(gm_cluster_size, "cluster_nctarank")
GM_REGISTER(gm_cluster_x, "cluster_ctaid.x")
GM_REGISTER(gm_cluster_y, "cluster_ctaid.y")
GM_REGISTER(gm_cluster_z, "cluster_ctaid.z")
GM_REGISTER(gm_cluster_size_x, "cluster_nctaid.x")
GM_REGISTER(gm_cluster_size_y, "cluster_nctaid.y")
GM_REGISTER(gm_cluster_size_z, "cluster_nctaid.z")
GM_REGISTER(gm_clusters_x, "nclusterid.x")
GM_REGISTER(gm_clusters_y, "nclusterid.y")
GM_REGISTER(gm_clusters_z, "nclusterid.z")
GM_REGISTER(gm_cluster_index_x, "clusterid.x")
GM_REGISTER(gm_cluster_index_y, "clusterid.y")
GM_REGISTER(gm_cluster_index_z, "clusterid.z")
#undef GM_REGISTER

// Shuffles of anything that can be copied bit by bit, a word at a time.
enum class gm_shuffle { indexed, up, down, exclusive_or };
template <gm_shuffle how>
GM_DEVICE unsigned gm_shuffled_word(unsigned mask, unsigned word, unsigned lane, int width) {
  if constexpr (how == gm_shuffle::indexed)
    return __shfl_sync(mask, word, static_cast<int>(lane), width);
  else if constexpr (how == gm_shuffle::up)
    return __shfl_up_sync(mask, word, lane, width);
  else if constexpr (how == gm_shuffle::down)
    return __shfl_down_sync(mask, word, lane, width);
  else
    return __shfl_xor_sync(mask, word, static_cast<int>(lane), width);
}
template <gm_shuffle how, class T>
GM_DEVICE T gm_shuffled(unsigned mask, const T& v, unsigned lane, int width) {
  static_assert(sizeof(T) <= 32, "a shuffle moves at most 32 bytes");
  constexpr int words = (sizeof(T) + 3) / 4;
  unsigned parts[words] = {};
  __builtin_memcpy(parts, &v, sizeof(T));
  _Pragma("unroll") for (int i = 0; i < words; ++i) parts[i] =
    gm_shuffled_word<how>(mask, parts[i], lane, width);
  T r;
  __builtin_memcpy(&r, parts, sizeof(T));
  return r;
}

namespace cooperative_groups {

// A group whose kind is known only while the kernel runs.
class thread_group {
public:
  enum class gm_kind { one, block, lanes, grid };
  __device__ thread_group(gm_kind kind, unsigned mask, unsigned size, unsigned rank)
    : kind_(kind), mask_(mask), size_(size), rank_(rank) {}
  __device__ unsigned long long size() const { return size_; }
  __device__ unsigned long long num_threads() const { return size_; }
  __device__ unsigned long long thread_rank() const { return rank_; }
  __device__ bool is_valid() const { return true; }
  __device__ void sync() const {
    if (kind_ == gm_kind::block)
      __syncthreads();
    else if (kind_ == gm_kind::lanes)
      __syncwarp(mask_);
    else if (kind_ == gm_kind::grid)
      __trap();
  }
  __device__ unsigned gm_mask() const { return mask_; }
  __device__ gm_kind gm_what() const { return kind_; }

private:
  gm_kind kind_;
  unsigned mask_, size_, rank_;
};

class thread_block {
public:
  struct arrival_token {};
  __device__ static void sync() { __syncthreads(); }
  __device__ arrival_token barrier_arrive() const {
    asm volatile("barrier.arrive 0, %0;" ::"r"((size() + 31) / 32 * 32) : "memory");
    return {};
  }
  __device__ void barrier_wait(arrival_token&&) const {
    asm volatile("barrier.sync 0;" ::: "memory");
  }
  __device__ static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  __device__ static unsigned num_threads() { return size(); }
  __device__ static unsigned thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  __device__ static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  __device__ static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  __device__ static dim3 group_dim() { return {blockDim.x, blockDim.y, blockDim.z}; }
  __device__ static dim3 dim_threads() { return group_dim(); }
  __device__ operator thread_group() const {
    return {thread_group::gm_kind::block, 0, size(), thread_rank()};
  }
};

class grid_group {
public:
  struct arrival_token {
    unsigned before;
  };
  __device__ bool is_valid() const { return true; }
  // The launch must be cooperative: all blocks on the device at once.
  __device__ void sync() const { barrier_wait(barrier_arrive()); }
  __device__ arrival_token barrier_arrive() const {
    __syncthreads();
    arrival_token token{0};
    if (thread_block::thread_rank() == 0)
      token.before = gm_arrive_at_grid(block_rank() == 0, static_cast<unsigned>(num_blocks()));
    return token;
  }
  __device__ void barrier_wait(arrival_token&& token) const {
    if (thread_block::thread_rank() == 0)
      gm_wait_for_grid(token.before);
    __syncthreads();
  }
  __device__ static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  __device__ static unsigned long long block_rank() {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x
      + blockIdx.x;
  }
  __device__ static unsigned long long size() { return num_blocks() * thread_block::size(); }
  __device__ static unsigned long long num_threads() { return size(); }
  __device__ static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  __device__ static dim3 group_dim() { return {gridDim.x, gridDim.y, gridDim.z}; }
  __device__ static dim3 dim_blocks() { return group_dim(); }
  __device__ static dim3 block_index() { return thread_block::group_index(); }
  __device__ static dim3 thread_index() {
    return {blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
      blockIdx.z * blockDim.z + threadIdx.z};
  }
#if __CUDA_ARCH__ >= 900
  __device__ static dim3 dim_clusters() {
    return {gm_clusters_x(), gm_clusters_y(), gm_clusters_z()};
  }
  __device__ static unsigned long long num_clusters() {
    return static_cast<unsigned long long>(gm_clusters_x()) * gm_clusters_y() * gm_clusters_z();
  }
  __device__ static dim3 cluster_index() {
    return {gm_cluster_index_x(), gm_cluster_index_y(), gm_cluster_index_z()};
  }
  __device__ static unsigned long long cluster_rank() {
    return (static_cast<unsigned long long>(gm_cluster_index_z()) * gm_clusters_y()
             + gm_cluster_index_y())
      * gm_clusters_x()
      + gm_cluster_index_x();
  }
#endif
};

#if __CUDA_ARCH__ >= 900
class cluster_group {
public:
  struct arrival_token {};
  __device__ static void sync() {
    barrier_arrive();
    barrier_wait();
  }
  __device__ static arrival_token barrier_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    return {};
  }
  __device__ static void barrier_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  __device__ static void barrier_wait(arrival_token&&) { barrier_wait(); }
  __device__ static unsigned num_blocks() { return gm_cluster_size(); }
  __device__ static unsigned block_rank() { return gm_cluster_rank(); }
  __device__ static dim3 block_index() { return {gm_cluster_x(), gm_cluster_y(), gm_cluster_z()}; }
  __device__ static dim3 dim_blocks() {
    return {gm_cluster_size_x(), gm_cluster_size_y(), gm_cluster_size_z()};
  }
  __device__ static unsigned num_threads() { return num_blocks() * thread_block::size(); }
  __device__ static unsigned size() { return num_threads(); }
  __device__ static unsigned thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  __device__ static dim3 dim_threads() {
    return {gm_cluster_size_x() * blockDim.x, gm_cluster_size_y() * blockDim.y,
      gm_cluster_size_z() * blockDim.z};
  }
  __device__ static dim3 thread_index() {
    return {gm_cluster_x() * blockDim.x + threadIdx.x, gm_cluster_y() * blockDim.y + threadIdx.y,
      gm_cluster_z() * blockDim.z + threadIdx.z};
  }
  // The same place in the shared memory of that block.
  template <class T>
  __device__ static T* map_shared_rank(T* address, int rank) {
    T* there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(address), "r"(rank));
    return there;
  }
  __device__ static unsigned query_shared_rank(const void* address) {
    unsigned rank;
    asm volatile("getctarank.u32.u64 %0, %1;" : "=r"(rank) : "l"(address));
    return rank;
  }
};
#endif

// What groups of lanes have alike. `Self` knows its mask, its size, the rank of the caller, and the
// lane of the warp that has a rank.
template <class Self>
class gm_lanes {
public:
  __device__ void sync() const { __syncwarp(mask()); }
  __device__ int any(int predicate) const {
    return __ballot_sync(mask(), predicate) & mask() ? 1 : 0;
  }
  __device__ int all(int predicate) const {
    return (__ballot_sync(mask(), predicate) & mask()) == mask() ? 1 : 0;
  }
  // One bit for each rank.
  __device__ unsigned ballot(int predicate) const {
    return self().gm_by_rank(__ballot_sync(mask(), predicate));
  }
  template <class T>
  __device__ unsigned match_any(T v) const {
    return self().gm_by_rank(__match_any_sync(mask(), v));
  }
  template <class T>
  __device__ unsigned match_all(T v, int& all_equal) const {
    return self().gm_by_rank(__match_all_sync(mask(), v, &all_equal));
  }
  __device__ unsigned gm_mask() const { return mask(); }

private:
  __device__ const Self& self() const { return static_cast<const Self&>(*this); }
  __device__ unsigned mask() const { return self().gm_members(); }
};

class coalesced_group : public gm_lanes<coalesced_group> {
public:
  __device__ explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
    : mask_(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
  __device__ unsigned gm_members() const { return mask_; }
  __device__ unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  __device__ unsigned num_threads() const { return size(); }
  __device__ unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(mask_ & __lanemask_lt()));
  }
  __device__ unsigned meta_group_rank() const { return meta_rank_; }
  __device__ unsigned meta_group_size() const { return meta_size_; }
  __device__ unsigned gm_lane_of(unsigned rank) const {
    return mask_ == 0xffffffffu ? rank : __fns(mask_, 0, static_cast<int>(rank) + 1);
  }
  __device__ unsigned gm_by_rank(unsigned lanes) const {
    if (mask_ == 0xffffffffu)
      return lanes;
    unsigned r = 0, at = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++at)
      r |= (lanes >> (__ffs(static_cast<int>(rest)) - 1) & 1u) << at;
    return r;
  }
  template <class T>
  __device__ T shfl(T v, unsigned rank) const {
    return gm_shuffled<gm_shuffle::indexed>(mask_, v, gm_lane_of(rank % size()), 32);
  }
  template <class T>
  __device__ T shfl_down(T v, unsigned distance) const {
    unsigned from = thread_rank() + distance;
    return gm_shuffled<gm_shuffle::indexed>(
      mask_, v, from < size() ? gm_lane_of(from) : __lane_id(), 32);
  }
  template <class T>
  __device__ T shfl_up(T v, unsigned distance) const {
    unsigned rank = thread_rank();
    return gm_shuffled<gm_shuffle::indexed>(
      mask_, v, rank >= distance ? gm_lane_of(rank - distance) : __lane_id(), 32);
  }
  __device__ operator thread_group() const {
    return {thread_group::gm_kind::lanes, mask_, size(), thread_rank()};
  }

private:
  unsigned mask_, meta_rank_, meta_size_;
};

template <unsigned count, class Parent = void>
class thread_block_tile : public gm_lanes<thread_block_tile<count, Parent>> {
  static_assert(count >= 1 && count <= 32 && (count & (count - 1)) == 0,
    "tiles of 1, 2, 4, 8, 16 or 32 threads are available");

public:
  thread_block_tile() = default;
  template <class Other>
  __device__ thread_block_tile(const thread_block_tile<count, Other>& other)
    : meta_rank_(other.meta_group_rank()), meta_size_(other.meta_group_size()) {}
  __device__ thread_block_tile(unsigned meta_rank, unsigned meta_size)
    : meta_rank_(meta_rank), meta_size_(meta_size) {}
  __device__ static constexpr unsigned size() { return count; }
  __device__ static constexpr unsigned num_threads() { return count; }
  __device__ static unsigned thread_rank() { return thread_block::thread_rank() & (count - 1); }
  __device__ unsigned meta_group_rank() const { return meta_rank_; }
  __device__ unsigned meta_group_size() const { return meta_size_; }
  __device__ static unsigned gm_first_lane() { return __lane_id() & ~(count - 1); }
  __device__ static unsigned gm_members() {
    return count == 32 ? 0xffffffffu : ((1u << (count % 32)) - 1u) << gm_first_lane();
  }
  __device__ static unsigned gm_by_rank(unsigned lanes) {
    return count == 32 ? lanes : lanes >> gm_first_lane() & ((1u << (count % 32)) - 1u);
  }
  template <class T>
  __device__ T shfl(T v, unsigned rank) const {
    return gm_shuffled<gm_shuffle::indexed>(gm_members(), v, rank, count);
  }
  template <class T>
  __device__ T shfl_down(T v, unsigned distance) const {
    return gm_shuffled<gm_shuffle::down>(gm_members(), v, distance, count);
  }
  template <class T>
  __device__ T shfl_up(T v, unsigned distance) const {
    return gm_shuffled<gm_shuffle::up>(gm_members(), v, distance, count);
  }
  template <class T>
  __device__ T shfl_xor(T v, unsigned lanes) const {
    return gm_shuffled<gm_shuffle::exclusive_or>(gm_members(), v, lanes, count);
  }
  __device__ operator thread_group() const {
    return {thread_group::gm_kind::lanes, gm_members(), count, thread_rank()};
  }
  __device__ operator coalesced_group() const {
    return coalesced_group(gm_members(), meta_rank_, meta_size_);
  }

private:
  unsigned meta_rank_ = 0, meta_size_ = 1;
};

GM_DEVICE thread_block this_thread_block() { return {}; }
GM_DEVICE grid_group this_grid() { return {}; }
#if __CUDA_ARCH__ >= 900
GM_DEVICE cluster_group this_cluster() { return {}; }
#endif
GM_DEVICE coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }
GM_DEVICE thread_block_tile<1> this_thread() { return {0, 1}; }

template <unsigned count>
GM_DEVICE thread_block_tile<count, thread_block> tiled_partition(const thread_block& block) {
  return {block.thread_rank() / count, (block.size() + count - 1) / count};
}
template <unsigned count, unsigned parent, class Above>
GM_DEVICE thread_block_tile<count, thread_block_tile<parent, Above>> tiled_partition(
  const thread_block_tile<parent, Above>& tile) {
  static_assert(count <= parent, "a tile is at most as large as what it is a part of");
  return {tile.thread_rank() / count, parent / count};
}
// Tiles of a number that is known while the kernel runs: a power of two up to 32.
GM_DEVICE coalesced_group gm_tile_of(
  unsigned members, unsigned rank, unsigned size, unsigned count) {
  unsigned first = rank / count * count, mask = 0, at = 0;
  for (unsigned rest = members; rest != 0; rest &= rest - 1, ++at)
    if (at >= first && at < first + count)
      mask |= rest & (0u - rest);
  return coalesced_group(mask, rank / count, (size + count - 1) / count);
}
GM_DEVICE thread_group tiled_partition(const thread_group& parent, unsigned count) {
  if (parent.gm_what() == thread_group::gm_kind::block) {
    unsigned rank = thread_block::thread_rank(), lane = rank % 32 / count * count;
    unsigned mask = count >= 32 ? 0xffffffffu : ((1u << count) - 1u) << lane;
    return {thread_group::gm_kind::lanes, mask, count, rank % count};
  }
  return gm_tile_of(parent.gm_mask(), static_cast<unsigned>(parent.thread_rank()),
    static_cast<unsigned>(parent.size()), count);
}
GM_DEVICE coalesced_group tiled_partition(const coalesced_group& parent, unsigned count) {
  return gm_tile_of(parent.gm_members(), parent.thread_rank(), parent.size(), count);
}
// Those with an equal label, and those with an equal answer.
template <class Group, class Label>
GM_DEVICE coalesced_group labeled_partition(const Group& group, Label label) {
  unsigned mine = __match_any_sync(group.gm_mask(), label);
  // A group counts as the first of its members does; groups are numbered in that order.
  unsigned first = mine & (0u - mine);
  bool leads = (first >> __lane_id() & 1u) != 0;
  unsigned leaders = __ballot_sync(group.gm_mask(), leads) & group.gm_mask();
  return coalesced_group(mine, static_cast<unsigned>(__popc(leaders & (first - 1u))),
    static_cast<unsigned>(__popc(leaders)));
}
template <class Group>
GM_DEVICE coalesced_group binary_partition(const Group& group, bool predicate) {
  unsigned yes = __ballot_sync(group.gm_mask(), predicate) & group.gm_mask();
  return coalesced_group(predicate ? yes : group.gm_mask() & ~yes, predicate ? 1 : 0, 2);
}

template <class Group>
GM_DEVICE void sync(const Group& group) {
  group.sync();
}
template <class Group>
GM_DEVICE auto group_size(const Group& group) {
  return group.size();
}
template <class Group>
GM_DEVICE auto thread_rank(const Group& group) {
  return group.thread_rank();
}
GM_DEVICE dim3 group_index() { return thread_block::group_index(); }
template <class Group, class F, class... Args>
GM_DEVICE void invoke_one(const Group& group, F&& f, Args&&... args) {
  if (group.thread_rank() == 0)
    f(static_cast<Args&&>(args)...);
}
template <class Group, class F, class... Args>
GM_DEVICE auto invoke_one_broadcast(const Group& group, F&& f, Args&&... args) {
  decltype(f(static_cast<Args&&>(args)...)) r{};
  if (group.thread_rank() == 0)
    r = f(static_cast<Args&&>(args)...);
  return group.shfl(r, 0);
}

} // namespace cooperative_groups
