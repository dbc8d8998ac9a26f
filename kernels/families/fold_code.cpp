#include "kernels/families/fold_code.hpp"

#include <cctype>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::string_view operators_text = R"(
struct add_op {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
struct times_op {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const { return a * b; }
};
struct max_op {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
  __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const {
    return a > b ? a : b;
  }
};
struct min_op {
  __device__ __forceinline__ float operator()(float a, float b) const { return fminf(a, b); }
  __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const {
    return a < b ? a : b;
  }
};
)";

constexpr std::string_view place_text = R"(
// A value and where it stands; the first of equal ones counts, and anything that is no number does.
struct placed {
  float value;
  int64_t place;
};
struct later_max_op {
  __device__ __forceinline__ placed operator()(placed a, placed b) const {
    const bool b_wins = b.value > a.value || (b.value == a.value && b.place < a.place)
      || (b.value != b.value && (a.value == a.value || b.place < a.place));
    const bool a_is_nan = a.value != a.value && b.value == b.value;
    return b_wins && !a_is_nan ? b : a;
  }
};
struct later_min_op {
  __device__ __forceinline__ placed operator()(placed a, placed b) const {
    const bool b_wins = b.value < a.value || (b.value == a.value && b.place < a.place)
      || (b.value != b.value && (a.value == a.value || b.place < a.place));
    const bool a_is_nan = a.value != a.value && b.value == b.value;
    return b_wins && !a_is_nan ? b : a;
  }
};
__device__ __forceinline__ placed shuffled(placed x, int distance) {
  return {__shfl_xor_sync(0xffffffffu, x.value, distance),
    int64_t(__shfl_xor_sync(0xffffffffu, (unsigned long long)(x.place), distance))};
}
)";

constexpr std::string_view row_text = R"(
__device__ __forceinline__ float shuffled(float x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}
__device__ __forceinline__ int64_t shuffled(int64_t x, int distance) {
  return int64_t(__shfl_xor_sync(0xffffffffu, (unsigned long long)(x), distance));
}

// Combines one value of each thread of a row; all of them get the result.
template <class T, class Op>
__device__ __forceinline__ T over_row(T value, Op combine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, shuffled(value, distance));
  if (row_threads > 32) {
    constexpr int warps = row_threads / 32;
    __shared__ T partial[warps];
    __syncthreads(); // An earlier reduction may still be read.
    if (threadIdx.x % 32 == 0)
      partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[threadIdx.x % warps];
#pragma unroll
    for (int distance = warps / 2; distance > 0; distance /= 2)
      value = combine(value, shuffled(value, distance));
  }
  return value;
}
)";

constexpr std::string_view column_text = R"(
// Combines the values of the threads that stand in one column of the block; all get the result.
template <class T, class Op>
__device__ __forceinline__ T over_row(T value, Op combine) {
  __shared__ T partial[row_threads][columns];
  __syncthreads(); // An earlier reduction may still be read.
  partial[threadIdx.x / columns][threadIdx.x % columns] = value;
  __syncthreads();
  value = partial[0][threadIdx.x % columns];
  for (int i = 1; i < row_threads; ++i)
    value = combine(value, partial[i][threadIdx.x % columns]);
  return value;
}
)";

} // namespace

std::string combined(
  combine_kind kind, bool is_integer, const std::string& a, const std::string& b) {
  switch (kind) {
  case combine_kind::sum:
    return fmt::format("{} + {}", a, b);
  case combine_kind::product:
    return fmt::format("{} * {}", a, b);
  default:
    break;
  }
  const bool is_max = kind == combine_kind::maximum;
  return is_integer ? fmt::format("{0} {2} {1} ? {0} : {1}", a, b, is_max ? ">" : "<")
                    : fmt::format("{}({}, {})", is_max ? "fmaxf" : "fminf", a, b);
}

std::string neutral(combine_kind kind, bool is_integer) {
  switch (kind) {
  case combine_kind::sum:
    return is_integer ? "int64_t(0)" : "0.0f";
  case combine_kind::product:
    return is_integer ? "int64_t(1)" : "1.0f";
  case combine_kind::maximum:
    return is_integer ? "int64_t(-9223372036854775807LL - 1)" : "-INFINITY";
  case combine_kind::minimum:
    return is_integer ? "int64_t(9223372036854775807LL)" : "INFINITY";
  default:
    return "0.0f";
  }
}

std::string_view functor(combine_kind kind) {
  switch (kind) {
  case combine_kind::sum:
    return "add_op{}";
  case combine_kind::product:
    return "times_op{}";
  case combine_kind::maximum:
    return "max_op{}";
  case combine_kind::minimum:
    return "min_op{}";
  case combine_kind::place_of_maximum:
    return "later_max_op{}";
  case combine_kind::place_of_minimum:
    return "later_min_op{}";
  }
  return {};
}

bool is_place(combine_kind kind) {
  return kind == combine_kind::place_of_maximum || kind == combine_kind::place_of_minimum;
}

/// Whether a text depends on the element of the row.
bool mentions_place(const std::string& text) {
  constexpr std::string_view word = "place";
  const auto is_part = [&](size_t at) {
    const char c = text[at];
    return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_part(at - 1)) && (end == text.size() || !is_part(end)))
      return true;
  }
  return false;
}

std::string_view fold_operators_code() {
  return operators_text;
}

std::string_view fold_place_code() {
  return place_text;
}

std::string_view fold_threads_code(bool is_by_row) {
  return is_by_row ? row_text : column_text;
}

} // namespace gristmill
