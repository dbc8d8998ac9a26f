#pragma once

#include "journal/blob_store.hpp"
#include "messages/event.hpp"
#include "messages/evidence.hpp"
#include "messages/result.hpp"
#include "messages/sanitizer.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// A verdict as the log of a run has it.
struct stored_verdict {
  uint64_t seq = 0;
  /// "verdict", "probe_verdict" or "no_verdict".
  std::string kind;
  std::string attempt;
  std::string candidate;
  std::string status;
  uint64_t objective_ns = 0;
  std::vector<finding> findings;
  /// Workloads that needed an audit.
  std::vector<std::string> need_audit;
  std::string reason;
  /// Name of the blob with the evidence; empty for none: the compiler refused the candidate, or the
  /// run is older than evidence.
  std::string evidence_sha256;
};

struct stored_verdicts {
  /// In the order of the log.
  std::vector<stored_verdict> all;
  blob_store blobs;
  /// What compute-sanitizer said, oldest first (cli/sanitizer_evidence.hpp).
  std::vector<sanitizer_record> sanitizer;
};

/// All verdicts of a run. Errors: those of `read_events` and `read_records`; `invalid_input` for
/// data that is not what its kind promises.
result<stored_verdicts> read_verdicts(const std::filesystem::path& run);

/// The evidence of a verdict that has one. Errors: those of `stored_text` and `evidence_from_json`.
result<evidence> read_evidence(const blob_store& blobs, const stored_verdict& of);

} // namespace gristmill
