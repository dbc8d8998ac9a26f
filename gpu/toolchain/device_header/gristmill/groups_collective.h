// cooperative_groups: reductions, scans and copies by a group.
#pragma once
#include "groups.h"
#include "pipeline.h"

namespace cooperative_groups {

#define GM_OPERATION(NAME, EXPRESSION)                                                             \
  template <class T = void>                                                                        \
  struct NAME {                                                                                    \
    __device__ T operator()(T a, T b) const { return EXPRESSION; }                                 \
  };                                                                                               \
  template <>                                                                                      \
  struct NAME<void> {                                                                              \
    template <class T>                                                                             \
    __device__ T operator()(T a, T b) const {                                                      \
      return EXPRESSION;                                                                           \
    }                                                                                              \
  };
GM_OPERATION(plus, a + b)
GM_OPERATION(less, b < a ? b : a)
GM_OPERATION(greater, a < b ? b : a)
GM_OPERATION(bit_and, a& b)
GM_OPERATION(bit_or, a | b)
GM_OPERATION(bit_xor, a ^ b)
#undef GM_OPERATION

// Integers of 32 bits have an instruction.
#if __CUDA_ARCH__ >= 800
#define GM_BY_INSTRUCTION(OPERATION, T, NAME)                                                      \
  template <class Group>                                                                           \
  GM_DEVICE T gm_reduce_by(const Group& group, T v, OPERATION<T>, int) {                           \
    return NAME(group.gm_mask(), v);                                                               \
  }
GM_BY_INSTRUCTION(plus, int, __reduce_add_sync)
GM_BY_INSTRUCTION(plus, unsigned, __reduce_add_sync)
GM_BY_INSTRUCTION(less, int, __reduce_min_sync)
GM_BY_INSTRUCTION(less, unsigned, __reduce_min_sync)
GM_BY_INSTRUCTION(greater, int, __reduce_max_sync)
GM_BY_INSTRUCTION(greater, unsigned, __reduce_max_sync)
GM_BY_INSTRUCTION(bit_and, unsigned, __reduce_and_sync)
GM_BY_INSTRUCTION(bit_or, unsigned, __reduce_or_sync)
GM_BY_INSTRUCTION(bit_xor, unsigned, __reduce_xor_sync)
#undef GM_BY_INSTRUCTION
#endif
template <unsigned count, class Parent, class T, class Operation>
GM_DEVICE T gm_reduce(const thread_block_tile<count, Parent>& tile, T v, Operation operation) {
  _Pragma("unroll") for (unsigned d = count / 2; d > 0; d /= 2) v =
    operation(v, tile.shfl_xor(v, d));
  return v;
}
// A tree over the ranks, whose root gives everybody the result.
template <class T, class Operation>
GM_DEVICE T gm_reduce(const coalesced_group& group, T v, Operation operation) {
  unsigned size = group.size(), rank = group.thread_rank();
  for (unsigned d = 1; d < size; d *= 2) {
    T other = group.shfl_down(v, d);
    if (rank % (2 * d) == 0 && rank + d < size)
      v = operation(v, other);
  }
  return group.shfl(v, 0);
}
template <class Group, class T, class Operation>
GM_DEVICE T gm_reduce_by(const Group& group, T v, Operation operation, long) {
  return gm_reduce(group, v, operation);
}
template <class Group, class T, class Operation>
GM_DEVICE T reduce(const Group& group, const T& v, Operation&& operation) {
  // An int prefers the form by instruction, where there is one.
  return gm_reduce_by(group, v, operation, 0);
}

template <class Group, class T, class Operation>
GM_DEVICE T inclusive_scan(const Group& group, const T& v, Operation&& operation) {
  T sum = v;
  for (unsigned d = 1; d < group.size(); d *= 2) {
    T before = group.shfl_up(sum, d);
    if (group.thread_rank() >= d)
      sum = operation(before, sum);
  }
  return sum;
}
template <class Group, class T>
GM_DEVICE T inclusive_scan(const Group& group, const T& v) {
  return inclusive_scan(group, v, plus<T>());
}
// What the first one gets: the number that changes nothing.
template <class T, class Operation>
GM_DEVICE T gm_neutral(Operation) {
  return T{};
}
template <class T>
GM_DEVICE T gm_neutral(less<T>) {
  return std::numeric_limits<T>::max();
}
template <class T>
GM_DEVICE T gm_neutral(greater<T>) {
  return std::numeric_limits<T>::lowest();
}
template <class T>
GM_DEVICE T gm_neutral(bit_and<T>) {
  return static_cast<T>(~T{});
}
template <class Group, class T, class Operation>
GM_DEVICE T exclusive_scan(const Group& group, const T& v, Operation&& operation) {
  T before = group.shfl_up(inclusive_scan(group, v, operation), 1u);
  return group.thread_rank() == 0 ? gm_neutral<T>(operation) : before;
}
template <class Group, class T>
GM_DEVICE T exclusive_scan(const Group& group, const T& v) {
  return exclusive_scan(group, v, plus<T>());
}

// Copies by all threads of a group, in pieces as large as the alignment of both ends allows; into
// shared memory the thread does not wait for them.
template <class Group>
GM_DEVICE void gm_copy(const Group& group, void* to, const void* from, size_t bytes) {
  size_t rank = group.thread_rank(), count = group.size();
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  size_t ends = reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from);
  bool background = __isShared(to) && __isGlobal(from);
  size_t piece = ends % 16 == 0 ? 16 : ends % 8 == 0 ? 8 : ends % 4 == 0 ? 4 : 1;
  size_t whole = bytes / piece;
  for (size_t i = rank; i < whole; i += count) {
    if (piece == 1)
      target[i] = source[i];
    else if (background)
      __pipeline_memcpy_async(target + i * piece, source + i * piece, piece);
    else
      for (size_t b = 0; b < piece; b += 4)
        *reinterpret_cast<unsigned*>(target + i * piece + b) =
          *reinterpret_cast<const unsigned*>(source + i * piece + b);
  }
  for (size_t i = whole * piece + rank; i < bytes; i += count)
    target[i] = source[i];
}
template <class Group, class T>
GM_DEVICE void memcpy_async(const Group& group, T* to, const T* from, size_t bytes) {
  gm_copy(group, to, from, bytes);
  __pipeline_commit();
}
template <class Group>
GM_DEVICE void memcpy_async(const Group& group, void* to, const void* from, size_t bytes) {
  gm_copy(group, to, from, bytes);
  __pipeline_commit();
}
// With counts of elements: the smaller of both is copied.
template <class Group, class T>
GM_DEVICE void memcpy_async(
  const Group& group, T* to, size_t to_count, const T* from, size_t from_count) {
  gm_copy(group, to, from, (to_count < from_count ? to_count : from_count) * sizeof(T));
  __pipeline_commit();
}
template <class Group>
GM_DEVICE void wait(const Group& group) {
  asm volatile("cp.async.wait_all;" ::: "memory");
  group.sync();
}
template <unsigned newest, class Group>
GM_DEVICE void wait_prior(const Group& group) {
  asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
  group.sync();
}

} // namespace cooperative_groups
