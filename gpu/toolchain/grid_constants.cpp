#include "gpu/toolchain/grid_constants.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <vector>

namespace gristmill {

namespace {

/// A name such as "%12", "@.str.4" or "@\"odd name\"" at `at`, with its first letter.
std::string_view name_at(std::string_view text, size_t at) {
  if (at + 1 < text.size() && text[at + 1] == '"') {
    const size_t end = text.find('"', at + 2);
    return end == std::string_view::npos ? std::string_view() : text.substr(at, end + 1 - at);
  }
  const size_t end = std::min(text.find_first_of(" ,()={", at), text.size());
  return text.substr(at, end - at);
}

/// The parameters of a definition that are passed by value, by name: their number, from 1.
std::map<std::string_view, size_t> by_value(std::string_view define) {
  std::map<std::string_view, size_t> found;
  const size_t function = define.find('@');
  if (function == std::string_view::npos)
    return found;
  size_t at = define.find('(', function + name_at(define, function).size());
  if (at == std::string_view::npos)
    return found;
  size_t number = 1;
  size_t depth = 0;
  size_t start = at + 1;
  for (; at < define.size(); ++at) {
    const char c = define[at];
    // A name may hold anything: `%"struct.a, (b)"`.
    if (c == '"') {
      at = std::min(define.find('"', at + 1), define.size() - 1);
      continue;
    }
    depth += c == '(' ? 1 : 0;
    if ((c == ',' && depth == 1) || (c == ')' && depth == 1)) {
      const std::string_view one = define.substr(start, at - start);
      const size_t name = one.rfind(" %");
      if (one.find(" byval(") != std::string_view::npos && name != std::string_view::npos)
        found[name_at(one, name + 1)] = number;
      ++number;
      start = at + 1;
    }
    depth -= c == ')' ? 1 : 0;
    if (depth == 0)
      break;
  }
  return found;
}

class rewriter {
public:
  std::string run(std::string_view ir) {
    out_.reserve(ir.size() + 256);
    for (size_t start = 0; start < ir.size();) {
      const size_t end = std::min(ir.find('\n', start), ir.size());
      line(ir.substr(start, end - start));
      start = end + 1;
    }
    if (constants_.empty())
      return std::move(out_);
    append_metadata();
    return std::move(out_);
  }

private:
  void line(std::string_view text) {
    if (text.starts_with("@") && text.ends_with(", section \"llvm.metadata\"")
      && text.find(" c\"" + std::string(grid_constant_mark) + "\\00\"") != std::string_view::npos)
      marks_.insert(name_at(text, 0));
    else if (text.starts_with("define "))
      enter(text);
    else if (note(text))
      return;
    else if (text.starts_with("!"))
      metadata(text);
    out_ += text;
    out_ += '\n';
  }

  void enter(std::string_view text) {
    const size_t at = text.find('@');
    function_ = at == std::string_view::npos ? std::string_view() : name_at(text, at);
    by_value_ = by_value(text);
  }

  /// `call void @llvm.var.annotation.p0.p0(ptr %1, ptr @.str, ptr @.str1, i32 8, ptr null)`: one of
  /// ours, which is left out.
  bool note(std::string_view text) {
    constexpr std::string_view call = "  call void @llvm.var.annotation.p0.p0(ptr ";
    if (!text.starts_with(call))
      return false;
    const std::string_view name = name_at(text, call.size());
    const size_t mark = call.size() + name.size() + std::string_view(", ptr ").size();
    if (mark >= text.size() || marks_.count(name_at(text, mark)) == 0)
      return false;
    if (const auto found = by_value_.find(name); found != by_value_.end())
      constants_[function_].insert(found->second);
    return true;
  }

  void metadata(std::string_view text) {
    uint64_t number = 0;
    if (std::from_chars(text.data() + 1, text.data() + text.size(), number).ec == std::errc())
      next_ = std::max(next_, number + 1);
    if (text.starts_with("!nvvm.annotations = !{"))
      annotations_ = out_.size() + text.size() - 1;
  }

  /// `!7 = !{ptr @k, !"grid_constant", !8}` and `!8 = !{i32 1, i32 3}`.
  void append_metadata() {
    std::string nodes;
    for (const auto& [function, numbers] : constants_) {
      std::string list;
      for (const size_t n : numbers)
        list += (list.empty() ? "i32 " : ", i32 ") + std::to_string(n);
      const std::string node = "!" + std::to_string(next_++);
      const std::string values = "!" + std::to_string(next_++);
      out_ +=
        node + " = !{ptr " + std::string(function) + ", !\"grid_constant\", " + values + "}\n";
      out_ += values + " = !{" + list + "}\n";
      nodes += (nodes.empty() ? "" : ", ") + node;
    }
    if (annotations_ == 0)
      out_ += "!nvvm.annotations = !{" + nodes + "}\n";
    else
      out_.insert(annotations_, (out_[annotations_ - 1] == '{' ? "" : ", ") + nodes);
  }

  std::string out_;
  std::set<std::string_view> marks_;
  std::string_view function_;
  std::map<std::string_view, size_t> by_value_;
  /// By function.
  std::map<std::string_view, std::set<size_t>> constants_;
  uint64_t next_ = 0;
  /// In `out_`: the closing brace of the list of annotations.
  size_t annotations_ = 0;
};

} // namespace

std::string use_grid_constants(std::string_view ir) {
  return rewriter().run(ir);
}

} // namespace gristmill
