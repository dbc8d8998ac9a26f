#include "gpu/children/job_directory.hpp"
#include "gpu/toolchain/device_compiler.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/child_program.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace gristmill {

namespace {

constexpr uint64_t source_bytes_max = uint64_t{4} << 20;

result<void> write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file)
    return fail(errc::io_failed, path + ": cannot be written");
  return {};
}

/// For the shell, between single quotes.
std::string quoted_word(const std::string& text) {
  std::string word = "'";
  for (char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// What to start for the compiler: itself, or the program beside ours that loads NVRTC.
result<std::string> program_of(const device_compiler& compiler) {
  if (!compiler.is_nvrtc())
    return compiler.path;
  auto self = own_program();
  if (!self)
    return pass(self);
  return (std::filesystem::path(*self).parent_path() / nvrtc_program_name).string();
}

/// A script that starts the compiler as our helper. The toolchain takes one program to start, and a
/// compiler that outlives us would go on for as long as its limits allow.
result<std::string> helper_script(const child_context& context, const std::string& program) {
  auto command = helper_command("compiler", {program});
  if (!command)
    return pass(command);
  std::string text = "#!/bin/sh\nexec";
  for (const auto& word : *command)
    text += " " + quoted_word(word);
  text += " \"$@\"\n";
  const auto path = context.path("compiler-helper");
  if (auto written = write_text(path, text); !written)
    return pass(written);
  std::error_code error;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  if (error)
    return fail(errc::io_failed, path + ": " + error.message());
  return path;
}

result<compile_answer> compile(const child_context& context, const compile_unit& unit, size_t index,
  const std::string& source, const device_compiler& compiler, const std::string& start) {
  const auto& job = context.what.compile;
  const auto folder = context.path(fmt::format("unit_{}", index));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(errc::io_failed, folder + ": " + error.message());
  auto compiled =
    compile_device_code({source, unit, job.options, job.arch}, folder, compiler, start);
  if (!compiled)
    return pass(compiled);
  compile_answer answer;
  answer.unit = unit.key;
  answer.status = compiled->status;
  answer.log = std::move(compiled->log);
  answer.toolchain = compiler.version;
  answer.findings = std::move(compiled->findings);
  if (answer.status != verdict_status::passed)
    return answer;
  answer.entries = std::move(compiled->entries);
  answer.file = fmt::format("unit_{}.ptx", index);
  if (auto written = write_text(context.path(answer.file), compiled->ptx); !written)
    return pass(written);
  return answer;
}

result<void> compile_all(child_context& context) {
  const auto& job = context.what.compile;
  auto source = read_whole_file(context.path(job.source_file), source_bytes_max);
  if (!source)
    return pass(source);
  const device_compiler compiler{job.compiler, job.compiler_version};
  auto program = program_of(compiler);
  if (!program)
    return pass(program);
  auto start = helper_script(context, *program);
  if (!start)
    return pass(start);
  for (size_t i = 0; i < job.units.size(); ++i) {
    context.channel.phase(fmt::format("unit {} of {}", i + 1, job.units.size()));
    auto answer = compile(context, job.units[i], i, *source, compiler, *start);
    if (!answer)
      return pass(answer);
    context.channel.sample(to_json(*answer));
  }
  return {};
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  return gristmill::child_main(
    argc, argv, "gristmill-compiler", gristmill::job_kind::compile, gristmill::compile_all);
}
