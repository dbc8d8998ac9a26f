#include "gpu/toolchain/compile_steps.hpp"

#include "gpu/toolchain/compiler_log.hpp"
#include "gpu/toolchain/signature.hpp"
#include "gpu/toolchain/source_check.hpp"
#include "journal/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace gristmill {

result<void> write_text_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out)
    return fail(errc::io_failed, fmt::format("writing {}", path.string()));
  return {};
}

compile_output answer_without_code(verdict_status status, std::string log) {
  compile_output out;
  out.status = status;
  out.log = std::move(log);
  return out;
}

compile_output refused_because(std::string_view why) {
  return answer_without_code(verdict_status::compile_error, fmt::format("error: {}\n", why));
}

std::string unit_text(const compile_input& input, std::string_view epilogue) {
  std::string text = "#line 1 \"defines\"\n";
  for (const auto& [name, value] : input.unit.defines)
    text += fmt::format("#define {} {}\n", name, value);
  text += "#line 1 \"kernel.cu\"\n" + input.source;
  text += epilogue;
  return text;
}

namespace {

/// The line of the output that tells of a failure of the machine; empty when none does. Such lines
/// name no file of the candidate, and what the candidate makes a compiler say always does: nobody
/// gets out of a compile error by quoting one.
std::string_view trouble_of_machine(std::string_view output) {
  constexpr std::string_view beginnings[] = {
    "error: ", "fatal error: ", "LLVM ERROR: ", "clang++-19: error: ", "clang-19: error: "};
  constexpr std::string_view troubles[] = {"No space left on device", "Disk quota exceeded",
    "Input/output error", "Read-only file system"};
  while (!output.empty()) {
    const auto line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(output.size(), line.size() + 1));
    const auto begins = [&](std::string_view with) { return line.starts_with(with); };
    const auto tells = [&](std::string_view of) { return line.find(of) != line.npos; };
    if (std::any_of(std::begin(beginnings), std::end(beginnings), begins)
      && std::any_of(std::begin(troubles), std::end(troubles), tells))
      return line;
  }
  return {};
}

} // namespace

result<std::optional<compile_output>> failed_run(const compiler_run& run,
  const compile_input& input, const std::filesystem::path& folder,
  std::chrono::milliseconds limit) {
  if (run.timed_out)
    return refused_because(fmt::format("the compiler was not done within {} ms", limit.count()));
  if (run.status == 0)
    return std::nullopt;
  // As a shell says it: found and not to be executed, or not found.
  if (run.status == 126 || run.status == 127)
    return fail(errc::io_failed,
      fmt::format("the compiler could not be executed: {}", run.output.substr(0, 512)));
  if (const auto line = trouble_of_machine(run.output); !line.empty())
    return fail(errc::io_failed, fmt::format("the compiler: {}", line.substr(0, 512)));
  std::string log = readable_log(run.output, input.unit, folder);
  if (run.status > 128)
    log = fmt::format("error: the compiler was ended by signal {}\n", run.status - 128) + log;
  else if (log.empty())
    log = fmt::format("error: the compiler ended with status {}\n", run.status);
  return answer_without_code(verdict_status::compile_error, std::move(log));
}

result<std::optional<compile_output>> refused_input(
  const compile_input& input, const std::filesystem::path& folder) {
  if (!folder.is_absolute())
    return fail(errc::invalid_input,
      fmt::format("the folder of a compile job must be absolute, not '{}'", folder.string()));
  if (auto checked = check_unit(input.unit); !checked)
    return pass(checked);
  if (input.source.size() > source_bytes_max)
    return refused_because(fmt::format(
      "the source has {} bytes; at most {} are read", input.source.size(), source_bytes_max));
  if (auto checked = check_source(input.source); !checked)
    return refused_because(checked.error().what);
  return std::optional<compile_output>{};
}

std::string input_key(std::string_view recipe, std::string_view version,
  std::span<const std::span<const embedded_file>> headers, const compile_input& input) {
  sha256_stream hash;
  // Each part with its length, so that no two inputs run together into one text.
  const auto add = [&](std::string_view part) {
    hash.update(fmt::format("{}:", part.size()));
    hash.update(part);
  };
  add(recipe);
  add(version);
  for (const auto files : headers)
    for (const embedded_file& file : files) {
      add(file.path);
      add(file.content);
    }
  add(input.arch);
  if (input.line_info)
    add("line info");
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
