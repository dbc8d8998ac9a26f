#include "gpu/toolchain/device_ir.hpp"

#include <fmt/format.h>

#include <charconv>

namespace gristmill {

namespace {

/// The symbol behind an '@' at `at`: plain, or in quotes. Empty when there is none.
std::string symbol_at(std::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '@')
    return {};
  ++at;
  if (at < text.size() && text[at] == '"') {
    const size_t end = text.find('"', at + 1);
    return end == std::string_view::npos ? std::string()
                                         : std::string(text.substr(at + 1, end - at - 1));
  }
  const size_t end = text.find_first_of(" ,()=\t", at);
  return std::string(text.substr(at, end == std::string_view::npos ? end : end - at));
}

constexpr std::string_view entry_prefix = "gristmill_entry_";

/// The kernel that `@gristmill_entry_N = … global ptr @kernel, align 8` is set to.
std::string initial_function(std::string_view line) {
  const std::string_view marker = " global ptr @";
  const size_t at = line.find(marker);
  return at == std::string_view::npos ? std::string() : symbol_at(line, at + marker.size() - 1);
}

} // namespace

result<device_ir> read_device_ir(std::string_view text) {
  device_ir ir;
  ir.text.reserve(text.size());
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;

    if (line.starts_with("@")) {
      const std::string name = symbol_at(line, 0);
      if (name.starts_with(entry_prefix)) {
        size_t index = 0;
        const char* last = name.data() + name.size();
        const auto read = std::from_chars(name.data() + entry_prefix.size(), last, index);
        const std::string kernel = initial_function(line);
        if (read.ec != std::errc() || read.ptr != last || kernel.empty())
          return fail(errc::invalid_input,
            fmt::format("the variable '{}' belongs to us and must not be used", name));
        ir.entries[index] = kernel;
        continue;
      }
      // Address space 1 is global memory; string literals are constants without one.
      if (line.find(" addrspace(1) ") != std::string_view::npos
        && line.find(" constant ") == std::string_view::npos
        && line.find(" external ") == std::string_view::npos && !name.starts_with("llvm."))
        ir.writable_globals.push_back(name);
    } else if (line.starts_with("module asm")) {
      ir.has_module_assembly = true;
    } else if (line.starts_with("declare ")) {
      const std::string name = symbol_at(line, line.find('@'));
      if (!name.empty() && !name.starts_with("llvm."))
        ir.external_functions.push_back(name);
    } else if (line.starts_with("define ") && line.find(" ptx_kernel ") != std::string_view::npos) {
      ir.kernels.insert(symbol_at(line, line.find('@')));
    } else if (line.starts_with("!") && line.ends_with(", !\"kernel\", i32 1}")) {
      const std::string_view marker = " = !{ptr @";
      if (const size_t at = line.find(marker); at != std::string_view::npos)
        ir.kernels.insert(symbol_at(line, at + marker.size() - 1));
    }
    ir.text.append(line);
    ir.text += '\n';
  }
  return ir;
}

} // namespace gristmill
