// Keywords of the language and the vector types. Sizes and alignments are those of the CUDA
// programming guide's table of built-in vector types; the launch plan's argument ABI rests on them.
#pragma once

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __host__ __attribute__((host))
// clang believes the declared alignment of an array rather than that of a pointer cast from it, and
// then splits `*reinterpret_cast<float4*>(&tile[i])` into four loads. nvcc does not; with 16
// neither does clang.
#define __shared__ __attribute__((shared, aligned(16)))
#define __constant__ __attribute__((constant))
// clang 19 has no such attribute; grid_constants.hpp says what becomes of the note.
#define __grid_constant__ __attribute__((annotate("gristmill.grid_constant")))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#ifndef __inline__
#define __inline__ inline
#endif
#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define CUDART_VERSION 12080

typedef decltype(sizeof(0)) size_t;
#include "integer_types.h"

#ifndef NULL
#define NULL 0
#endif

#define GM_VECTORS(T, N, align2, align4)                                                           \
  struct N##1 {                                                                                    \
    T x;                                                                                           \
  };                                                                                               \
  struct __align__(align2) N##2 {                                                                  \
    T x, y;                                                                                        \
  };                                                                                               \
  struct N##3 {                                                                                    \
    T x, y, z;                                                                                     \
  };                                                                                               \
  struct __align__(align4) N##4 {                                                                  \
    T x, y, z, w;                                                                                  \
  };                                                                                               \
  GM_DEVICE N##1 make_##N##1(T x) { return {x}; }                                                  \
  GM_DEVICE N##2 make_##N##2(T x, T y) { return {x, y}; }                                          \
  GM_DEVICE N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                  \
  GM_DEVICE N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
GM_VECTORS(signed char, char, 2, 4)
GM_VECTORS(unsigned char, uchar, 2, 4)
GM_VECTORS(short, short, 4, 8)
GM_VECTORS(unsigned short, ushort, 4, 8)
GM_VECTORS(int, int, 8, 16)
GM_VECTORS(unsigned int, uint, 8, 16)
GM_VECTORS(long, long, 16, 16)
GM_VECTORS(unsigned long, ulong, 16, 16)
GM_VECTORS(long long, longlong, 16, 16)
GM_VECTORS(unsigned long long, ulonglong, 16, 16)
GM_VECTORS(float, float, 8, 16)
GM_VECTORS(double, double, 16, 16)
#undef GM_VECTORS

struct dim3 {
  unsigned x, y, z;
  __device__ constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1)
    : x(vx), y(vy), z(vz) {}
  __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __device__ constexpr operator uint3() const { return {x, y, z}; }
};

// threadIdx and its like read special registers: objects without storage whose members are
// properties, so that `threadIdx.x` is one mov and `uint3 t = threadIdx` works too.
#define GM_GEOMETRY(NAME, TYPE, REGISTER)                                                          \
  struct gm_##NAME {                                                                               \
    __declspec(property(get = read_x)) unsigned x;                                                 \
    __declspec(property(get = read_y)) unsigned y;                                                 \
    __declspec(property(get = read_z)) unsigned z;                                                 \
    __device__ __forceinline__ unsigned read_x() const {                                           \
      return static_cast<unsigned>(REGISTER##x());                                                 \
    }                                                                                              \
    __device__ __forceinline__ unsigned read_y() const { return REGISTER##y(); }                   \
    __device__ __forceinline__ unsigned read_z() const { return REGISTER##z(); }                   \
    __device__ __forceinline__ operator TYPE() const {                                             \
      return TYPE{read_x(), read_y(), read_z()};                                                   \
    }                                                                                              \
  };                                                                                               \
  extern __device__ const gm_##NAME NAME;
GM_GEOMETRY(threadIdx, uint3, __nvvm_read_ptx_sreg_tid_)
GM_GEOMETRY(blockIdx, uint3, __nvvm_read_ptx_sreg_ctaid_)
GM_GEOMETRY(blockDim, dim3, __nvvm_read_ptx_sreg_ntid_)
GM_GEOMETRY(gridDim, dim3, __nvvm_read_ptx_sreg_nctaid_)
#undef GM_GEOMETRY
static constexpr int warpSize = 32;
