#include "gpu/toolchain/signature.hpp"

#include <fmt/format.h>

#include <array>

namespace gristmill {

namespace {

// The numbers of `gm_signature::gm_code` in the device header.
struct scalar_type {
  int code;
  /// Spellings in `entry_use::parameter_abi`.
  std::array<std::string_view, 3> cpp;
  /// As plans write it.
  std::string_view plan;
  /// As kernels write it.
  std::string_view kernel;
  uint32_t bytes;
};
constexpr scalar_type scalars[] = {
  {1, {"bool"}, "b8", "bool", 1},
  {2, {"int8_t", "signed char"}, "i8", "signed char", 1},
  {3, {"uint8_t", "unsigned char"}, "u8", "unsigned char", 1},
  {4, {"int16_t", "short"}, "i16", "short", 2},
  {5, {"uint16_t", "unsigned short"}, "u16", "unsigned short", 2},
  {6, {"int32_t", "int"}, "i32", "int", 4},
  {7, {"uint32_t", "unsigned", "unsigned int"}, "u32", "unsigned int", 4},
  {8, {"int64_t", "long", "long long"}, "i64", "long long", 8},
  {9, {"uint64_t", "unsigned long", "unsigned long long"}, "u64", "unsigned long long", 8},
  {10, {"__half", "half"}, "f16", "__half", 2},
  {11, {"__nv_bfloat16", "nv_bfloat16"}, "bf16", "__nv_bfloat16", 2},
  {12, {"float"}, "f32", "float", 4},
  {13, {"double"}, "f64", "double", 8},
};
constexpr int other_code = 0, pointer_code = 14, const_pointer_code = 15;
constexpr int count_max = 128;

const scalar_type* find_scalar(std::string_view cpp_type) {
  for (const scalar_type& type : scalars)
    for (const std::string_view name : type.cpp)
      if (!name.empty() && name == cpp_type)
        return &type;
  return nullptr;
}

bool is_pointer(std::string_view cpp_type) {
  return cpp_type.ends_with('*');
}

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126 ? '?' : c;
  }
  return out + '"';
}

/// Maps of "tensor_map" and "tensor_map[3]"; 0 for another type.
uint32_t maps_in(std::string_view cpp_type) {
  constexpr std::string_view word = "tensor_map";
  if (!cpp_type.starts_with(word))
    return 0;
  cpp_type.remove_prefix(word.size());
  if (cpp_type.empty())
    return 1;
  uint32_t count = 0;
  if (cpp_type.size() < 3 || cpp_type.size() > 5 || cpp_type.front() != '['
    || cpp_type.back() != ']')
    return 0;
  for (const char c : cpp_type.substr(1, cpp_type.size() - 2)) {
    if (c < '0' || c > '9')
      return 0;
    count = count * 10 + static_cast<uint32_t>(c - '0');
  }
  return count;
}

class writer {
public:
  writer(std::string& out, size_t index, const entry_use& entry)
    : out_(out), index_(index), entry_(entry) {}

  void write(bool with_variable) {
    // The line number says which entry a message is about.
    if (with_variable)
      line(fmt::format("extern \"C\" {{ __device__ auto* {} = &{}; }}", entry_variable(index_),
        entry_.expression));
    signature_ = fmt::format("gm_signature::gm_of<decltype(&{})>", entry_.expression);
    check_count();
    for (size_t i = 0; i < entry_.parameter_abi.size(); ++i)
      check_parameter(i);
  }

private:
  void line(std::string_view text) {
    out_ += fmt::format("#line {} \"{}\"\n{}\n", (index_ + 1) * 1000, epilogue_file, text);
  }

  void assert_not(const std::string& value, int refused, const std::string& message) {
    line(fmt::format("static_assert({} != {}, {});", value, refused, literal(message)));
  }

  void check_count() {
    const int passed = static_cast<int>(entry_.parameter_abi.size());
    std::string names;
    for (const std::string& name : entry_.argument_names)
      names += (names.empty() ? "" : ", ") + name;
    const std::string head =
      fmt::format("entry '{}': the launch plan passes {} argument{}{}{}{}", entry_.expression,
        passed, passed == 1 ? "" : "s", passed == 0 ? "" : " (", names, passed == 0 ? "" : ")");
    const std::string count = signature_ + "::gm_count";
    assert_not(
      count, -1, fmt::format("entry '{}' is not a kernel: it must return void", entry_.expression));
    for (int taken = 0; taken <= count_max; ++taken)
      if (taken != passed)
        assert_not(count, taken, fmt::format("{}, the kernel takes {}", head, taken));
    line(fmt::format("static_assert({} <= {}, {});", count, count_max,
      literal(fmt::format("{}, the kernel takes more than {}", head, count_max))));
  }

  void check_parameter(size_t i) {
    const std::string& abi = entry_.parameter_abi[i];
    const bool pointer = is_pointer(abi);
    const scalar_type* expected = find_scalar(abi);
    const std::string code =
      fmt::format("gm_signature::gm_code<{}::gm_parameter<{}>>::gm_value", signature_, i);
    const std::string passes = pointer
      ? entry_.parameter_const[i] ? "a read-only pointer" : "a pointer"
      : expected != nullptr ? std::string(expected->plan)
      : maps_in(abi) != 0   ? "a tensor map"
                            : abi;
    const std::string head =
      fmt::format("argument {} '{}' of entry '{}': the launch plan passes {}", i + 1,
        entry_.argument_names[i], entry_.expression, passes);
    for (const scalar_type& type : scalars)
      if (expected != &type)
        assert_not(code, type.code, fmt::format("{}, the kernel takes {}", head, type.kernel));
    if (maps_in(abi) == 0)
      assert_not(
        code, other_code, fmt::format("{}, the kernel takes a type that no argument has", head));
    if (!pointer) {
      for (const int taken : {pointer_code, const_pointer_code})
        assert_not(code, taken, fmt::format("{}, the kernel takes a pointer", head));
    } else if (entry_.parameter_const[i]) {
      assert_not(code, pointer_code,
        fmt::format("{}, the kernel takes one that it could write through; inputs are not written, "
                    "so the parameter must be a pointer to const",
          head));
    }
  }

  std::string& out_;
  size_t index_;
  const entry_use& entry_;
  std::string signature_;
};

// A candidate may define macros; one that bears the name of a word used below would change what is
// checked.
constexpr std::string_view words[] = {"extern", "__device__", "auto", "decltype", "static_assert",
  "__attribute__", "device", "gm_signature", "gm_of", "gm_code", "gm_count", "gm_parameter",
  "gm_value"};

} // namespace

std::string entry_variable(size_t index) {
  return fmt::format("gristmill_entry_{}", index);
}

std::optional<size_t> entry_of_line(int line) {
  if (line < 1000)
    return std::nullopt;
  return static_cast<size_t>(line / 1000 - 1);
}

std::string signature_epilogue(const compile_unit& unit, bool with_variables) {
  std::string out = fmt::format("\n#line 1 \"{}\"\n", epilogue_file);
  for (const std::string_view word : words)
    out += fmt::format("#undef {}\n", word);
  if (with_variables)
    out += "#define __device__ __attribute__((device))\n";
  for (size_t i = 0; i < unit.entries.size(); ++i)
    writer(out, i, unit.entries[i]).write(with_variables);
  return out;
}

std::optional<uint32_t> parameter_bytes(std::string_view cpp_type) {
  if (is_pointer(cpp_type))
    return 8;
  if (const scalar_type* type = find_scalar(cpp_type))
    return type->bytes;
  if (const uint32_t maps = maps_in(cpp_type); maps != 0)
    return maps * static_cast<uint32_t>(tensor_map_bytes);
  return std::nullopt;
}

} // namespace gristmill
