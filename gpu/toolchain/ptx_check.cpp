#include "gpu/toolchain/ptx_check.hpp"

#include "gpu/toolchain/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace gristmill {

namespace {

// What clang and device code with inline PTX have a use for. Debug sections and textures are not
// here.
constexpr std::string_view directives[] = {".version", ".target", ".address_size", ".visible",
  ".extern", ".weak", ".common", ".entry", ".func", ".param", ".reg", ".shared", ".global",
  ".const", ".local", ".align", ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm",
  ".maxnreg", ".noreturn", ".pragma", ".branchtargets", ".calltargets", ".callprototype", ".file",
  ".loc"};

// Functions of the runtime that take device memory or start kernels.
constexpr std::string_view refused_functions[] = {"malloc", "free", "__nv_malloc", "_Znwm", "_Znam",
  "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "cudaMalloc", "cudaFree", "cudaLaunchDevice",
  "cudaLaunchDeviceV2", "cudaGetParameterBuffer", "cudaGetParameterBufferV2"};

constexpr std::string_view watched_registers[] = {
  "%clock", "%globaltimer", "%gridid", "%pm", "%nsmid"};

bool is_refused(std::string_view function) {
  return std::find(std::begin(refused_functions), std::end(refused_functions), function)
    != std::end(refused_functions);
}

constexpr std::string_view blanks = " \t\r\n";

/// The name behind the blanks at `at`.
std::string word_at(std::string_view text, size_t at) {
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
  };
  const size_t begin = std::min(text.find_first_not_of(blanks, at), text.size());
  size_t end = begin;
  while (end < text.size() && is_name(text[end]))
    ++end;
  return std::string(text.substr(begin, end - begin));
}

} // namespace

ptx_judgement judge_ir(const device_ir& ir, const compile_unit& unit) {
  const auto refuse = [](verdict_status status, std::string why) {
    return ptx_judgement{status, std::move(why), {}};
  };
  if (ir.has_module_assembly)
    return refuse(verdict_status::reward_hack, "assembly outside of a function");
  for (const std::string& function : ir.external_functions)
    if (is_refused(function))
      return refuse(verdict_status::compile_error,
        fmt::format("device code calls '{}': kernels cannot take memory or start kernels; ask for "
                    "scratch in the launch plan",
          function));
  for (size_t i = 0; i < unit.entries.size(); ++i) {
    const std::string& expression = unit.entries[i].expression;
    const auto found = ir.entries.find(i);
    if (found == ir.entries.end())
      return refuse(verdict_status::compile_error,
        fmt::format(
          "entry '{}' was not found: what follows the source was not compiled", expression));
    if (!ir.kernels.contains(found->second))
      return refuse(verdict_status::compile_error,
        fmt::format("entry '{}' is not a __global__ function", expression));
  }
  return {};
}

std::vector<entry_name> entry_names(std::string_view text) {
  constexpr std::string_view directive = ".entry";
  std::vector<entry_name> found;
  size_t line = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at).starts_with("/*")) {
      const size_t end = std::min(text.find("*/", at), text.size());
      line += static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
        text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      at = end;
    } else if (text.substr(at).starts_with(directive)) {
      found.push_back({word_at(text, at + directive.size()), line});
    }
    if (at < text.size() && text[at] == '\n')
      ++line;
  }
  return found;
}

std::vector<std::string> external_functions(std::string_view text) {
  constexpr std::string_view directive = ".extern .func";
  std::vector<std::string> found;
  for (size_t at = text.find(directive); at != std::string_view::npos;
       at = text.find(directive, at + 1)) {
    size_t begin = text.find_first_not_of(blanks, at + directive.size());
    // The value that it returns stands in front of the name.
    if (begin < text.size() && text[begin] == '(')
      begin = std::min(text.find(')', begin), text.size() - 1) + 1;
    found.push_back(word_at(text, begin));
  }
  return found;
}

ptx_judgement judge_entry_names(std::string_view text, const device_ir& ir) {
  for (const entry_name& entry : entry_names(text))
    if (!ir.kernels.contains(entry.name))
      return {verdict_status::reward_hack,
        fmt::format(
          "second entry smuggled in by inline PTX: {} (PTX line {})", entry.name, entry.line),
        {}};
  return {};
}

ptx_judgement judge_ptx(
  const ptx::module& module, const device_ir& ir, const compile_unit& unit, bool line_info) {
  const std::vector<ptx::entry_info> entries = ptx::entries(module);
  for (const ptx::entry_info& entry : entries)
    if (!ir.kernels.contains(entry.name))
      return {verdict_status::reward_hack,
        fmt::format(
          "second entry smuggled in by inline PTX: {} (PTX line {})", entry.name, entry.line),
        {}};
  for (const std::string& directive : ptx::directives_used(module))
    if (!(line_info && directive == ".section")
      && std::find(std::begin(directives), std::end(directives), directive) == std::end(directives))
      return {verdict_status::compile_error,
        fmt::format("the PTX directive {} is not allowed", directive), {}};

  for (size_t i = 0; i < unit.entries.size(); ++i) {
    const entry_use& use = unit.entries[i];
    const std::string& symbol = ir.entries.at(i);
    const auto same = [&](const ptx::entry_info& entry) { return entry.name == symbol; };
    const auto entry = std::find_if(entries.begin(), entries.end(), same);
    if (entry == entries.end())
      return {verdict_status::reward_hack,
        fmt::format("entry '{}' is missing from the PTX", use.expression), {}};
    // The assertions in the epilogue say more, but their words can be redefined by a candidate.
    if (entry->parameters.size() != use.parameter_abi.size())
      return {verdict_status::compile_error,
        fmt::format("entry '{}': the launch plan passes {} arguments, the kernel takes {}",
          use.expression, use.parameter_abi.size(), entry->parameters.size()),
        {}};
    for (size_t p = 0; p < use.parameter_abi.size(); ++p) {
      const auto expected = parameter_bytes(use.parameter_abi[p]);
      if (!expected || entry->parameters[p].size != *expected)
        return {verdict_status::compile_error,
          fmt::format(
            "argument {} '{}' of entry '{}': the launch plan passes {} ({} bytes), the kernel "
            "takes {} bytes",
            p + 1, use.argument_names[p], use.expression, use.parameter_abi[p],
            expected.value_or(0), entry->parameters[p].size),
          {}};
    }
  }

  ptx_judgement judgement;
  for (const std::string& name : ptx::special_registers_used(module))
    for (const std::string_view watched : watched_registers)
      if (name.starts_with(watched))
        judgement.findings.push_back({"reads_clock", "",
          fmt::format("the code reads {}, so it can tell when it is timed", name), false});
  for (const std::string& name : ir.writable_globals)
    judgement.findings.push_back({"writable_module_global", "",
      fmt::format("the module variable '{}' can be written and lives from call to call", name),
      false});
  return judgement;
}

} // namespace gristmill
