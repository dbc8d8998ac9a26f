#include "gpu/toolchain/clang_toolchain.hpp"

#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/toolchain/compiler_log.hpp"
#include "gpu/toolchain/compiler_process.hpp"
#include "gpu/toolchain/device_header.hpp"
#include "gpu/toolchain/device_ir.hpp"
#include "gpu/toolchain/ptx_check.hpp"
#include "gpu/toolchain/signature.hpp"
#include "gpu/toolchain/source_check.hpp"
#include "gpu/toolchain/trust_alignment.hpp"
#include "journal/hash.hpp"
#include "protocol/json_document.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

namespace gristmill {

namespace {

constexpr size_t source_bytes_max = 1 << 20, text_bytes_max = 16 << 20;
/// Changes whenever something below changes what comes out of the same input.
constexpr std::string_view recipe_version = "clang-recipe/1";

// A toolkit that happens to be installed must not change the PTX version, so none is looked for.
const std::vector<std::string> without_toolkit{"--cuda-path=nowhere", "--cuda-feature=+ptx80"};

const std::vector<std::string> front_end_flags{"-x", "cuda", "--cuda-device-only", "-nocudainc",
  "-nocudalib", "-nostdinc", "-fdeclspec", "-fuse-cuid=none", "-O3", "-w", "-I", "include",
  "-include", "gristmill/all.h", "-fno-color-diagnostics", "-fmessage-length=0", "-ferror-limit=10",
  "-ftemplate-backtrace-limit=4", "-fmacro-backtrace-limit=2", "-Xclang", "-disable-llvm-passes",
  "-emit-llvm", "-S"};

// Optimises and generates code. The level of fused multiply-adds is what `-x cuda` means by
// default.
const std::vector<std::string> back_end_flags{"--target=nvptx64-nvidia-cuda", "-O3", "-w", "-mllvm",
  "-nvptx-fma-level=2", "-fno-color-diagnostics", "-S", "-x", "ir"};

result<void> write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out)
    return fail(errc::io_failed, fmt::format("writing {}", path.string()));
  return {};
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

compile_output answer(verdict_status status, std::string log) {
  compile_output out;
  out.status = status;
  out.log = std::move(log);
  return out;
}

compile_output refused(std::string why) {
  return answer(verdict_status::compile_error, "error: " + why + "\n");
}

/// What clang reads. The defines stand here and not on the command line, where they would also
/// change the device header: a plan may well call one `T` or `x`.
std::string unit_text(const compile_input& input) {
  std::string text = "#line 1 \"defines\"\n";
  for (const auto& [name, value] : input.unit.defines)
    text += fmt::format("#define {} {}\n", name, value);
  return text + "#line 1 \"kernel.cu\"\n" + input.source + signature_epilogue(input.unit);
}

/// The compiler's own way to fail, as an answer; nothing when it went well.
std::optional<compile_output> failed(const compiler_run& run, const compile_input& input,
  const std::filesystem::path& folder, std::chrono::milliseconds limit) {
  if (run.timed_out)
    return refused(fmt::format("the compiler was not done within {} ms", limit.count()));
  if (run.status == 0)
    return std::nullopt;
  std::string log = readable_log(run.output, input.unit, folder);
  if (run.status > 128)
    log = fmt::format("error: the compiler was ended by signal {}\n", run.status - 128) + log;
  else if (log.empty())
    log = fmt::format("error: the compiler ended with status {}\n", run.status);
  return answer(verdict_status::compile_error, std::move(log));
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
  if (!folder.is_absolute())
    return fail(errc::invalid_input,
      fmt::format("the folder of a compile job must be absolute, not '{}'", folder.string()));
  const auto arch = clang_architecture(input.arch);
  if (!arch)
    return pass(arch);
  if (auto checked = check_unit(input.unit); !checked)
    return pass(checked);
  const auto command = front_end_command(input, *arch);
  if (!command && command.error().code == errc::unsupported)
    return refused(command.error().what);
  if (!command)
    return pass(command);
  if (input.source.size() > source_bytes_max)
    return refused(fmt::format(
      "the source has {} bytes; at most {} are read", input.source.size(), source_bytes_max));
  if (auto checked = check_source(input.source); !checked)
    return refused(checked.error().what);

  if (auto written = write_device_header(folder / "include"); !written)
    return pass(written);
  if (auto written = write_file(folder / "unit.cu", unit_text(input)); !written)
    return pass(written);

  const auto front = run_compiler(clang.program, *command, folder, limit);
  if (!front)
    return pass(front);
  if (auto bad = failed(*front, input, folder, limit))
    return std::move(*bad);
  const auto text = read_text_file(folder / "unit.ll", text_bytes_max);
  if (!text)
    return refused("the compiled code is too large");
  const auto ir = read_device_ir(*text);
  if (!ir)
    return refused(ir.error().what);
  if (const ptx_judgement judged = judge_ir(*ir, input.unit);
      judged.status != verdict_status::passed)
    return answer(judged.status, "error: " + judged.reason + "\n");

  if (auto written = write_file(folder / "code.ll", trust_alignment(ir->text)); !written)
    return pass(written);
  const auto back = run_compiler(clang.program, back_end_command(input, *arch), folder, limit);
  if (!back)
    return pass(back);
  if (auto bad = failed(*back, input, folder, limit))
    return std::move(*bad);
  auto ptx = read_text_file(folder / "unit.ptx", text_bytes_max);
  if (!ptx)
    return refused("the compiled code is too large");
  // Before the text is parsed: what inline PTX has torn open need not be a module any more.
  if (const ptx_judgement judged = judge_entry_names(*ptx, *ir);
      judged.status != verdict_status::passed)
    return answer(judged.status, "error: " + judged.reason + "\n");
  const auto module = ptx::parse(*ptx);
  if (!module)
    return refused(module.error().what);
  ptx_judgement judged = judge_ptx(**module, *ir, input.unit);
  if (judged.status != verdict_status::passed)
    return answer(judged.status, "error: " + judged.reason + "\n");

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
  sha256_stream hash;
  // Each part with its length, so that no two inputs run together into one text.
  const auto add = [&](std::string_view part) {
    hash.update(fmt::format("{}:", part.size()));
    hash.update(part);
  };
  add(recipe_version);
  add(clang.version);
  for (const embedded_file& file : device_header_files()) {
    add(file.path);
    add(file.content);
  }
  add(input.arch);
  add(input.options.standard);
  add(input.options.fast_math ? "fast" : "exact");
  add(std::to_string(input.options.max_registers));
  add(std::to_string(input.options.headers.size()));
  for (const std::string& header : input.options.headers)
    add(header);
  add(std::to_string(input.unit.defines.size()));
  for (const auto& [name, value] : input.unit.defines) {
    add(name);
    add(value);
  }
  // The checks read these, and the epilogue is made of them.
  add(signature_epilogue(input.unit));
  add(input.source);
  return hash.finish_hex();
}

} // namespace gristmill
