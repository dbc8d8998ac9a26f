#include "kernels/vector_code.hpp"

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
