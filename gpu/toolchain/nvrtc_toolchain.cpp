#include "gpu/toolchain/nvrtc_toolchain.hpp"

#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/toolchain/compile_steps.hpp"
#include "gpu/toolchain/compiler_log.hpp"
#include "gpu/toolchain/device_header.hpp"
#include "gpu/toolchain/device_ir.hpp"
#include "gpu/toolchain/nvrtc_header.hpp"
#include "gpu/toolchain/ptx_check.hpp"
#include "gpu/toolchain/resource_lines.hpp"
#include "gpu/toolchain/signature.hpp"
#include "gpu/toolchain/source_check.hpp"
#include "protocol/json_document.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// Changes whenever something below changes what comes out of the same input.
constexpr std::string_view recipe_version = "nvrtc-recipe/2";
constexpr std::string_view preamble = "#include \"gristmill/all.h\"\n";
/// File name that the questions behind a source give themselves.
constexpr std::string_view question_file = "module-variable";
/// More questions than that are not asked; the answer is then the careful one.
constexpr size_t questions_max = 64;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

/// The one that clang would compile for, so that both make code of the same kind; but sm_100a and
/// sm_103a as they are from CUDA 13 on, whose assembler takes `tcgen05` for nothing else.
result<std::string> real_architecture(std::string_view arch, const nvrtc_command& nvrtc) {
  const std::string_view number =
    std::string_view(nvrtc.version)
      .substr(std::min(nvrtc.version.find('-') + 1, nvrtc.version.size()));
  const bool knows = number.find('.') == 2 && number >= "13";
  if (knows && (arch == "sm_100a" || arch == "sm_103a"))
    return std::string(arch);
  return clang_architecture(arch);
}

/// "compute_90a" for "sm_90a".
result<std::string> virtual_architecture(std::string_view arch, const nvrtc_command& nvrtc) {
  auto real = real_architecture(arch, nvrtc);
  if (!real)
    return pass(real);
  return "compute_" + real->substr(3);
}

result<std::vector<std::string>> compile_options(
  const compile_input& input, const nvrtc_command& nvrtc) {
  // For what it refuses; the flags are clang's.
  if (auto checked = option_flags(input.options); !checked)
    return pass(checked);
  const auto arch = virtual_architecture(input.arch, nvrtc);
  if (!arch)
    return pass(arch);
  // constexpr functions of a candidate carry no __device__; without -default-device NVRTC refuses
  // them. Our own folders come first; the one inside too, because no file sees its neighbours.
  std::vector<std::string> options{"--gpu-architecture=" + *arch, "--std=" + input.options.standard,
    "-default-device", "--no-source-include", "--disable-warnings", "-Iinclude",
    "-Iinclude/gristmill", "-I" + nvrtc.include, "-I" + nvrtc.include + "/crt",
    "-I" + nvrtc.include + "/cooperative_groups",
    "-I" + nvrtc.include + "/cooperative_groups/details"};
  // Where CUDA 13 has libcu++; CUDA 12 has it beside the others.
  std::error_code ignored;
  if (fs::exists(nvrtc.include + "/cccl", ignored))
    options.push_back("-I" + nvrtc.include + "/cccl");
  if (input.options.fast_math) {
    options.emplace_back("--use_fast_math");
    options.emplace_back("-DGM_FAST_MATH=1");
  }
  if (input.line_info)
    options.emplace_back("--generate-line-info");
  return options;
}

/// The demangled name as an expression of the source: "spare<3>" of "void spare<3>(float*)".
/// Nothing for what cannot be written in a source.
std::optional<std::string> expression_of(const std::string& symbol) {
  std::string text = symbol;
  if (symbol.starts_with("_Z")) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    if (status != 0 || plain == nullptr)
      return std::nullopt;
    text = plain.get();
  }
  const std::string_view unnamed = "(anonymous namespace)::";
  for (size_t at = text.find(unnamed); at != std::string::npos; at = text.find(unnamed))
    text.erase(at, unnamed.size());
  // The parameters begin at the first parenthesis outside of angle brackets, the name at the last
  // blank before them.
  int depth = 0;
  size_t begin = 0, end = text.size();
  for (size_t i = 0; i < text.size() && end == text.size(); ++i) {
    depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
    if (depth == 0 && text[i] == ' ')
      begin = i + 1;
    if (depth == 0 && text[i] == '(')
      end = i;
  }
  text = text.substr(std::min(begin, end), end - std::min(begin, end));
  const bool fine = !text.empty() && text.size() <= 512
    && std::isdigit(static_cast<unsigned char>(text[0])) == 0
    && std::all_of(text.begin(), text.end(), [](char c) {
         return std::isalnum(static_cast<unsigned char>(c)) != 0
           || std::string_view("_<>,:()*&- ").find(c) != std::string_view::npos;
       });
  return fine ? std::optional(text) : std::nullopt;
}

/// Compiles one source in a folder, several times if need be.
class nvrtc_job {
public:
  nvrtc_job(const compile_input& input, const fs::path& folder, const nvrtc_command& nvrtc,
    std::vector<std::string> options, std::chrono::milliseconds limit)
    : input_(input), folder_(folder), nvrtc_(nvrtc), options_(std::move(options)), limit_(limit) {}

  /// Runs NVRTC on the unit with this text behind its source. What it makes is called `name`.
  result<compiler_run> run(const std::string& name, std::string_view epilogue,
    const std::vector<std::string>& expressions) const {
    std::string names;
    for (const std::string& expression : expressions)
      names += expression + "\n";
    if (auto written = write_text_file(folder_ / (name + ".names"), names); !written)
      return pass(written);
    if (auto written = write_text_file(
          folder_ / (name + ".cu"), std::string(preamble) + unit_text(input_, epilogue));
        !written)
      return pass(written);
    std::vector<std::string> arguments{"compile", nvrtc_.library, name + ".cu", name + ".names",
      name + ".ptx", name + ".symbols", "--"};
    arguments.insert(arguments.end(), options_.begin(), options_.end());
    return start(arguments);
  }

  /// Starts the program; its trouble with libraries and files is ours, not the candidate's.
  result<compiler_run> start(const std::vector<std::string>& arguments) const {
    auto ended = run_compiler(nvrtc_.program, arguments, folder_, limit_);
    if (ended && !ended->timed_out && (ended->status == 2 || ended->status == 3))
      return fail(errc::io_failed, "NVRTC: " + ended->output.substr(0, 512));
    return ended;
  }

  result<std::string> text(const std::string& file) const {
    return read_text_file(folder_ / file, compiled_text_bytes_max);
  }

  /// Which of the symbols are kernels of the source by NVRTC's own word. Each is asked for alone:
  /// one that is none ends a compilation.
  result<std::set<std::string>> confirmed_kernels(const std::set<std::string>& symbols) const {
    std::set<std::string> confirmed;
    size_t asked = 0;
    for (const std::string& symbol : symbols) {
      const auto expression = expression_of(symbol);
      if (!expression || ++asked > questions_max)
        continue;
      const auto ended = run("question", signature_epilogue(input_.unit, false), {*expression});
      if (!ended)
        return pass(ended);
      if (ended->timed_out || ended->status != 0)
        continue;
      const auto told = text("question.symbols");
      const auto code = text("question.ptx");
      if (!told || !code || *told != symbol + "\n")
        continue;
      // Asking for a template makes it; one that inline PTX pretended to have is then there twice.
      const auto entries = entry_names(*code);
      if (std::count_if(entries.begin(), entries.end(),
            [&](const entry_name& entry) { return entry.name == symbol; })
        == 1)
        confirmed.insert(symbol);
    }
    return confirmed;
  }

  /// Which of the module's variables a kernel can write: all but those that the source declares
  /// const.
  result<std::vector<std::string>> writable(const std::vector<std::string>& variables) const {
    std::vector<std::string> out;
    std::string questions;
    std::vector<std::string> asked;
    for (const std::string& symbol : variables) {
      const auto expression = expression_of(symbol);
      if (!expression || asked.size() == questions_max) {
        out.push_back(symbol);
        continue;
      }
      asked.push_back(symbol);
      questions +=
        fmt::format("#line {} \"{}\"\nstatic_assert(gm_type::constant<decltype({})>::yes, \"can be "
                    "written\");\n",
          asked.size(), question_file, *expression);
    }
    if (asked.empty())
      return out;
    const auto ended = run("question", "\n#undef static_assert\n#undef decltype\n" + questions, {});
    if (!ended)
      return pass(ended);
    const bool usable = !ended->timed_out && ended->status <= 1;
    for (size_t i = 0; i < asked.size(); ++i)
      if (!usable
        || ended->output.find(fmt::format("{}({}): error: ", question_file, i + 1))
          != std::string::npos)
        out.push_back(asked[i]);
    return out;
  }

private:
  const compile_input& input_;
  const fs::path& folder_;
  const nvrtc_command& nvrtc_;
  std::vector<std::string> options_;
  std::chrono::milliseconds limit_;
};

/// Words of a text and how often each occurs, of those that `wanted` has.
std::map<std::string_view, size_t> occurrences(
  std::string_view text, const std::set<std::string_view>& wanted) {
  std::map<std::string_view, size_t> found;
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_letter(text[end]))
      ++end;
    if (end > at && wanted.contains(text.substr(at, end - at)))
      ++found[text.substr(at, end - at)];
    at = end + 1;
  }
  return found;
}

/// Variables in global memory that may be a candidate's and that code can write: without string
/// literals, what our headers leave behind, and those that nothing names but their declaration, of
/// which libcu++ leaves hundreds.
std::vector<std::string> variables_of(const ptx::module& module, std::string_view text) {
  const std::vector<ptx::global_info> all = ptx::globals(module);
  std::set<std::string_view> wanted;
  for (const ptx::global_info& variable : all) {
    const std::string_view name = variable.name;
    if (!variable.is_const && !name.starts_with("$") && !name.starts_with("__unnamed_")
      && !name.starts_with("_ZNSt") && !name.starts_with("_ZN12gm_signature"))
      wanted.insert(name);
  }
  std::vector<std::string> names;
  for (const auto& [name, times] : occurrences(text, wanted))
    if (times > 1)
      names.emplace_back(name);
  return names;
}

/// Assembles what was compiled. An answer when the assembler refuses it; nothing when it did not,
/// and then `log` has the figures.
result<std::optional<compile_output>> assemble(const nvrtc_job& job, const compile_input& input,
  const fs::path& folder, const nvrtc_command& nvrtc, std::chrono::milliseconds limit,
  std::string& log) {
  const auto arch = real_architecture(input.arch, nvrtc);
  if (!arch)
    return pass(arch);
  std::vector<std::string> arguments{
    "assemble", nvrtc.linker, "unit.ptx", "--", "-arch=" + *arch, "-Xptxas=-v"};
  if (input.options.max_registers > 0)
    arguments.push_back(fmt::format("-maxrregcount={}", input.options.max_registers));
  const auto ended = job.start(arguments);
  if (!ended)
    return pass(ended);
  if (ended->timed_out)
    return refused_because(fmt::format("the assembler was not done within {} ms", limit.count()));
  if (ended->status == 0) {
    log += resource_lines(ended->output);
    if (is_slowed_by_linking(ended->output))
      log +=
        "note: a device assembles this as a whole program; these figures are of a linkable one\n";
    return std::optional<compile_output>{};
  }
  return answer_without_code(verdict_status::compile_error,
    "error: the assembler refused the code\n" + readable_log(ended->output, input.unit, folder));
}

} // namespace

std::vector<std::string> nvrtc_names(const std::function<const char*(const char*)>& environment) {
  std::vector<std::string> names;
  const auto add_root = [&](const fs::path& root) {
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"})
      for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
        names.push_back((root / folder / file).string());
  };
  if (const char* root = environment("GRISTMILL_CUDA")) {
    add_root(root);
    return names;
  }
  if (const char* root = environment("CUDA_HOME"))
    add_root(root);
  add_root("/usr/local/cuda");
  for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12"})
    names.emplace_back(file);
  return names;
}

result<nvrtc_command> nvrtc_at(
  const std::string& program, const std::string& library, const std::string& version) {
  nvrtc_command found{program, library, version, {}, {}};
  const fs::path folder = fs::path(library).parent_path();
  std::error_code ignored;
  // lib64/, lib/ and targets/x86_64-linux/lib/ have include/ beside them; Debian's packages use
  // /usr/lib/x86_64-linux-gnu and /usr/include.
  for (const fs::path& include : {folder / "../include", folder / "../../include"})
    if (found.include.empty() && fs::exists(include / "cuda_bf16.h", ignored)) {
      const auto plain = fs::canonical(include, ignored);
      if (!ignored)
        found.include = plain.string();
    }
  if (found.include.empty())
    return fail(errc::not_found,
      fmt::format(
        "{}: the toolkit's device headers (cuda_bf16.h) are not beside it; they come with "
        "the CUDA toolkit (cuda-nvrtc-dev and cuda-cudart-dev)",
        library));
  // Of the same major version, as it has to read what NVRTC writes.
  const std::string major = version.substr(0, version.find('.'));
  const fs::path linker =
    folder / ("libnvJitLink.so." + major.substr(std::min(major.find('-') + 1, major.size())));
  if (fs::exists(linker, ignored))
    found.linker = linker.string();
  return found;
}

result<nvrtc_command> find_nvrtc(
  const std::string& program, const std::vector<std::string>& names) {
  if (access(program.c_str(), X_OK) != 0)
    return fail(
      errc::not_found, program + ": missing; build it, or keep the programs in one folder");
  std::string trouble;
  for (const std::string& name : names) {
    // A path that is not there needs no program to say so.
    if (name.find('/') != std::string::npos && access(name.c_str(), R_OK) != 0)
      continue;
    const auto asked = run_compiler(program, {"version", name}, "/", std::chrono::seconds(10));
    if (!asked)
      return pass(asked);
    const auto lines = lines_of(asked->output);
    if (asked->status == 0 && lines.size() == 2)
      return nvrtc_at(program, lines[1], lines[0]);
    if (trouble.empty() && name.find('/') != std::string::npos)
      trouble = asked->output.substr(0, asked->output.find('\n'));
  }
  if (!trouble.empty())
    return fail(errc::not_found, "NVRTC cannot be used: " + trouble);
  return fail(errc::not_found,
    "NVRTC (libnvrtc.so of CUDA 12 or 13) was not found; set GRISTMILL_CUDA to the folder of a "
    "CUDA "
    "toolkit, or use --toolchain clang");
}

result<compile_output> compile_with_nvrtc(const compile_input& input, const fs::path& folder,
  const nvrtc_command& nvrtc, std::chrono::milliseconds limit) {
  auto options = compile_options(input, nvrtc);
  if (!options && options.error().code == errc::unsupported)
    return refused_because(options.error().what);
  if (!options)
    return pass(options);
  auto refused = refused_input(input, folder);
  if (!refused)
    return pass(refused);
  if (*refused)
    return std::move(**refused);
  if (auto written = write_nvrtc_header(folder / "include"); !written)
    return pass(written);

  const nvrtc_job job(input, folder, nvrtc, std::move(*options), limit);
  std::vector<std::string> expressions;
  for (const entry_use& entry : input.unit.entries)
    expressions.push_back(entry.expression);
  const auto ended = job.run("unit", signature_epilogue(input.unit, false), expressions);
  if (!ended)
    return pass(ended);
  auto bad_ended = failed_run(*ended, input, folder, limit);
  if (!bad_ended)
    return pass(bad_ended);
  if (*bad_ended)
    return std::move(**bad_ended);
  auto text = job.text("unit.ptx");
  auto symbols = job.text("unit.symbols");
  if (!text || !symbols)
    return refused_because("the compiled code is too large");

  device_ir known;
  const auto entries = lines_of(*symbols);
  for (size_t i = 0; i < entries.size(); ++i) {
    known.entries[i] = entries[i];
    known.kernels.insert(entries[i]);
  }
  known.external_functions = external_functions(*text);
  ptx_judgement judged = judge_ir(known, input.unit);
  std::set<std::string> further;
  for (const entry_name& entry : entry_names(*text))
    if (!known.kernels.contains(entry.name))
      further.insert(entry.name);
  if (judged.status == verdict_status::passed && !further.empty()) {
    const auto confirmed = job.confirmed_kernels(further);
    if (!confirmed)
      return pass(confirmed);
    known.kernels.insert(confirmed->begin(), confirmed->end());
  }
  if (judged.status == verdict_status::passed)
    judged = judge_entry_names(*text, known);
  if (judged.status != verdict_status::passed)
    return answer_without_code(judged.status, "error: " + judged.reason + "\n");
  const auto module = ptx::parse(*text);
  if (!module)
    return refused_because(module.error().what);
  if (const auto variables = variables_of(**module, *text); !variables.empty()) {
    auto writable = job.writable(variables);
    if (!writable)
      return pass(writable);
    known.writable_globals = std::move(*writable);
  }
  judged = judge_ptx(**module, known, input.unit, input.line_info);
  if (judged.status != verdict_status::passed)
    return answer_without_code(judged.status, "error: " + judged.reason + "\n");

  compile_output out;
  if (!nvrtc.linker.empty()) {
    auto bad = assemble(job, input, folder, nvrtc, limit, out.log);
    if (!bad)
      return pass(bad);
    if (*bad)
      return std::move(**bad);
  }
  out.status = verdict_status::passed;
  out.ptx = std::move(*text);
  out.findings = std::move(judged.findings);
  for (size_t i = 0; i < input.unit.entries.size(); ++i)
    out.entries.push_back({input.unit.entries[i].expression, known.entries.at(i)});
  return out;
}

std::string cache_key(const compile_input& input, const nvrtc_command& nvrtc) {
  const std::array headers{device_header_files(), nvrtc_header_files()};
  const std::string recipe =
    std::string(recipe_version) + (nvrtc.linker.empty() ? "" : " assembled");
  return input_key(recipe, nvrtc.version, headers, input);
}

} // namespace gristmill
