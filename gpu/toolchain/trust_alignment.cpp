#include "gpu/toolchain/trust_alignment.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace gristmill {

namespace {

struct natural {
  std::string_view type;
  uint64_t bytes;
};
constexpr natural scalars[] = {
  {"i16", 2}, {"half", 2}, {"i32", 4}, {"float", 4}, {"i64", 8}, {"double", 8}, {"ptr", 8}};
// The vector types of the device header that are aligned to more than their members.
constexpr natural vectors[] = {{"char2", 2}, {"char4", 4}, {"uchar2", 2}, {"uchar4", 4},
  {"short2", 4}, {"short4", 8}, {"ushort2", 4}, {"ushort4", 8}, {"int2", 8}, {"int4", 16},
  {"uint2", 8}, {"uint4", 16}, {"long2", 16}, {"long4", 16}, {"ulong2", 16}, {"ulong4", 16},
  {"longlong2", 16}, {"longlong4", 16}, {"ulonglong2", 16}, {"ulonglong4", 16}, {"float2", 8},
  {"float4", 16}, {"double2", 16}, {"double4", 16}, {"__half2", 4}, {"__nv_bfloat162", 4}};

template <size_t n>
std::optional<uint64_t> find(const natural (&table)[n], std::string_view type) {
  for (const natural& known : table)
    if (known.type == type)
      return known.bytes;
  return std::nullopt;
}

/// A decimal number at `at` and where it ends.
struct number_at {
  uint64_t value = 0;
  size_t begin = 0;
  size_t end = 0;
};

std::optional<number_at> read_number(std::string_view text, size_t at) {
  number_at found;
  found.begin = at;
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), found.value);
  if (read.ec != std::errc())
    return std::nullopt;
  found.end = static_cast<size_t>(read.ptr - text.data());
  return found;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

class rewriter {
public:
  std::string run(std::string_view ir) {
    // "<{" opens a packed structure; `<` alone is a vector.
    packed_ = ir.find("<{ ") != std::string_view::npos;
    out_.reserve(ir.size() + 64);
    for (size_t start = 0; start < ir.size();) {
      const size_t end = std::min(ir.find('\n', start), ir.size());
      line(ir.substr(start, end - start));
      out_ += '\n';
      start = end + 1;
    }
    return std::move(out_);
  }

private:
  void line(std::string_view text) {
    if (text.starts_with("define "))
      locals_.clear();
    const std::string_view code = trimmed(text);
    if (remember_local(code) || packed_
      || !(rewrite_access(text, code) || rewrite_copy(text, code)))
      out_ += text;
  }

  /// "%24 = alloca %struct.float4, align 16"
  bool remember_local(std::string_view code) {
    const std::string_view marker = " = alloca ";
    const size_t at = code.find(marker);
    if (!code.starts_with("%") || at == std::string_view::npos)
      return false;
    const std::string_view rest = code.substr(at + marker.size());
    locals_[std::string(code.substr(0, at))] = std::string(rest.substr(0, rest.find(',')));
    return true;
  }

  /// "%5 = load float, ptr %4, align 2", "store i32 %5, ptr %4, align 2"
  bool rewrite_access(std::string_view text, std::string_view code) {
    size_t type_at = 0;
    if (code.starts_with("store "))
      type_at = 6;
    else if (const size_t at = code.find(" = load "); code.starts_with("%") && at < 24)
      type_at = at + 8;
    else
      return false;
    const std::string_view type = code.substr(type_at, code.find_first_of(" ,", type_at) - type_at);
    const auto bytes = find(scalars, type);
    const std::string_view marker = ", align ";
    const size_t at = text.find(marker);
    if (!bytes || at == std::string_view::npos)
      return false;
    const auto align = read_number(text, at + marker.size());
    if (!align || align->value >= *bytes)
      return false;
    out_ += text.substr(0, align->begin);
    out_ += std::to_string(*bytes);
    out_ += text.substr(align->end);
    return true;
  }

  struct side {
    number_at align;
    std::string name;
    bool local = false;
    /// Of a local variable of a vector type.
    std::optional<uint64_t> natural;
  };

  std::optional<side> read_side(std::string_view text, size_t at) const {
    const std::string_view marker = "ptr align ";
    at = text.find(marker, at);
    if (at == std::string_view::npos)
      return std::nullopt;
    const auto align = read_number(text, at + marker.size());
    if (!align)
      return std::nullopt;
    side found{*align, {}, false, {}};
    const size_t end = std::min(text.find_first_of(",)", align->end), text.size());
    found.name = text.substr(std::min(align->end + 1, end), end - std::min(align->end + 1, end));
    if (const auto local = locals_.find(found.name); local != locals_.end()) {
      found.local = true;
      const std::string_view type = local->second, prefix = "%struct.";
      if (type.starts_with(prefix))
        found.natural = find(vectors, type.substr(prefix.size()));
    }
    return found;
  }

  /// "call void @llvm.memcpy.p0.p0.i64(ptr align 16 %24, ptr align 4 %124, i64 16, i1 false),
  /// !tbaa.struct !17"
  bool rewrite_copy(std::string_view text, std::string_view code) {
    if (!code.starts_with("call void @llvm.memcpy.")
      || code.find("!tbaa.struct") == std::string_view::npos)
      return false;
    const auto to = read_side(text, 0);
    const auto from = to ? read_side(text, to->align.end) : std::nullopt;
    if (!from)
      return false;
    const side& better = to->align.value > from->align.value ? *to : *from;
    const side& worse = to->align.value > from->align.value ? *from : *to;
    // A local variable can be aligned to more than its type.
    const uint64_t trusted =
      better.local ? better.natural.value_or(0) : std::min<uint64_t>(better.align.value, 16);
    // From memory to memory the code generator would copy words of 8 bytes.
    if (trusted >= 16 && !to->local && !from->local
      && text.find(", i64 16, i1 false)") != std::string_view::npos) {
      const std::string value = "%gm.copy." + std::to_string(copies_++);
      out_ += "  " + value + " = load <4 x i32>, ptr " + from->name
        + ", align 16\n  store <4 x i32> " + value + ", ptr " + to->name + ", align 16";
      return true;
    }
    if (trusted <= worse.align.value)
      return false;
    out_ += text.substr(0, worse.align.begin);
    out_ += std::to_string(trusted);
    out_ += text.substr(worse.align.end);
    return true;
  }

  std::string out_;
  std::map<std::string, std::string> locals_;
  size_t copies_ = 0;
  bool packed_ = false;
};

} // namespace

std::string trust_alignment(std::string_view ir) {
  return rewriter().run(ir);
}

} // namespace gristmill
