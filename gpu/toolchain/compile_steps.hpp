#pragma once

#include "gpu/toolchain/compile_input.hpp"
#include "gpu/toolchain/compiler_process.hpp"
#include "messages/embedded_file.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What the toolchains have in common.
namespace gristmill {

constexpr size_t source_bytes_max = 1 << 20, compiled_text_bytes_max = 16 << 20;

/// Writes a file; `io_failed` names it.
result<void> write_text_file(const std::filesystem::path& path, std::string_view text);

/// An answer without code.
compile_output answer_without_code(verdict_status status, std::string log);
/// compile_error, "error: <why>".
compile_output refused_because(std::string_view why);

/// What a compiler reads: the defines, the source, then `epilogue`, each with lines of its own. The
/// defines stand here and not on the command line, where they would also change our headers: a plan
/// may well call one `T` or `x`.
std::string unit_text(const compile_input& input, std::string_view epilogue);

/// The compiler's own way to fail, as an answer; nothing when it went well. Fails with `io_failed`
/// when the machine was at fault, such as by a full disk or a compiler that could not be executed:
/// that is nobody's compile error.
result<std::optional<compile_output>> failed_run(const compiler_run& run,
  const compile_input& input, const std::filesystem::path& folder, std::chrono::milliseconds limit);

/// Everything that is refused before a compiler starts, as an answer; nothing when all is well.
/// Fails with `invalid_input` for a folder, a define or an entry that no caller should ask for.
result<std::optional<compile_output>> refused_input(
  const compile_input& input, const std::filesystem::path& folder);

/// SHA-256 over everything that decides the result: how we compile (`recipe`), the compiler's
/// version, our headers and all of the input.
std::string input_key(std::string_view recipe, std::string_view version,
  std::span<const std::span<const embedded_file>> headers, const compile_input& input);

} // namespace gristmill
