// Loads and stores with a cache hint, atomics, address spaces and asynchronous copies.
#pragma once
#include "types.h"

// The hints change no number, and the model has none of them except the read-only path, which
// clang chooses by itself for `const __restrict__` pointers.
template <class T>
GM_DEVICE T __ldg(const T* p) {
  return *p;
}
template <class T>
GM_DEVICE T __ldca(const T* p) {
  return *p;
}
#define GM_HINTED_LOAD(NAME)                                                                       \
  template <class T>                                                                               \
  GM_DEVICE T NAME(const T* p) {                                                                   \
    return *p;                                                                                     \
  }
GM_HINTED_LOAD(__ldcs)
GM_HINTED_LOAD(__ldcg)
GM_HINTED_LOAD(__ldlu)
#undef GM_HINTED_LOAD
// Reads again at each call, which is what spinning on it needs.
template <class T>
GM_DEVICE T __ldcv(const T* p) {
  return *const_cast<const volatile T*>(p);
}
#define GM_HINTED_STORE(NAME)                                                                      \
  template <class T>                                                                               \
  GM_DEVICE void NAME(T* p, T v) {                                                                 \
    *p = v;                                                                                        \
  }
GM_HINTED_STORE(__stcs)
GM_HINTED_STORE(__stcg)
GM_HINTED_STORE(__stwb)
GM_HINTED_STORE(__stwt)
#undef GM_HINTED_STORE

// One overload for each of int, unsigned, long long and unsigned long long, on the builtin of the
// signed type where sign does not matter.
#define GM_ATOMIC(NAME, T, BUILTIN, AS)                                                            \
  GM_DEVICE T NAME(T* p, T v) {                                                                    \
    return static_cast<T>(BUILTIN(reinterpret_cast<AS*>(p), static_cast<AS>(v)));                  \
  }
#define GM_ATOMIC_SIGNLESS(NAME, OP)                                                               \
  GM_ATOMIC(NAME, int, __nvvm_atom_##OP##_gen_i, int)                                              \
  GM_ATOMIC(NAME, unsigned, __nvvm_atom_##OP##_gen_i, int)                                         \
  GM_ATOMIC(NAME, long long, __nvvm_atom_##OP##_gen_ll, long long)                                 \
  GM_ATOMIC(NAME, unsigned long long, __nvvm_atom_##OP##_gen_ll, long long)                        \
  GM_ATOMIC(NAME, unsigned long, __nvvm_atom_##OP##_gen_ll, long long)
#define GM_ATOMIC_SIGNED(NAME, OP)                                                                 \
  GM_ATOMIC(NAME, int, __nvvm_atom_##OP##_gen_i, int)                                              \
  GM_ATOMIC(NAME, unsigned, __nvvm_atom_##OP##_gen_ui, unsigned)                                   \
  GM_ATOMIC(NAME, long long, __nvvm_atom_##OP##_gen_ll, long long)                                 \
  GM_ATOMIC(NAME, unsigned long long, __nvvm_atom_##OP##_gen_ull, unsigned long long)
GM_ATOMIC_SIGNLESS(atomicAdd, add)
GM_ATOMIC_SIGNLESS(atomicExch, xchg)
GM_ATOMIC_SIGNLESS(atomicAnd, and)
GM_ATOMIC_SIGNLESS(atomicOr, or)
GM_ATOMIC_SIGNLESS(atomicXor, xor)
GM_ATOMIC_SIGNED(atomicMin, min)
GM_ATOMIC_SIGNED(atomicMax, max)
#undef GM_ATOMIC
#undef GM_ATOMIC_SIGNLESS
#undef GM_ATOMIC_SIGNED
GM_DEVICE int atomicSub(int* p, int v) { return atomicAdd(p, -v); }
GM_DEVICE unsigned atomicSub(unsigned* p, unsigned v) { return atomicAdd(p, 0u - v); }
GM_DEVICE unsigned atomicInc(unsigned* p, unsigned limit) {
  return __nvvm_atom_inc_gen_ui(p, limit);
}
GM_DEVICE unsigned atomicDec(unsigned* p, unsigned limit) {
  return __nvvm_atom_dec_gen_ui(p, limit);
}
GM_DEVICE float atomicAdd(float* p, float v) { return __nvvm_atom_add_gen_f(p, v); }
GM_DEVICE double atomicAdd(double* p, double v) { return __nvvm_atom_add_gen_d(p, v); }
GM_DEVICE float atomicExch(float* p, float v) {
  return __builtin_bit_cast(
    float, __nvvm_atom_xchg_gen_i(reinterpret_cast<int*>(p), __builtin_bit_cast(int, v)));
}
GM_DEVICE int atomicCAS(int* p, int expected, int desired) {
  return __nvvm_atom_cas_gen_i(p, expected, desired);
}
GM_DEVICE unsigned atomicCAS(unsigned* p, unsigned expected, unsigned desired) {
  return static_cast<unsigned>(__nvvm_atom_cas_gen_i(
    reinterpret_cast<int*>(p), static_cast<int>(expected), static_cast<int>(desired)));
}
GM_DEVICE unsigned long long atomicCAS(
  unsigned long long* p, unsigned long long expected, unsigned long long desired) {
  return static_cast<unsigned long long>(__nvvm_atom_cas_gen_ll(reinterpret_cast<long long*>(p),
    static_cast<long long>(expected), static_cast<long long>(desired)));
}

GM_DEVICE size_t __cvta_generic_to_shared(const void* p) {
  return reinterpret_cast<size_t>((__attribute__((address_space(3))) const char*)p);
}
GM_DEVICE size_t __cvta_generic_to_global(const void* p) {
  return reinterpret_cast<size_t>((__attribute__((address_space(1))) const char*)p);
}
GM_DEVICE void* __cvta_shared_to_generic(size_t p) {
  return (void*)(__attribute__((address_space(3))) char*)p;
}
GM_DEVICE unsigned __isShared(const void* p) { return __nvvm_isspacep_shared(p); }
GM_DEVICE unsigned __isGlobal(const void* p) { return __nvvm_isspacep_global(p); }
