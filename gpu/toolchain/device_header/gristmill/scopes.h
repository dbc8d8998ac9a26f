// cuda::atomic and cuda::atomic_ref: operations with a memory order among the threads of a scope.
#pragma once
#include "memory.h"
#include "threads.h"
#include "traits.h"

namespace cuda {
enum thread_scope {
  thread_scope_system,
  thread_scope_device,
  thread_scope_block,
  thread_scope_thread
};
namespace std {
using namespace ::std;
enum memory_order {
  memory_order_relaxed,
  memory_order_consume,
  memory_order_acquire,
  memory_order_release,
  memory_order_acq_rel,
  memory_order_seq_cst
};
} // namespace std
using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_consume;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;
} // namespace cuda

// A scope and what it can do with a word; a thread alone asks for no more than its block.
template <cuda::thread_scope scope>
struct gm_scope {};
#define GM_WORD_OPERATION(NAME, T, CONSTRAINT, OP, S)                                              \
  __device__ static T NAME(T* p, T v) {                                                            \
    T r;                                                                                           \
    asm volatile("atom.relaxed." S "." OP " %0, [%1], %2;"                                         \
                 : "=" CONSTRAINT(r)                                                               \
                 : "l"(p), CONSTRAINT(v)                                                           \
                 : "memory");                                                                      \
    return r;                                                                                      \
  }
#define GM_WORD(T, CONSTRAINT, BITS, S)                                                            \
  __device__ static T load(const T* p) {                                                           \
    T r;                                                                                           \
    asm volatile("ld.relaxed." S ".b" BITS " %0, [%1];" : "=" CONSTRAINT(r) : "l"(p) : "memory");  \
    return r;                                                                                      \
  }                                                                                                \
  __device__ static void store(T* p, T v) {                                                        \
    asm volatile("st.relaxed." S ".b" BITS " [%0], %1;" ::"l"(p), CONSTRAINT(v) : "memory");       \
  }                                                                                                \
  __device__ static T exchange_if(T* p, T expected, T desired) {                                   \
    T r;                                                                                           \
    asm volatile("atom.relaxed." S ".cas.b" BITS " %0, [%1], %2, %3;"                              \
                 : "=" CONSTRAINT(r)                                                               \
                 : "l"(p), CONSTRAINT(expected), CONSTRAINT(desired)                               \
                 : "memory");                                                                      \
    return r;                                                                                      \
  }                                                                                                \
  GM_WORD_OPERATION(exchange, T, CONSTRAINT, "exch.b" BITS, S)                                     \
  GM_WORD_OPERATION(add, T, CONSTRAINT, "add.u" BITS, S)                                           \
  GM_WORD_OPERATION(bits_and, T, CONSTRAINT, "and.b" BITS, S)                                      \
  GM_WORD_OPERATION(bits_or, T, CONSTRAINT, "or.b" BITS, S)                                        \
  GM_WORD_OPERATION(bits_xor, T, CONSTRAINT, "xor.b" BITS, S)
#define GM_SCOPE(SCOPE, S)                                                                         \
  template <>                                                                                      \
  struct gm_scope<cuda::SCOPE> {                                                                   \
    GM_WORD(unsigned, "r", "32", S)                                                                \
    GM_WORD(unsigned long long, "l", "64", S)                                                      \
    GM_WORD_OPERATION(add, float, "f", "add.f32", S)                                               \
    GM_WORD_OPERATION(add, double, "d", "add.f64", S)                                              \
    GM_WORD_OPERATION(smaller, int, "r", "min.s32", S)                                             \
    GM_WORD_OPERATION(smaller, unsigned, "r", "min.u32", S)                                        \
    GM_WORD_OPERATION(smaller, long long, "l", "min.s64", S)                                       \
    GM_WORD_OPERATION(smaller, unsigned long long, "l", "min.u64", S)                              \
    GM_WORD_OPERATION(larger, int, "r", "max.s32", S)                                              \
    GM_WORD_OPERATION(larger, unsigned, "r", "max.u32", S)                                         \
    GM_WORD_OPERATION(larger, long long, "l", "max.s64", S)                                        \
    GM_WORD_OPERATION(larger, unsigned long long, "l", "max.u64", S)                               \
    __device__ static void fence() { asm volatile("fence.acq_rel." S ";" ::: "memory"); }          \
    __device__ static void strong_fence() { asm volatile("fence.sc." S ";" ::: "memory"); }        \
  };
GM_SCOPE(thread_scope_system, "sys")
GM_SCOPE(thread_scope_device, "gpu")
GM_SCOPE(thread_scope_block, "cta")
GM_SCOPE(thread_scope_thread, "cta")
#undef GM_WORD_OPERATION
#undef GM_WORD
#undef GM_SCOPE

// The integer as wide as a T, and for arithmetic the one with its sign.
template <size_t bytes>
struct gm_word {};
template <>
struct gm_word<4> {
  typedef unsigned type;
  typedef int with_sign;
};
template <>
struct gm_word<8> {
  typedef unsigned long long type;
  typedef long long with_sign;
};

namespace cuda {

// The operations on a place; each is a relaxed one between the fences that the order asks for.
template <class T, thread_scope scope>
class gm_atomic_access {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics of 4 and 8 bytes are available");
  typedef typename gm_word<sizeof(T)>::type word;
  typedef std::conditional_t<std::is_signed_v<T>, typename gm_word<sizeof(T)>::with_sign, word>
    number;
  typedef gm_scope<scope> at;

public:
  typedef T value_type;
  __device__ explicit gm_atomic_access(T* place) : place_(place) {}
  __device__ T load(memory_order order = memory_order_seq_cst) const {
    if (order == memory_order_seq_cst)
      at::strong_fence();
    word r = at::load(words());
    after(order);
    return from(r);
  }
  __device__ void store(T v, memory_order order = memory_order_seq_cst) const {
    before(order);
    at::store(words(), to(v));
    if (order == memory_order_seq_cst)
      at::strong_fence();
  }
  __device__ T exchange(T v, memory_order order = memory_order_seq_cst) const {
    before(order);
    word r = at::exchange(words(), to(v));
    after(order);
    return from(r);
  }
  __device__ bool compare_exchange_strong(T& expected, T desired,
    memory_order order = memory_order_seq_cst, memory_order = memory_order_relaxed) const {
    before(order);
    word want = to(expected), r = at::exchange_if(words(), want, to(desired));
    after(order);
    expected = from(r);
    return r == want;
  }
  __device__ bool compare_exchange_weak(T& expected, T desired,
    memory_order order = memory_order_seq_cst, memory_order = memory_order_relaxed) const {
    return compare_exchange_strong(expected, desired, order);
  }
  __device__ T fetch_add(T v, memory_order order = memory_order_seq_cst) const {
    before(order);
    T r;
    if constexpr (std::is_floating_point_v<T>)
      r = at::add(place_, v);
    else
      r = from(at::add(words(), to(v)));
    after(order);
    return r;
  }
  __device__ T fetch_sub(T v, memory_order order = memory_order_seq_cst) const {
    return fetch_add(static_cast<T>(-v), order);
  }
#define GM_FETCH(NAME, OPERATION)                                                                  \
  __device__ T NAME(T v, memory_order order = memory_order_seq_cst) const {                        \
    before(order);                                                                                 \
    word r = at::OPERATION(words(), to(v));                                                        \
    after(order);                                                                                  \
    return from(r);                                                                                \
  }
  GM_FETCH(fetch_and, bits_and)
  GM_FETCH(fetch_or, bits_or)
  GM_FETCH(fetch_xor, bits_xor)
#undef GM_FETCH
#define GM_FETCH(NAME, OPERATION)                                                                  \
  __device__ T NAME(T v, memory_order order = memory_order_seq_cst) const {                        \
    static_assert(!std::is_floating_point_v<T>, #NAME " is available for integers");               \
    before(order);                                                                                 \
    number r = at::OPERATION(reinterpret_cast<number*>(place_), static_cast<number>(v));           \
    after(order);                                                                                  \
    return static_cast<T>(r);                                                                      \
  }
  GM_FETCH(fetch_min, smaller)
  GM_FETCH(fetch_max, larger)
#undef GM_FETCH
  __device__ operator T() const { return load(); }
  __device__ T operator=(T v) const {
    store(v);
    return v;
  }
  __device__ T operator++() const { return static_cast<T>(fetch_add(1) + 1); }
  __device__ T operator--() const { return static_cast<T>(fetch_sub(1) - 1); }
  __device__ T operator++(int) const { return fetch_add(1); }
  __device__ T operator--(int) const { return fetch_sub(1); }
  __device__ T operator+=(T v) const { return static_cast<T>(fetch_add(v) + v); }
  __device__ T operator-=(T v) const { return static_cast<T>(fetch_sub(v) - v); }
  __device__ T operator&=(T v) const { return static_cast<T>(fetch_and(v) & v); }
  __device__ T operator|=(T v) const { return static_cast<T>(fetch_or(v) | v); }
  __device__ T operator^=(T v) const { return static_cast<T>(fetch_xor(v) ^ v); }
  __device__ void wait(T old, memory_order order = memory_order_seq_cst) const {
    while (to(load(order)) == to(old))
      __nanosleep(20);
  }
  __device__ void notify_one() const {}
  __device__ void notify_all() const {}
  __device__ bool is_lock_free() const { return true; }

private:
  __device__ word* words() const { return reinterpret_cast<word*>(place_); }
  __device__ static word to(T v) { return __builtin_bit_cast(word, v); }
  __device__ static T from(word v) { return __builtin_bit_cast(T, v); }
  __device__ static void before(memory_order order) {
    if (order == memory_order_seq_cst)
      at::strong_fence();
    else if (order == memory_order_release || order == memory_order_acq_rel)
      at::fence();
  }
  __device__ static void after(memory_order order) {
    if (order != memory_order_relaxed && order != memory_order_release)
      at::fence();
  }
  T* place_;
};

template <class T, thread_scope scope = thread_scope_system>
class atomic_ref : public gm_atomic_access<T, scope> {
public:
  __device__ explicit atomic_ref(T& place) : gm_atomic_access<T, scope>(&place) {}
  using gm_atomic_access<T, scope>::operator=;
};

template <class T, thread_scope scope = thread_scope_system>
class atomic {
  typedef gm_atomic_access<T, scope> access;

public:
  typedef T value_type;
  atomic() = default;
  __device__ constexpr atomic(T v) : value_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
#define GM_FORWARD(R, NAME)                                                                        \
  template <class... Args>                                                                         \
  __device__ R NAME(Args... args) {                                                                \
    return access(&value_).NAME(args...);                                                          \
  }
  GM_FORWARD(void, store)
  GM_FORWARD(T, exchange)
  GM_FORWARD(T, fetch_add)
  GM_FORWARD(T, fetch_sub)
  GM_FORWARD(T, fetch_and)
  GM_FORWARD(T, fetch_or)
  GM_FORWARD(T, fetch_xor)
  GM_FORWARD(T, fetch_min)
  GM_FORWARD(T, fetch_max)
  GM_FORWARD(void, wait)
#undef GM_FORWARD
  __device__ T load(memory_order order = memory_order_seq_cst) const {
    return access(const_cast<T*>(&value_)).load(order);
  }
  template <class... Orders>
  __device__ bool compare_exchange_strong(T& expected, T desired, Orders... orders) {
    return access(&value_).compare_exchange_strong(expected, desired, orders...);
  }
  template <class... Orders>
  __device__ bool compare_exchange_weak(T& expected, T desired, Orders... orders) {
    return access(&value_).compare_exchange_strong(expected, desired, orders...);
  }
  __device__ void notify_one() {}
  __device__ void notify_all() {}
  __device__ operator T() const { return load(); }
  __device__ T operator=(T v) { return access(&value_) = v; }
  __device__ T operator++() { return ++access(&value_); }
  __device__ T operator--() { return --access(&value_); }
  __device__ T operator++(int) { return access(&value_)++; }
  __device__ T operator--(int) { return access(&value_)--; }
  __device__ T operator+=(T v) { return access(&value_) += v; }
  __device__ T operator-=(T v) { return access(&value_) -= v; }
  __device__ T operator&=(T v) { return access(&value_) &= v; }
  __device__ T operator|=(T v) { return access(&value_) |= v; }
  __device__ T operator^=(T v) { return access(&value_) ^= v; }

private:
  alignas(sizeof(T)) T value_;
};
GM_DEVICE void atomic_thread_fence(memory_order order, thread_scope scope = thread_scope_system) {
  if (order == memory_order_relaxed)
    return;
  if (scope == thread_scope_system)
    order == memory_order_seq_cst ? gm_scope<thread_scope_system>::strong_fence()
                                  : gm_scope<thread_scope_system>::fence();
  else if (scope == thread_scope_device)
    order == memory_order_seq_cst ? gm_scope<thread_scope_device>::strong_fence()
                                  : gm_scope<thread_scope_device>::fence();
  else
    order == memory_order_seq_cst ? gm_scope<thread_scope_block>::strong_fence()
                                  : gm_scope<thread_scope_block>::fence();
}
namespace std {
template <class T>
using atomic = cuda::atomic<T, thread_scope_system>;
template <class T>
using atomic_ref = cuda::atomic_ref<T, thread_scope_system>;
} // namespace std

} // namespace cuda
