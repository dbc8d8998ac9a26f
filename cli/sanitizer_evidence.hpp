#pragma once

#include "messages/evidence.hpp"
#include "messages/result.hpp"
#include "messages/sanitizer.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// What compute-sanitizer said of a run's candidates: files beside the log,
/// `RUN/sanitizer/HASH.json`, each named by the SHA-256 of its content. The log of a run has ended
/// with it, or is being written by the run itself, so nothing is appended to it: decision 0042.
namespace gristmill {

/// Keeps a record with a run. The file appears complete or not at all. Answers its path. Errors:
/// `io_failed`.
result<std::string> keep_record(const std::filesystem::path& run, const sanitizer_record& what);

/// All records of a run, oldest first; none where nobody has looked. Errors: `io_failed`, and
/// `invalid_input` for a file whose content is not what its name says, or is no record.
result<std::vector<sanitizer_record>> read_records(const std::filesystem::path& run);

/// The evidence with what the records found of its candidate, for the rule `sanitizer`. A later
/// clean look takes no finding back.
evidence with_records(evidence of, const std::vector<sanitizer_record>& records);

/// The records of one candidate.
std::vector<sanitizer_record> records_of(
  const std::vector<sanitizer_record>& records, const std::string& candidate);

} // namespace gristmill
