// The names of <cstdint> and <cstddef>, and how functions of these headers are declared: the same
// for every compiler, once it has `__device__` and `__forceinline__`.
#pragma once

// How every function of these headers is declared.
#define GM_DEVICE static __device__ __forceinline__

// The same type as in a toolkit's <cuda/std/cstdint>, which its cooperative groups and barriers read,
// and, behind clang, as on the host.
#ifdef __CUDACC_RTC__
#define GM_INT64 long long
#else
#define GM_INT64 long
#endif

typedef decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr)) ptrdiff_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef GM_INT64 int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned GM_INT64 uint64_t;
typedef GM_INT64 intptr_t;
typedef unsigned GM_INT64 uintptr_t;
typedef GM_INT64 intmax_t;
typedef unsigned GM_INT64 uintmax_t;
typedef int8_t int_least8_t;
typedef int16_t int_least16_t;
typedef int32_t int_least32_t;
typedef int64_t int_least64_t;
typedef uint8_t uint_least8_t;
typedef uint16_t uint_least16_t;
typedef uint32_t uint_least32_t;
typedef uint64_t uint_least64_t;
typedef int32_t int_fast32_t;
typedef uint32_t uint_fast32_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
