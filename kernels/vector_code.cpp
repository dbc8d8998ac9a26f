#include "kernels/vector_code.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

namespace gristmill {

std::string vector_code(bool streaming) {
  constexpr std::string_view words = R"(template <int BYTES> struct word_of;
template <> struct word_of<1> { using type = unsigned char; };
template <> struct word_of<2> { using type = unsigned short; };
template <> struct word_of<4> { using type = unsigned int; };
template <> struct word_of<8> { using type = uint2; };
template <> struct word_of<16> { using type = uint4; };

// N neighbouring elements, moved in the widest words that memory takes.
template <class T, int N>
struct packed {
  static constexpr int bytes = N * static_cast<int>(sizeof(T));
  static constexpr int word_bytes = bytes < 16 ? bytes : 16;
  using word = typename word_of<word_bytes>::type;

  union {
    word words[bytes / word_bytes];
    T values[N];
  };

  __device__ __forceinline__ packed() {}
)";
  std::string text{words};
  const auto add = [&](std::string_view head, std::string_view statement) {
    text += "\n  __device__ __forceinline__ void ";
    text += head;
    text += " {\n#pragma unroll\n    for (int i = 0; i < bytes / word_bytes; ++i)\n      ";
    text += statement;
    text += ";\n  }\n";
  };
  add("load(const T* from)", "words[i] = reinterpret_cast<const word*>(from)[i]");
  add("store(T* to) const", "reinterpret_cast<word*>(to)[i] = words[i]");
  if (streaming) {
    add("load_once(const T* from)", "words[i] = __ldcs(reinterpret_cast<const word*>(from) + i)");
    add("store_once(T* to) const", "__stcs(reinterpret_cast<word*>(to) + i, words[i])");
  }
  return text + "};\n";
}

std::string_view reduction_operators() {
  return R"(struct add_op {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct max_op {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct min_op {
  __device__ __forceinline__ float operator()(float a, float b) const { return fminf(a, b); }
};
)";
}

std::string_view row_reduction_code() {
  return R"(// Combines one value of each thread of a row; all of them get the result. `partial` has a place for
// each warp and is used by one reduction only, so that no barrier is needed behind it.
template <class Op>
__device__ __forceinline__ float reduce_row(float value, Op combine, float* partial) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  if (row_threads > 32) {
    constexpr int warps = row_threads / 32;
    if (threadIdx.x % 32 == 0)
      partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[threadIdx.x % warps];
#pragma unroll
    for (int distance = warps / 2; distance > 0; distance /= 2)
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// Combines what a thread has gathered for its vector's places.
template <class Op, int N>
__device__ __forceinline__ float reduce_places(const float (&places)[N], Op combine) {
  float value = places[0];
#pragma unroll
  for (int i = 1; i < N; ++i)
    value = combine(value, places[i]);
  return value;
}
)";
}

std::string rounding_code(const std::vector<ir_output>& outputs) {
  const auto has = [&](dtype type) {
    return std::any_of(
      outputs.begin(), outputs.end(), [&](const ir_output& output) { return output.type == type; });
  };
  std::string text = R"(template <class T, class F, int N>
__device__ __forceinline__ void round_into(packed<T, N>& to, const F (&from)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    to.values[i] = T(from[i]);
}
)";
  const auto add = [&](std::string_view type, std::string_view round, std::string_view pair) {
    text += fmt::format(R"(template <int N>
__device__ __forceinline__ void round_into(packed<{0}, N>& to, const float (&from)[N]) {{
#pragma unroll
  for (int i = 0; i + 1 < N; i += 2) {{
    const auto two = {2}(from[i], from[i + 1]);
    to.values[i] = two.x;
    to.values[i + 1] = two.y;
  }}
  if (N % 2 == 1)
    to.values[N - 1] = {1}(from[N - 1]);
}}
)",
      type, round, pair);
  };
  if (has(dtype::bfloat16))
    add("__nv_bfloat16", "__float2bfloat16_rn", "__floats2bfloat162_rn");
  if (has(dtype::float16))
    add("__half", "__float2half_rn", "__floats2half2_rn");
  return text;
}

std::string indented(const std::string& text, int spaces) {
  const std::string margin(static_cast<size_t>(spaces), ' ');
  std::string moved;
  bool is_line_start = true;
  for (char c : text) {
    // Lines of the preprocessor stay where they are.
    if (is_line_start && c != '\n' && c != '#')
      moved += margin;
    is_line_start = c == '\n';
    moved += c;
  }
  return moved;
}

} // namespace gristmill
