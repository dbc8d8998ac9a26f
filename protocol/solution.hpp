#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

struct problem;

/// One file of a solution.
struct source_file {
  /// Relative, with `/` between its components.
  std::string path;
  std::string content;

  friend bool operator==(const source_file&, const source_file&) = default;
};

/// Flags for the build of C++ sources. The defaults are those of an object whose keys are missing;
/// a solution without the object has no flags of its own at all.
struct compile_options {
  std::vector<std::string> cflags;
  std::vector<std::string> cuda_cflags{"-O3", "--use_fast_math"};
  std::vector<std::string> ld_flags{"-lcuda"};

  friend bool operator==(const compile_options&, const compile_options&) = default;
};

/// A solution as `solution.json` states it (specification, section 3). A text that is null in the
/// file is empty here.
struct solution {
  std::string name;
  /// The `name` of the definition that it solves.
  std::string definition_name;
  std::string author;
  std::string description;
  /// Names of `solution_languages(...)`, of one side only; none at all counts as Python.
  std::vector<std::string> languages;
  /// Each "B200" or "LOCAL", at least one.
  std::vector<std::string> target_hardware;
  /// "file::function".
  std::string entry_point;
  std::vector<std::string> dependencies;
  /// The outputs are the last arguments of the call, and what it returns is ignored.
  bool destination_passing_style = true;
  /// "torch", or empty for null, which means the same.
  std::string binding;
  std::optional<compile_options> options;
  std::vector<source_file> sources;

  /// The languages are of the C++ side.
  bool is_cpp() const;
  /// What stands before and behind the `::`.
  std::string_view entry_file() const;
  std::string_view entry_function() const;

  friend bool operator==(const solution&, const solution&) = default;
};

/// The languages that are imported by Python, and those that are built with a C++ compiler.
const std::vector<std::string>& python_languages();
const std::vector<std::string>& cpp_languages();

enum class solution_rules : uint8_t {
  /// Exactly what the official models accept.
  official,
  /// Also refuses paths that would overwrite or shadow what the evaluation needs; see
  /// `dangerous_paths`.
  safe,
};

/// Reads and checks a solution that carries all its sources. All field errors come in one message,
/// a line each ("file:line: field: rule"); the cross-field rules run only when no field failed. A
/// solution of the older FlashInfer-Bench form is refused with a pointer to `gristmill convert`.
/// Ignored keys become warnings.
result<solution> parse_solution(std::string_view text, const std::string& file_name,
  std::vector<std::string>* warnings = nullptr, solution_rules rules = solution_rules::safe);

/// The same from a file, with each absent or empty `content` filled from the file of that path next
/// to it. A missing neighbour is a failure that names it; one outside the folder (through a link)
/// is not read.
result<solution> load_solution(const std::filesystem::path& path,
  std::vector<std::string>* warnings = nullptr, solution_rules rules = solution_rules::safe);

/// Why the sources must not be written into a folder from which the evaluation runs, one text for
/// each bad path ("sources.0.path: …"): it replaces a file of the evaluation, shadows a Python
/// module that the evaluation imports, or is spelt so that another path means the same file.
std::vector<std::string> dangerous_paths(const solution& given);

/// Refuses a solution that names another definition.
result<void> check_solution_fits(const solution& given, const problem& target);

/// `solution.json`: all fields in the order of the format, defaults filled in, two blanks of
/// indentation and a final newline. Bytes that are not UTF-8 are replaced by U+FFFD.
std::string to_json(const solution& given);

} // namespace gristmill
