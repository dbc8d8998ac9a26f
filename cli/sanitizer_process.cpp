#include "cli/sanitizer_process.hpp"

#include "cli/baseline_child.hpp"
#include "cli/find_program.hpp"
#include "cli/scratch_folder.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/sanitizer_record.hpp"
#include "scoring/sanitizer_report.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t report_bytes_max = size_t{4} << 20;
constexpr size_t log_bytes_max = size_t{64} << 10;
/// What is asked of compute-sanitizer when there are errors: none of our programs ends so.
constexpr int error_status = 86;
constexpr int printed_reports_max = 500;
constexpr std::chrono::seconds question_limit{30};

const std::vector<std::string>& usual_places() {
  static const std::vector<std::string> all{
    "/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer"};
  return all;
}

/// For the shell: between quotes nothing has a meaning.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string command_line(const std::vector<std::string>& command, const std::string& log) {
  std::string out = "exec";
  for (const auto& word : command)
    out += " " + quoted(word);
  return out + " >" + quoted(log) + " 2>&1 </dev/null";
}

/// The beginning of a file, and whether there is more.
std::pair<std::string, bool> beginning_of(const fs::path& file, size_t bytes_max) {
  std::ifstream in(file, std::ios::binary);
  std::string text(bytes_max + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
  const bool more = text.size() > bytes_max;
  if (more)
    text.resize(bytes_max);
  return {std::move(text), more};
}

/// A text of a child within a sentence of ours: one line, without control characters.
std::string plain(std::string_view text, size_t max) {
  const auto quoted_text = excerpt(text, max);
  return quoted_text.substr(1, quoted_text.size() - 2);
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  const auto at = text.rfind('\n');
  return plain(at == std::string::npos ? text : text.substr(at + 1), 200);
}

/// "Version 2025.3.1.0 (build …)" of what `--version` prints.
std::string version_in(const std::string& text) {
  constexpr std::string_view word = "Version ";
  const auto at = text.find(word);
  if (at == std::string::npos)
    return "of unknown version";
  const auto begin = at + word.size();
  return plain(text.substr(begin, text.find_first_of(" \n", begin) - begin), 40);
}

std::vector<std::string> sanitizer_command(
  const sanitizer_program& program, sanitizer_tool tool, const std::string& report) {
  std::vector<std::string> out{program.path, "--tool", to_string(tool), "--error-exitcode",
    std::to_string(error_status), "--log-file", report, "--print-limit",
    std::to_string(printed_reports_max)};
  const auto add = [&](const std::string& option, const std::string& value) {
    if (program.help.find(option) != std::string::npos)
      out.insert(out.end(), {option, value});
  };
  add("--show-backtrace", "no");
  // Calls of the driver are ours, and their failures follow from what kernels did. The room behind
  // each buffer shows accesses that would meet the next one.
  if (tool == sanitizer_tool::memcheck) {
    add("--report-api-errors", "no");
    add("--padding", "256");
  }
  return out;
}

std::vector<std::string> jail_command(const sanitized_job& what, std::vector<std::string> inside) {
  std::vector<std::string> out{(what.programs / "gristmill-jail").string(), "--parent",
    std::to_string(getpid()), "--directory", what.folder, "--device", what.device, "runner", "--"};
  out.insert(
    out.end(), std::make_move_iterator(inside.begin()), std::make_move_iterator(inside.end()));
  return out;
}

/// Why not every workload was called to its end; empty when it was.
std::string not_called(
  const sanitized_calls* calls, const sanitized_job& what, const std::string& log) {
  if (calls == nullptr)
    return "the runner made no call: " + last_line(log);
  for (const auto& call : calls->calls)
    if (!call.failed.empty())
      return "workload " + call.uuid + ": " + plain(call.failed, 300);
  if (calls->calls.size() != what.workloads)
    return fmt::format("{} of {} workloads were called", calls->calls.size(), what.workloads);
  return {};
}

/// What a runner on a mock found by itself.
sanitizer_look own_look(sanitizer_tool tool, const sanitized_calls* calls,
  const std::string& missing, const std::string& ended) {
  sanitizer_look out;
  out.tool = tool;
  std::string why = ended.empty() ? missing : ended;
  for (const auto& call : calls == nullptr ? std::vector<sanitized_calls::call>{} : calls->calls) {
    out.left_out += call.left_out;
    for (const auto& found : call.findings)
      if (out.findings.size() < sanitizer_findings_max)
        out.findings.push_back(found);
      else
        out.left_out += found.count;
    for (const auto& each : call.not_seen)
      if (why.empty())
        why = "workload " + call.uuid + ": " + each;
  }
  const bool found = !out.findings.empty() || out.left_out > 0;
  out.end = found ? look_end::found : why.empty() ? look_end::clean : look_end::did_not_look;
  out.why = std::move(why);
  return out;
}

} // namespace

result<sanitizer_program> find_sanitizer(const std::string& given) {
  const std::string name = given.empty() ? "compute-sanitizer" : given;
  std::string path = find_program(name);
  if (given.empty() && path.empty())
    for (const auto& place : usual_places())
      if (path.empty() && is_program(place))
        path = place;
  if (path.empty()) {
    std::vector<std::string> there;
    for (const auto& place : usual_places())
      if (is_program(place))
        there.push_back(place);
    if (auto found = find_program("compute-sanitizer"); !found.empty())
      there.push_back(std::move(found));
    return fail(errc::invalid_input,
      fmt::format("--sanitizer-program {}: no such program{}", excerpt(name, 200),
        there.empty() ? "; compute-sanitizer is neither on the PATH nor in /usr/local/cuda/bin; "
                        "name it with --sanitizer-program PATH (it comes with the CUDA toolkit)"
                      : suggestion(name, there)));
  }
  auto scratch = scratch_folder::create("gristmill-sanitizer-");
  if (!scratch)
    return pass(scratch);
  const auto said = [&](const std::string& option) -> result<std::string> {
    const auto log = (scratch->path() / "said").string();
    auto ended = run_in_folder(
      command_line({path, option}, log), scratch->path().string(), {}, question_limit);
    auto text = beginning_of(log, log_bytes_max).first;
    if (ended && *ended == 0)
      return text;
    return fail(errc::invalid_input,
      fmt::format("--sanitizer-program {}: does not answer to {}: {}", path, option,
        ended ? fmt::format("exit status {}, {}", *ended, last_line(text)) : ended.error().what));
  };
  auto version = said("--version");
  if (!version)
    return pass(version);
  auto help = said("--help");
  if (!help)
    return pass(help);
  return sanitizer_program{path, "compute-sanitizer " + version_in(*version), std::move(*help)};
}

result<std::vector<sanitizer_tool>> read_sanitizer_tools(const std::string& text) {
  if (text.empty() || text == "all")
    return sanitizer_tools();
  std::vector<std::string> known;
  for (const auto each : sanitizer_tools())
    known.push_back(to_string(each));
  std::vector<sanitizer_tool> out;
  for (size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto name = text.substr(at, end - at);
    at = end + 1;
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      return fail(errc::invalid_input,
        fmt::format("--sanitize {}: there is no tool {}{}", excerpt(text), excerpt(name),
          suggestion(name, known)));
    const auto tool = sanitizer_tools()[static_cast<size_t>(found - known.begin())];
    if (std::find(out.begin(), out.end(), tool) == out.end())
      out.push_back(tool);
  }
  return out;
}

sanitizer_look look_with(
  const sanitizer_program* program, sanitizer_tool tool, const sanitized_job& what) {
  const std::vector<std::string> runner{
    (what.programs / "gristmill-runner").string(), "--sanitized", to_string(tool), what.folder};
  const auto texts = texts_of(tool, what);
  const auto report = texts.front().string();
  const auto log = texts.back().string();
  std::error_code error;
  // Of the look before.
  fs::remove(fs::path(what.folder) / sanitized_calls_file, error);
  auto inside = program == nullptr ? runner : sanitizer_command(*program, tool, report);
  if (program != nullptr)
    inside.insert(inside.end(), runner.begin(), runner.end());
  std::vector<std::string> variables;
  if (program != nullptr)
    variables.emplace_back("GRISTMILL_SANDBOX=limits");
  const auto ended = run_in_folder(
    command_line(jail_command(what, std::move(inside)), log), what.folder, variables, what.limit);
  const auto log_text = beginning_of(log, log_bytes_max).first;
  sanitizer_circumstances how;
  if (!ended)
    how.ended = ended.error().code == errc::timed_out ? "over the limit of " + what.limit_text
                                                      : ended.error().what;
  how.status = ended.value_or(0);
  how.error_status = error_status;
  auto text =
    read_text_file(fs::path(what.folder) / sanitized_calls_file, sanitizer_record_bytes_max);
  auto calls = text ? sanitized_calls_from_json(*text) : result<sanitized_calls>{pass(text)};
  how.not_called = not_called(calls ? &*calls : nullptr, what, log_text);
  if (program == nullptr)
    return own_look(tool, calls ? &*calls : nullptr, how.not_called, how.ended);
  auto [reported, is_cut] = beginning_of(report, report_bytes_max);
  how.is_cut = is_cut;
  auto out = read_sanitizer_report(tool, reported, how);
  if (out.end == look_end::did_not_look && reported.empty() && !log_text.empty())
    out.why += ": " + last_line(log_text);
  return out;
}

std::vector<fs::path> texts_of(sanitizer_tool tool, const sanitized_job& what) {
  const fs::path folder = what.folder;
  return {
    folder / ("report-" + to_string(tool) + ".txt"), folder / ("log-" + to_string(tool) + ".txt")};
}

std::string jail_of(const sanitizer_program* program) {
  return program == nullptr ? "as a runner" : "limits";
}

} // namespace gristmill
