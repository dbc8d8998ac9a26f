// nvcuda::wmma: products of small matrices by a warp (PTX wmma). A fragment is the caller's part of
// a matrix; which elements those are is the hardware's business.
#pragma once
#include "bfloat16.h"

// Lists of asm operands by name, so that one text serves every length.
#define GM_LIST_1(V) "{%[" #V "0]}"
#define GM_LIST_2(V) "{%[" #V "0], %[" #V "1]}"
#define GM_LIST_4(V) "{%[" #V "0], %[" #V "1], %[" #V "2], %[" #V "3]}"
#define GM_LIST_8(V)                                                                               \
  "{%[" #V "0], %[" #V "1], %[" #V "2], %[" #V "3], %[" #V "4], %[" #V "5], %[" #V "6], %[" #V "7" \
  "]"                                                                                              \
  "}"
#define GM_ARGUMENTS_1(V, C) [V##0] C(V[0])
#define GM_ARGUMENTS_2(V, C) GM_ARGUMENTS_1(V, C), [V##1] C(V[1])
#define GM_ARGUMENTS_4(V, C) GM_ARGUMENTS_2(V, C), [V##2] C(V[2]), [V##3] C(V[3])
#define GM_ARGUMENTS_8(V, C)                                                                       \
  GM_ARGUMENTS_4(V, C), [V##4] C(V[4]), [V##5] C(V[5]), [V##6] C(V[6]), [V##7] C(V[7])

namespace nvcuda {
namespace wmma {

enum layout_t { mem_row_major, mem_col_major };
struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
namespace precision {
struct tf32 {};
} // namespace precision

template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment;

#define GM_FRAGMENT(USE, M, N, K, T, LAYOUT, STORED, COUNT)                                        \
  template <>                                                                                      \
  class fragment<USE, M, N, K, T, LAYOUT> {                                                        \
  public:                                                                                          \
    typedef STORED element_type;                                                                   \
    typedef STORED storage_element_type;                                                           \
    static constexpr int num_elements = COUNT;                                                     \
    static constexpr int num_storage_elements = COUNT;                                             \
    STORED x[COUNT];                                                                               \
  };
#define GM_LOAD(USE, LETTER, M, N, K, T, LAYOUT, L, FROM, PTX, WORDS)                              \
  GM_DEVICE void load_matrix_sync(                                                                 \
    fragment<USE, M, N, K, T, LAYOUT>& f, const FROM* p, unsigned stride) {                        \
    unsigned w[WORDS];                                                                             \
    asm volatile("wmma.load." LETTER ".sync.aligned." L ".m" #M "n" #N "k" #K "." PTX              \
                 " " GM_LIST_##WORDS(w) ", [%[p]], %[stride];"                                     \
                 : GM_ARGUMENTS_##WORDS(w, "=r")                                                   \
                 : [p] "l"(p), [stride] "r"(stride)                                                \
                 : "memory");                                                                      \
    __builtin_memcpy(f.x, w, sizeof(w));                                                           \
  }
#define GM_FACTOR_BY_LAYOUT(USE, LETTER, M, N, K, T, LAYOUT, L, FROM, PTX, STORED, COUNT, WORDS)   \
  GM_FRAGMENT(USE, M, N, K, T, LAYOUT, STORED, COUNT)                                              \
  GM_LOAD(USE, LETTER, M, N, K, T, LAYOUT, L, FROM, PTX, WORDS)
#define GM_FACTOR(USE, LETTER, M, N, K, T, FROM, PTX, STORED, COUNT, WORDS)                        \
  GM_FACTOR_BY_LAYOUT(USE, LETTER, M, N, K, T, row_major, "row", FROM, PTX, STORED, COUNT, WORDS)  \
  GM_FACTOR_BY_LAYOUT(USE, LETTER, M, N, K, T, col_major, "col", FROM, PTX, STORED, COUNT, WORDS)

// Sums, and their way from and to memory in either layout.
#define GM_SUM_MOVE(M, N, K, T, L, PTX, W, C, WORDS)                                               \
  GM_DEVICE void gm_load_##L(fragment<accumulator, M, N, K, T>& f, const T* p, unsigned stride) {  \
    W w[WORDS];                                                                                    \
    asm volatile("wmma.load.c.sync.aligned." #L ".m" #M "n" #N "k" #K "." PTX                      \
                 " " GM_LIST_##WORDS(w) ", [%[p]], %[stride];"                                     \
                 : GM_ARGUMENTS_##WORDS(w, "=" C)                                                  \
                 : [p] "l"(p), [stride] "r"(stride)                                                \
                 : "memory");                                                                      \
    __builtin_memcpy(f.x, w, sizeof(w));                                                           \
  }                                                                                                \
  GM_DEVICE void gm_store_##L(T* p, const fragment<accumulator, M, N, K, T>& f, unsigned stride) { \
    W w[WORDS];                                                                                    \
    __builtin_memcpy(w, f.x, sizeof(w));                                                           \
    asm volatile("wmma.store.d.sync.aligned." #L ".m" #M "n" #N "k" #K "." PTX                     \
                 " [%[p]], " GM_LIST_##WORDS(w) ", %[stride];" ::[p] "l"(p),                       \
                 [stride] "r"(stride), GM_ARGUMENTS_##WORDS(w, C)                                  \
                 : "memory");                                                                      \
  }
#define GM_SUM(M, N, K, T, PTX, COUNT, W, C, WORDS)                                                \
  GM_FRAGMENT(accumulator, M, N, K, T, void, T, COUNT)                                             \
  GM_SUM_MOVE(M, N, K, T, row, PTX, W, C, WORDS)                                                   \
  GM_SUM_MOVE(M, N, K, T, col, PTX, W, C, WORDS)                                                   \
  GM_DEVICE void load_matrix_sync(                                                                 \
    fragment<accumulator, M, N, K, T>& f, const T* p, unsigned stride, layout_t layout) {          \
    layout == mem_row_major ? gm_load_row(f, p, stride) : gm_load_col(f, p, stride);               \
  }                                                                                                \
  GM_DEVICE void store_matrix_sync(                                                                \
    T* p, const fragment<accumulator, M, N, K, T>& f, unsigned stride, layout_t layout) {          \
    layout == mem_row_major ? gm_store_row(p, f, stride) : gm_store_col(p, f, stride);             \
  }

// d = a b + c. `KIND` is what follows the shape in the instruction.
#define GM_PRODUCT_BY_LAYOUT(                                                                      \
  M, N, K, T, LA, A, LB, B, KIND, WF, CF, NA, NB, TD, WD, CD, ND, TC, WC, CC, NC)                  \
  GM_DEVICE void mma_sync(fragment<accumulator, M, N, K, TD>& d,                                   \
    const fragment<matrix_a, M, N, K, T, LA>& fa, const fragment<matrix_b, M, N, K, T, LB>& fb,    \
    const fragment<accumulator, M, N, K, TC>& fc) {                                                \
    WF a[NA], b[NB];                                                                               \
    WC c[NC];                                                                                      \
    WD r[ND];                                                                                      \
    __builtin_memcpy(a, fa.x, sizeof(a));                                                          \
    __builtin_memcpy(b, fb.x, sizeof(b));                                                          \
    __builtin_memcpy(c, fc.x, sizeof(c));                                                          \
    asm volatile("wmma.mma.sync.aligned." A "." B ".m" #M "n" #N "k" #K "." KIND " " GM_LIST_##ND( \
      r) ", " GM_LIST_##NA(a) ", " GM_LIST_##NB(b) ", " GM_LIST_##NC(c) ";"                        \
                 : GM_ARGUMENTS_##ND(r, "=" CD)                                                    \
                 : GM_ARGUMENTS_##NA(a, CF), GM_ARGUMENTS_##NB(b, CF), GM_ARGUMENTS_##NC(c, CC));  \
    __builtin_memcpy(d.x, r, sizeof(r));                                                           \
  }
#define GM_PRODUCT(M, N, K, T, KIND, WF, CF, NA, NB, TD, WD, CD, ND, TC, WC, CC, NC)               \
  GM_PRODUCT_BY_LAYOUT(M, N, K, T, row_major, "row", row_major, "row", KIND, WF, CF, NA, NB, TD,   \
    WD, CD, ND, TC, WC, CC, NC)                                                                    \
  GM_PRODUCT_BY_LAYOUT(M, N, K, T, row_major, "row", col_major, "col", KIND, WF, CF, NA, NB, TD,   \
    WD, CD, ND, TC, WC, CC, NC)                                                                    \
  GM_PRODUCT_BY_LAYOUT(M, N, K, T, col_major, "col", row_major, "row", KIND, WF, CF, NA, NB, TD,   \
    WD, CD, ND, TC, WC, CC, NC)                                                                    \
  GM_PRODUCT_BY_LAYOUT(M, N, K, T, col_major, "col", col_major, "col", KIND, WF, CF, NA, NB, TD,   \
    WD, CD, ND, TC, WC, CC, NC)

// Halves, with sums in half or float.
#define GM_HALF_SHAPE(M, N, K)                                                                     \
  GM_FACTOR(matrix_a, "a", M, N, K, __half, __half, "f16", __half, 16, 8)                          \
  GM_FACTOR(matrix_b, "b", M, N, K, __half, __half, "f16", __half, 16, 8)                          \
  GM_SUM(M, N, K, __half, "f16", 8, unsigned, "r", 4)                                              \
  GM_SUM(M, N, K, float, "f32", 8, float, "f", 8)                                                  \
  GM_PRODUCT(                                                                                      \
    M, N, K, __half, "f32.f32", unsigned, "r", 8, 8, float, float, "f", 8, float, float, "f", 8)   \
  GM_PRODUCT(M, N, K, __half, "f16.f16", unsigned, "r", 8, 8, __half, unsigned, "r", 4, __half,    \
    unsigned, "r", 4)                                                                              \
  GM_PRODUCT(M, N, K, __half, "f32.f16", unsigned, "r", 8, 8, float, float, "f", 8, __half,        \
    unsigned, "r", 4)                                                                              \
  GM_PRODUCT(M, N, K, __half, "f16.f32", unsigned, "r", 8, 8, __half, unsigned, "r", 4, float,     \
    float, "f", 8)
GM_HALF_SHAPE(16, 16, 16)
GM_HALF_SHAPE(32, 8, 16)
GM_HALF_SHAPE(8, 32, 16)

// bfloat16 and bytes: the counts of elements and words of a and b.
#define GM_BFLOAT_SHAPE(M, N, K, CA, NA, CB, NB)                                                   \
  GM_FACTOR(matrix_a, "a", M, N, K, __nv_bfloat16, __nv_bfloat16, "bf16", __nv_bfloat16, CA, NA)   \
  GM_FACTOR(matrix_b, "b", M, N, K, __nv_bfloat16, __nv_bfloat16, "bf16", __nv_bfloat16, CB, NB)   \
  GM_PRODUCT(M, N, K, __nv_bfloat16, "f32.bf16.bf16.f32", unsigned, "r", NA, NB, float, float,     \
    "f", 8, float, float, "f", 8)
GM_BFLOAT_SHAPE(16, 16, 16, 8, 4, 8, 4)
GM_BFLOAT_SHAPE(32, 8, 16, 16, 8, 4, 2)
GM_BFLOAT_SHAPE(8, 32, 16, 4, 2, 16, 8)
#define GM_BYTE_SHAPE(M, N, K, T, PTX, CA, NA, CB, NB)                                             \
  GM_FACTOR(matrix_a, "a", M, N, K, T, T, PTX, T, CA, NA)                                          \
  GM_FACTOR(matrix_b, "b", M, N, K, T, T, PTX, T, CB, NB)                                          \
  GM_PRODUCT(M, N, K, T, "s32." PTX "." PTX ".s32", unsigned, "r", NA, NB, int, unsigned, "r", 8,  \
    int, unsigned, "r", 8)
#define GM_BYTE_SHAPES(M, N, K, CA, NA, CB, NB)                                                    \
  GM_SUM(M, N, K, int, "s32", 8, unsigned, "r", 8)                                                 \
  GM_BYTE_SHAPE(M, N, K, signed char, "s8", CA, NA, CB, NB)                                        \
  GM_BYTE_SHAPE(M, N, K, unsigned char, "u8", CA, NA, CB, NB)
GM_BYTE_SHAPES(16, 16, 16, 8, 2, 8, 2)
GM_BYTE_SHAPES(32, 8, 16, 16, 4, 4, 1)
GM_BYTE_SHAPES(8, 32, 16, 4, 1, 16, 4)

// tf32: floats of which the tensor cores read 19 bits. Round them with __float_to_tf32.
GM_FACTOR(matrix_a, "a", 16, 16, 8, precision::tf32, float, "tf32", float, 4, 4)
GM_FACTOR(matrix_b, "b", 16, 16, 8, precision::tf32, float, "tf32", float, 4, 4)
GM_SUM(16, 16, 8, float, "f32", 8, float, "f", 8)
GM_PRODUCT(16, 16, 8, precision::tf32, "f32.tf32.tf32.f32", unsigned, "r", 4, 4, float, float, "f",
  8, float, float, "f", 8)
GM_DEVICE float __float_to_tf32(float v) {
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
  return __builtin_bit_cast(float, r);
}

// Doubles.
#define GM_DOUBLE_FACTOR(USE, LETTER, LAYOUT, L)                                                   \
  GM_FRAGMENT(USE, 8, 8, 4, double, LAYOUT, double, 1)                                             \
  GM_DEVICE void load_matrix_sync(                                                                 \
    fragment<USE, 8, 8, 4, double, LAYOUT>& f, const double* p, unsigned stride) {                 \
    asm volatile("wmma.load." LETTER ".sync.aligned." L ".m8n8k4.f64 {%0}, [%1], %2;"              \
                 : "=d"(f.x[0])                                                                    \
                 : "l"(p), "r"(stride)                                                             \
                 : "memory");                                                                      \
  }
GM_DOUBLE_FACTOR(matrix_a, "a", row_major, "row")
GM_DOUBLE_FACTOR(matrix_a, "a", col_major, "col")
GM_DOUBLE_FACTOR(matrix_b, "b", row_major, "row")
GM_DOUBLE_FACTOR(matrix_b, "b", col_major, "col")
GM_SUM(8, 8, 4, double, "f64", 2, double, "d", 2)
GM_PRODUCT(8, 8, 4, double, "f64.f64.f64.f64", double, "d", 1, 1, double, double, "d", 2, double,
  double, "d", 2)

template <class Use, int m, int n, int k, class T, class Layout, class V>
GM_DEVICE void fill_fragment(fragment<Use, m, n, k, T, Layout>& f, V v) {
  _Pragma("unroll") for (int i = 0; i < f.num_elements; ++i) f.x[i] =
    static_cast<typename fragment<Use, m, n, k, T, Layout>::element_type>(v);
}

} // namespace wmma
} // namespace nvcuda
#undef GM_LIST_1
#undef GM_LIST_2
#undef GM_LIST_4
#undef GM_LIST_8
#undef GM_ARGUMENTS_1
#undef GM_ARGUMENTS_2
#undef GM_ARGUMENTS_4
#undef GM_ARGUMENTS_8
#undef GM_FRAGMENT
#undef GM_LOAD
#undef GM_FACTOR_BY_LAYOUT
#undef GM_FACTOR
#undef GM_SUM_MOVE
#undef GM_SUM
#undef GM_PRODUCT_BY_LAYOUT
#undef GM_PRODUCT
#undef GM_HALF_SHAPE
#undef GM_BFLOAT_SHAPE
#undef GM_BYTE_SHAPE
#undef GM_BYTE_SHAPES
#undef GM_DOUBLE_FACTOR
