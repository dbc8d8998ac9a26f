// What threads of a block and lanes of a warp do together.
#pragma once
#include "types.h"

#if !__has_builtin(__syncthreads)
GM_DEVICE void __syncthreads() { __nvvm_bar_sync(0); }
#endif
GM_DEVICE int __syncthreads_count(int predicate) { return __nvvm_bar0_popc(predicate); }
GM_DEVICE int __syncthreads_and(int predicate) { return __nvvm_bar0_and(predicate); }
GM_DEVICE int __syncthreads_or(int predicate) { return __nvvm_bar0_or(predicate); }
GM_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
GM_DEVICE void __threadfence_block() { __nvvm_membar_cta(); }
GM_DEVICE void __threadfence() { __nvvm_membar_gl(); }
GM_DEVICE void __threadfence_system() { __nvvm_membar_sys(); }
GM_DEVICE void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
GM_DEVICE void __trap() { asm volatile("trap;"); }
GM_DEVICE void __brkpt() { asm volatile("brkpt;"); }
// Named barriers; `count` is a multiple of the warp's size.
GM_DEVICE void __barrier_sync(unsigned id) {
  asm volatile("barrier.sync %0;" ::"r"(id) : "memory");
}
GM_DEVICE void __barrier_sync_count(unsigned id, unsigned count) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

GM_DEVICE unsigned __activemask() {
  unsigned r;
  asm volatile("activemask.b32 %0;" : "=r"(r));
  return r;
}
GM_DEVICE unsigned __lane_id() { return __nvvm_read_ptx_sreg_laneid(); }
GM_DEVICE unsigned __lanemask_lt() { return __nvvm_read_ptx_sreg_lanemask_lt(); }

GM_DEVICE int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p != 0); }
GM_DEVICE int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p != 0); }
GM_DEVICE int __uni_sync(unsigned mask, int p) { return __nvvm_vote_uni_sync(mask, p != 0); }
GM_DEVICE unsigned __ballot_sync(unsigned mask, int p) {
  return __nvvm_vote_ballot_sync(mask, p != 0);
}

// A shuffle moves 32 bits; wider values go in halves and narrower ones are widened.
// `clamp` packs the segment mask and the largest source lane, as shfl.sync wants them.
#define GM_SHUFFLE(NAME, BUILTIN, SECOND, LIMIT)                                                   \
  GM_DEVICE int NAME(unsigned mask, int v, SECOND lane, int width = 32) {                          \
    return BUILTIN(mask, v, static_cast<int>(lane), ((32 - width) << 8) | (LIMIT));                \
  }                                                                                                \
  GM_DEVICE unsigned NAME(unsigned mask, unsigned v, SECOND lane, int width = 32) {                \
    return static_cast<unsigned>(NAME(mask, static_cast<int>(v), lane, width));                    \
  }                                                                                                \
  GM_DEVICE float NAME(unsigned mask, float v, SECOND lane, int width = 32) {                      \
    return __builtin_bit_cast(float, NAME(mask, __builtin_bit_cast(int, v), lane, width));         \
  }                                                                                                \
  GM_DEVICE unsigned long long NAME(                                                               \
    unsigned mask, unsigned long long v, SECOND lane, int width = 32) {                            \
    unsigned low = NAME(mask, static_cast<unsigned>(v), lane, width);                              \
    unsigned high = NAME(mask, static_cast<unsigned>(v >> 32), lane, width);                       \
    return static_cast<unsigned long long>(high) << 32 | low;                                      \
  }                                                                                                \
  GM_DEVICE long long NAME(unsigned mask, long long v, SECOND lane, int width = 32) {              \
    return static_cast<long long>(NAME(mask, static_cast<unsigned long long>(v), lane, width));    \
  }                                                                                                \
  GM_DEVICE unsigned long NAME(unsigned mask, unsigned long v, SECOND lane, int width = 32) {      \
    return NAME(mask, static_cast<unsigned long long>(v), lane, width);                            \
  }                                                                                                \
  GM_DEVICE long NAME(unsigned mask, long v, SECOND lane, int width = 32) {                        \
    return static_cast<long>(NAME(mask, static_cast<unsigned long long>(v), lane, width));         \
  }                                                                                                \
  GM_DEVICE double NAME(unsigned mask, double v, SECOND lane, int width = 32) {                    \
    return __builtin_bit_cast(                                                                     \
      double, NAME(mask, __builtin_bit_cast(unsigned long long, v), lane, width));                 \
  }
GM_SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_i32, int, 31)
GM_SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, int, 31)
GM_SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_i32, unsigned, 31)
GM_SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_i32, unsigned, 0)
#undef GM_SHUFFLE

GM_DEVICE unsigned __match_any_sync(unsigned mask, unsigned v) {
  unsigned r;
  asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(v), "r"(mask));
  return r;
}
GM_DEVICE unsigned __match_any_sync(unsigned mask, int v) {
  return __match_any_sync(mask, static_cast<unsigned>(v));
}
GM_DEVICE unsigned __match_any_sync(unsigned mask, float v) {
  return __match_any_sync(mask, __builtin_bit_cast(unsigned, v));
}
GM_DEVICE unsigned __match_any_sync(unsigned mask, unsigned long long v) {
  unsigned r;
  asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(r) : "l"(v), "r"(mask));
  return r;
}
GM_DEVICE unsigned __match_any_sync(unsigned mask, long long v) {
  return __match_any_sync(mask, static_cast<unsigned long long>(v));
}
GM_DEVICE unsigned __match_all_sync(unsigned mask, unsigned v, int* all_equal) {
  unsigned r, p;
  asm volatile("{\n .reg .pred gm_p;\n match.all.sync.b32 %0|gm_p, %2, %3;\n"
               " selp.u32 %1, 1, 0, gm_p;\n}"
               : "=r"(r), "=r"(p)
               : "r"(v), "r"(mask));
  *all_equal = static_cast<int>(p);
  return r;
}
#define GM_MATCH_ANY(T, AS)                                                                        \
  GM_DEVICE unsigned __match_any_sync(unsigned mask, T v) {                                        \
    return __match_any_sync(mask, __builtin_bit_cast(AS, v));                                      \
  }
GM_MATCH_ANY(double, unsigned long long)
GM_MATCH_ANY(long, unsigned long long)
GM_MATCH_ANY(unsigned long, unsigned long long)
#undef GM_MATCH_ANY
GM_DEVICE unsigned __match_all_sync(unsigned mask, unsigned long long v, int* all_equal) {
  unsigned r, p;
  asm volatile("{\n .reg .pred gm_p;\n match.all.sync.b64 %0|gm_p, %2, %3;\n"
               " selp.u32 %1, 1, 0, gm_p;\n}"
               : "=r"(r), "=r"(p)
               : "l"(v), "r"(mask));
  *all_equal = static_cast<int>(p);
  return r;
}
#define GM_MATCH_ALL(T, AS)                                                                        \
  GM_DEVICE unsigned __match_all_sync(unsigned mask, T v, int* all_equal) {                        \
    return __match_all_sync(mask, __builtin_bit_cast(AS, v), all_equal);                           \
  }
GM_MATCH_ALL(float, unsigned)
GM_MATCH_ALL(double, unsigned long long)
GM_MATCH_ALL(long long, unsigned long long)
GM_MATCH_ALL(long, unsigned long long)
GM_MATCH_ALL(unsigned long, unsigned long long)
#undef GM_MATCH_ALL
GM_DEVICE unsigned __match_all_sync(unsigned mask, int v, int* all_equal) {
  return __match_all_sync(mask, static_cast<unsigned>(v), all_equal);
}

#if __CUDA_ARCH__ >= 800
#define GM_REDUCE(NAME, T, OP)                                                                     \
  GM_DEVICE T NAME(unsigned mask, T v) {                                                           \
    T r;                                                                                           \
    asm volatile("redux.sync." OP " %0, %1, %2;" : "=r"(r) : "r"(v), "r"(mask));                   \
    return r;                                                                                      \
  }
GM_REDUCE(__reduce_add_sync, unsigned, "add.u32")
GM_REDUCE(__reduce_add_sync, int, "add.s32")
GM_REDUCE(__reduce_min_sync, unsigned, "min.u32")
GM_REDUCE(__reduce_min_sync, int, "min.s32")
GM_REDUCE(__reduce_max_sync, unsigned, "max.u32")
GM_REDUCE(__reduce_max_sync, int, "max.s32")
GM_REDUCE(__reduce_and_sync, unsigned, "and.b32")
GM_REDUCE(__reduce_or_sync, unsigned, "or.b32")
GM_REDUCE(__reduce_xor_sync, unsigned, "xor.b32")
#undef GM_REDUCE
#endif

// Legal to use, and a finding: a kernel that reads a clock may behave differently while it is
// timed.
GM_DEVICE long long clock64() { return static_cast<long long>(__nvvm_read_ptx_sreg_clock64()); }
GM_DEVICE int clock() { return __nvvm_read_ptx_sreg_clock(); }
