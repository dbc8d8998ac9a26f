#pragma once

#include "messages/blob.hpp"
#include "messages/result.hpp"
#include "protocol/json_document.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

// How a problem folder reaches another machine: as a list of named blobs, of which the same loader
// reads the same problem there. Exactly the files that `load_problem` reads travel:
// `definition.json`, which holds the reference and the code of custom inputs, `workload.jsonl`, and
// `graph.json` where there is one. Files of safetensors inputs do not: a node finds them below its
// own folders (FLASHINFER_TRACE_DIR). A built-in problem is in every program and has no files.

namespace gristmill {

/// Definition and workloads are texts that people write.
inline constexpr uint64_t problem_file_bytes_max = uint64_t{1} << 20;
inline constexpr size_t problem_files_max = 64;

struct problem_file {
  /// Its name in the folder; never a path.
  std::string name;
  blob_ref content;

  friend bool operator==(const problem_file&, const problem_file&) = default;
};

struct problem_listing {
  /// As `problem::name`.
  std::string name;
  /// None for a built-in.
  std::vector<problem_file> files;

  friend bool operator==(const problem_listing&, const problem_listing&) = default;
};

struct problem_text {
  std::string name;
  std::string text;

  friend bool operator==(const problem_text&, const problem_text&) = default;
};

/// The texts that travel, as they were read; none of a built-in. Errors: `invalid_input` for one
/// that is too large and for a problem whose name is no name of a folder.
result<std::vector<problem_text>> problem_texts(const problem& from);

/// What a node checks before it fetches anything. Errors: `invalid_input`, naming the problem, the
/// file and the rule: an unknown file, one twice, a missing one, a malformed hash, too many bytes.
result<void> check_listing(const problem_listing& listing);

/// `{"name": ..., "files": [{"name": ..., "sha256": ..., "bytes": ...}]}`.
ordered_json to_json(const problem_listing& listing);
/// Reads and checks. `where` stands before every message.
result<problem_listing> parse_listing(const ordered_json& from, const std::string& where);

/// Writes the texts to `<root>/<name>/` and loads the problem from there. `root` belongs to this
/// process; what an earlier start left there under that name is replaced. Errors: `invalid_input`
/// for other texts than the listing names and for what the loader refuses; `io_failed`, and then
/// nothing is left.
result<problem> write_problem(const std::filesystem::path& root, const problem_listing& listing,
  std::span<const problem_text> texts);

/// What is missing here of the files that safetensors inputs name, a sentence each; looked for in
/// the problem's own folder and then below `roots`, as the oracle does. Empty when all is there.
std::vector<std::string> missing_data(
  const problem& of, std::span<const std::filesystem::path> roots);

} // namespace gristmill
