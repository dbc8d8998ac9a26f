#include "gpu/toolchain/line_info.hpp"

#include <algorithm>
#include <set>

namespace gristmill {

namespace {

/// Calls `f(line)` for each line, without its end.
template <class F>
void each_line(std::string_view text, F&& f) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    f(text.substr(start, end - start));
    start = end + 1;
  }
}

/// "!12" at the beginning of a definition of metadata; empty for other lines.
std::string_view node_name(std::string_view line) {
  return line.starts_with("!") ? line.substr(0, line.find(' ')) : std::string_view();
}

/// "!1" behind "file: ".
std::string_view file_of(std::string_view line) {
  constexpr std::string_view marker = " file: ";
  const size_t at = line.find(marker);
  if (at == std::string_view::npos)
    return {};
  const std::string_view rest = line.substr(at + marker.size());
  return rest.substr(0, rest.find_first_of(",)"));
}

constexpr std::string_view attachment = " !dbg ";

/// The node that is attached; empty when there is none.
std::string_view attached(std::string_view line) {
  const size_t at = line.rfind(attachment);
  if (at == std::string_view::npos)
    return {};
  const std::string_view rest = line.substr(at + attachment.size());
  return rest.substr(0, rest.find_first_of(" ,{"));
}

/// The line without what is attached, and without the comma in front of it.
void append_without(std::string& out, std::string_view line) {
  size_t at = line.rfind(attachment);
  const size_t end = at + attachment.size() + attached(line).size();
  if (at > 0 && line[at - 1] == ',')
    --at;
  out += line.substr(0, at);
  out += line.substr(end);
}

} // namespace

std::string keep_lines_of(std::string_view ir, std::string_view file_name) {
  std::set<std::string_view> files;
  each_line(ir, [&](std::string_view line) {
    const size_t at = line.find("!DIFile(filename: \"");
    if (at == std::string_view::npos)
      return;
    std::string_view name = line.substr(at + std::string_view("!DIFile(filename: \"").size());
    name = name.substr(0, name.find('"'));
    if (name == file_name || name.ends_with("/" + std::string(file_name)))
      files.insert(node_name(line));
  });
  std::set<std::string_view> kept;
  each_line(ir, [&](std::string_view line) {
    if (line.find("!DISubprogram(") != std::string_view::npos && files.count(file_of(line)) != 0)
      kept.insert(node_name(line));
  });
  std::string out;
  out.reserve(ir.size());
  bool strips = false;
  each_line(ir, [&](std::string_view line) {
    if (line.starts_with("define "))
      strips = !attached(line).empty() && kept.count(attached(line)) == 0;
    // Nothing but functions has places, and no string constant is in one.
    if (strips && !attached(line).empty() && !line.starts_with("!") && !line.starts_with("@"))
      append_without(out, line);
    else
      out += line;
    out += '\n';
    if (line.starts_with("}"))
      strips = false;
  });
  return out;
}

} // namespace gristmill
