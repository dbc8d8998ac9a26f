#pragma once

#include "simulation/replay/lease_trace.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// Reads the lease events of a run directory, its `run.db`, the state folder of a broker
/// (`journal.1.jsonl`, then `journal.jsonl`) or a JSONL file in the form of docs/trace-format.md.
/// Lines are read one by one, so memory grows with the number of requests only. Errors:
/// `not_found`, `io_failed`, `invalid_input` naming file and line, `unsupported` for lines of
/// another schema, `refused` over a limit.
result<lease_trace> read_lease_trace(
  const std::filesystem::path& path, const lease_trace_limits& limits = {});

struct trace_findings {
  /// Whole sentences that name file and line, the first hundred.
  std::vector<std::string> faults;
  uint64_t faults_total = 0;
  /// What could be read of it.
  lease_trace trace;
};

/// Reads on after a fault and lists all of them. Errors: `not_found`, `io_failed`.
result<trace_findings> check_lease_trace(
  const std::filesystem::path& path, const lease_trace_limits& limits = {});

} // namespace gristmill
