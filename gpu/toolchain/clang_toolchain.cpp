#include "gpu/toolchain/clang_toolchain.hpp"

#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/toolchain/compile_steps.hpp"
#include "gpu/toolchain/compiler_process.hpp"
#include "gpu/toolchain/device_header.hpp"
#include "gpu/toolchain/device_ir.hpp"
#include "gpu/toolchain/grid_constants.hpp"
#include "gpu/toolchain/line_info.hpp"
#include "gpu/toolchain/ptx_check.hpp"
#include "gpu/toolchain/signature.hpp"
#include "gpu/toolchain/source_check.hpp"
#include "gpu/toolchain/trust_alignment.hpp"
#include "protocol/json_document.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace gristmill {

namespace {

/// Changes whenever something below changes what comes out of the same input.
constexpr std::string_view recipe_version = "clang-recipe/4";

// A toolkit that happens to be installed must not change the PTX version, so none is looked for.
const std::vector<std::string> without_toolkit{"--cuda-path=nowhere", "--cuda-feature=+ptx80"};

const std::vector<std::string> front_end_flags{"-x", "cuda", "--cuda-device-only", "-nocudainc",
  "-nocudalib", "-nostdinc", "-fdeclspec", "-fuse-cuid=none", "-O3", "-w", "-I", "include",
  "-include", "gristmill/all.h", "-fno-color-diagnostics", "-fmessage-length=0", "-ferror-limit=10",
  "-ftemplate-backtrace-limit=4", "-fmacro-backtrace-limit=2", "-Xclang", "-disable-llvm-passes",
  "-emit-llvm", "-S"};

// Optimises and generates code. The level of fused multiply-adds is what `-x cuda` means by
// default. nvcc lets a pointer to one type read what was written as another, and kernels rely on
// it: what the front end says about types serves `trust_alignment` only.
const std::vector<std::string> back_end_flags{"--target=nvptx64-nvidia-cuda", "-O3", "-w", "-mllvm",
  "-nvptx-fma-level=2", "-mllvm", "-enable-tbaa=false", "-fno-color-diagnostics", "-S", "-x", "ir"};

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

result<std::vector<std::string>> front_end_command(
  const compile_input& input, const std::string& arch) {
  const auto options = option_flags(input.options);
  if (!options)
    return pass(options);
  std::vector<std::string> command = front_end_flags;
  append(command, without_toolkit);
  command.push_back("--cuda-gpu-arch=" + arch);
  append(command, *options);
  if (input.line_info)
    command.emplace_back("-gline-directives-only");
  append(command, {"-o", "unit.ll", "unit.cu"});
  return command;
}

std::vector<std::string> back_end_command(const compile_input& input, const std::string& arch) {
  std::vector<std::string> command = back_end_flags;
  append(command, without_toolkit);
  append(command, {"-Xclang", "-target-feature", "-Xclang", "+ptx80"});
  command.push_back("-march=" + arch);
  // What nvcc's --use_fast_math does to division; roots are chosen in the device header.
  if (input.options.fast_math)
    append(command, {"-mllvm", "-nvptx-prec-divf32=1"});
  append(command, {"-o", "unit.ptx", "code.ll"});
  return command;
}

/// The text between `clang version ` and the next blank.
std::string version_in(std::string_view output) {
  const std::string_view marker = "clang version ";
  const size_t at = output.find(marker);
  if (at == std::string_view::npos)
    return {};
  const std::string_view rest = output.substr(at + marker.size());
  return std::string(rest.substr(0, rest.find_first_of(" (\n")));
}

} // namespace

result<clang_command> find_clang(const std::string& path) {
  for (const std::string_view name : {"clang++-19", "clang-19"})
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find(':', start), path.size());
      const std::filesystem::path folder = path.substr(start, end - start);
      start = end + 1;
      const std::filesystem::path program = folder / name;
      // A relative part of PATH would mean another program in another folder.
      if (!program.is_absolute() || access(program.c_str(), X_OK) != 0)
        continue;
      const auto asked =
        run_compiler(program.string(), {"--version"}, "/", std::chrono::seconds(10));
      if (!asked)
        return pass(asked);
      const std::string version = version_in(asked->output);
      if (asked->status == 0 && !version.empty())
        return clang_command{program.string(), "clang-" + version};
    }
  return fail(errc::not_found,
    "clang 19 was not found along PATH; it is in the package clang-19 (Debian 12)");
}

result<compile_output> compile_with_clang(const compile_input& input,
  const std::filesystem::path& folder, const clang_command& clang,
  std::chrono::milliseconds limit) {
  const auto arch = clang_architecture(input.arch);
  if (!arch)
    return pass(arch);
  const auto command = front_end_command(input, *arch);
  if (!command && command.error().code == errc::unsupported)
    return refused_because(command.error().what);
  if (!command)
    return pass(command);
  auto refused = refused_input(input, folder);
  if (!refused)
    return pass(refused);
  if (*refused)
    return std::move(**refused);

  if (auto written = write_device_header(folder / "include"); !written)
    return pass(written);
  if (auto written =
        write_text_file(folder / "unit.cu", unit_text(input, signature_epilogue(input.unit)));
      !written)
    return pass(written);

  const auto front = run_compiler(clang.program, *command, folder, limit);
  if (!front)
    return pass(front);
  auto bad_front = failed_run(*front, input, folder, limit);
  if (!bad_front)
    return pass(bad_front);
  if (*bad_front)
    return std::move(**bad_front);
  const auto text = read_text_file(folder / "unit.ll", compiled_text_bytes_max);
  if (!text)
    return refused_because("the compiled code is too large");
  const auto ir = read_device_ir(*text);
  if (!ir)
    return refused_because(ir.error().what);
  if (const ptx_judgement judged = judge_ir(*ir, input.unit);
      judged.status != verdict_status::passed)
    return answer_without_code(judged.status, "error: " + judged.reason + "\n");

  std::string code = use_grid_constants(trust_alignment(ir->text));
  if (input.line_info)
    code = keep_lines_of(code, "kernel.cu");
  if (auto written = write_text_file(folder / "code.ll", code); !written)
    return pass(written);
  const auto back = run_compiler(clang.program, back_end_command(input, *arch), folder, limit);
  if (!back)
    return pass(back);
  auto bad_back = failed_run(*back, input, folder, limit);
  if (!bad_back)
    return pass(bad_back);
  if (*bad_back)
    return std::move(**bad_back);
  auto ptx = read_text_file(folder / "unit.ptx", compiled_text_bytes_max);
  if (!ptx)
    return refused_because("the compiled code is too large");
  // Before the text is parsed: what inline PTX has torn open need not be a module any more.
  if (const ptx_judgement judged = judge_entry_names(*ptx, *ir);
      judged.status != verdict_status::passed)
    return answer_without_code(judged.status, "error: " + judged.reason + "\n");
  const auto module = ptx::parse(*ptx);
  if (!module)
    return refused_because(module.error().what);
  ptx_judgement judged = judge_ptx(**module, *ir, input.unit, input.line_info);
  if (judged.status != verdict_status::passed)
    return answer_without_code(judged.status, "error: " + judged.reason + "\n");

  compile_output out;
  out.status = verdict_status::passed;
  out.ptx = std::move(*ptx);
  out.findings = std::move(judged.findings);
  for (size_t i = 0; i < input.unit.entries.size(); ++i)
    out.entries.push_back({input.unit.entries[i].expression, ir->entries.at(i)});
  if (input.options.max_registers > 0)
    out.log =
      "note: options.maxrregcount has no effect here: clang leaves registers to the assembler\n";
  return out;
}

std::string cache_key(const compile_input& input, const clang_command& clang) {
  const std::array headers{device_header_files()};
  return input_key(recipe_version, clang.version, headers, input);
}

} // namespace gristmill
