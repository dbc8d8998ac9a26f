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
// Past the caches near the thread: never merged with another load, and not the read-only path.
template <size_t bytes>
struct gm_bits {};
#define GM_HINTED_LOAD(NAME, HINT)                                                                 \
  GM_DEVICE void gm##NAME(const void* p, void* to, gm_bits<1>) {                                   \
    unsigned short r;                                                                              \
    asm volatile("ld.global." HINT ".u8 %0, [%1];" : "=h"(r) : "l"(p) : "memory");                 \
    *static_cast<unsigned char*>(to) = static_cast<unsigned char>(r);                              \
  }                                                                                                \
  GM_DEVICE void gm##NAME(const void* p, void* to, gm_bits<2>) {                                   \
    unsigned short r;                                                                              \
    asm volatile("ld.global." HINT ".u16 %0, [%1];" : "=h"(r) : "l"(p) : "memory");                \
    __builtin_memcpy(to, &r, 2);                                                                   \
  }                                                                                                \
  GM_DEVICE void gm##NAME(const void* p, void* to, gm_bits<4>) {                                   \
    unsigned r;                                                                                    \
    asm volatile("ld.global." HINT ".u32 %0, [%1];" : "=r"(r) : "l"(p) : "memory");                \
    __builtin_memcpy(to, &r, 4);                                                                   \
  }                                                                                                \
  GM_DEVICE void gm##NAME(const void* p, void* to, gm_bits<8>) {                                   \
    unsigned long long r;                                                                          \
    asm volatile("ld.global." HINT ".u64 %0, [%1];" : "=l"(r) : "l"(p) : "memory");                \
    __builtin_memcpy(to, &r, 8);                                                                   \
  }                                                                                                \
  GM_DEVICE void gm##NAME(const void* p, void* to, gm_bits<16>) {                                  \
    unsigned long long r[2];                                                                       \
    asm volatile("ld.global." HINT ".v2.u64 {%0, %1}, [%2];"                                       \
                 : "=l"(r[0]), "=l"(r[1])                                                          \
                 : "l"(p)                                                                          \
                 : "memory");                                                                      \
    __builtin_memcpy(to, r, 16);                                                                   \
  }                                                                                                \
  template <class T>                                                                               \
  GM_DEVICE T NAME(const T* p) {                                                                   \
    T v;                                                                                           \
    gm##NAME(p, &v, gm_bits<sizeof(T)>());                                                         \
    return v;                                                                                      \
  }
GM_HINTED_LOAD(__ldcg, "cg")
// Reads again at each call, which is what spinning on it needs.
GM_HINTED_LOAD(__ldcv, "cv")
#undef GM_HINTED_LOAD
template <class T>
GM_DEVICE T __ldcs(const T* p) {
  return *p;
}
template <class T>
GM_DEVICE T __ldlu(const T* p) {
  return *p;
}
template <class T>
struct gm_same {
  typedef T type;
};
#define GM_HINTED_STORE(NAME)                                                                      \
  template <class T>                                                                               \
  GM_DEVICE void NAME(T* p, typename gm_same<T>::type v) {                                         \
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
GM_DEVICE unsigned long atomicMin(unsigned long* p, unsigned long v) {
  return atomicMin(reinterpret_cast<unsigned long long*>(p), v);
}
GM_DEVICE unsigned long atomicMax(unsigned long* p, unsigned long v) {
  return atomicMax(reinterpret_cast<unsigned long long*>(p), v);
}
GM_DEVICE long atomicMin(long* p, long v) {
  return static_cast<long>(atomicMin(reinterpret_cast<long long*>(p), v));
}
GM_DEVICE long atomicMax(long* p, long v) {
  return static_cast<long>(atomicMax(reinterpret_cast<long long*>(p), v));
}
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

GM_DEVICE unsigned long atomicCAS(unsigned long* p, unsigned long expected, unsigned long desired) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(p), expected, desired);
}
GM_DEVICE unsigned short atomicCAS(
  unsigned short* p, unsigned short expected, unsigned short desired) {
  unsigned short r;
  asm volatile("atom.cas.b16 %0, [%1], %2, %3;"
               : "=h"(r)
               : "l"(p), "h"(expected), "h"(desired)
               : "memory");
  return r;
}
// Four or two floats at once, each of them atomic by itself.
#if __CUDA_ARCH__ >= 900
GM_DEVICE float2 atomicAdd(float2* p, float2 v) {
  float2 r;
  asm volatile("atom.global.add.v2.f32 {%0, %1}, [%2], {%3, %4};"
               : "=f"(r.x), "=f"(r.y)
               : "l"(p), "f"(v.x), "f"(v.y)
               : "memory");
  return r;
}
GM_DEVICE float4 atomicAdd(float4* p, float4 v) {
  float4 r;
  asm volatile("atom.global.add.v4.f32 {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
               : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w)
               : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
  return r;
}
#endif

// The same among the threads of a block, or with the host: for the numbers there is no difference,
// and the order that the plain ones keep is at least as strict as that of _block.
#define GM_SCOPED(NAME)                                                                            \
  template <class T>                                                                               \
  GM_DEVICE T NAME##_block(T* p, typename gm_same<T>::type v) {                                    \
    return NAME(p, v);                                                                             \
  }                                                                                                \
  template <class T>                                                                               \
  GM_DEVICE T NAME##_system(T* p, typename gm_same<T>::type v) {                                   \
    return NAME(p, v);                                                                             \
  }
GM_SCOPED(atomicAdd)
GM_SCOPED(atomicSub)
GM_SCOPED(atomicExch)
GM_SCOPED(atomicMin)
GM_SCOPED(atomicMax)
GM_SCOPED(atomicInc)
GM_SCOPED(atomicDec)
GM_SCOPED(atomicAnd)
GM_SCOPED(atomicOr)
GM_SCOPED(atomicXor)
#undef GM_SCOPED
template <class T>
GM_DEVICE T atomicCAS_block(
  T* p, typename gm_same<T>::type expected, typename gm_same<T>::type desired) {
  return atomicCAS(p, expected, desired);
}
template <class T>
GM_DEVICE T atomicCAS_system(
  T* p, typename gm_same<T>::type expected, typename gm_same<T>::type desired) {
  return atomicCAS(p, expected, desired);
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
GM_DEVICE size_t __cvta_generic_to_constant(const void* p) {
  return reinterpret_cast<size_t>((__attribute__((address_space(4))) const char*)p);
}
GM_DEVICE size_t __cvta_generic_to_local(const void* p) {
  return reinterpret_cast<size_t>((__attribute__((address_space(5))) const char*)p);
}
GM_DEVICE void* __cvta_global_to_generic(size_t p) {
  return (void*)(__attribute__((address_space(1))) char*)p;
}
GM_DEVICE void* __cvta_constant_to_generic(size_t p) {
  return (void*)(__attribute__((address_space(4))) char*)p;
}
GM_DEVICE void* __cvta_local_to_generic(size_t p) {
  return (void*)(__attribute__((address_space(5))) char*)p;
}
GM_DEVICE unsigned __isConstant(const void* p) { return __nvvm_isspacep_const(p); }
GM_DEVICE unsigned __isLocal(const void* p) { return __nvvm_isspacep_local(p); }
