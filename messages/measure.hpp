#pragma once

#include "messages/attempt.hpp"
#include "messages/compile.hpp"
#include "messages/lease.hpp"
#include "messages/verdict.hpp"
#include "messages/wire.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Run a compiled candidate under a lease: correctness of every workload, then the clock.
///
/// A lease may span several measurements, such as those of a candidate and of its incumbent in
/// turns: parts. With `last` false the executor answers and keeps the lease for the next part,
/// until its idle limit. A part that faults, hangs or cannot be run ends the lease whatever `last`
/// says.
struct measure_request {
  lease under;
  attempt_id attempt;
  candidate_ref candidate;
  std::vector<compiled_unit> units;
  /// Uuids of the workloads to measure, in any order; empty for all.
  std::vector<std::string> workloads;
  /// Place within the lease: larger than that of every part before.
  uint32_t part = 0;
  /// The lease ends with this part.
  bool last = true;
};

/// One term of a modelled time, in nanoseconds, such as {"dram", 62000}.
struct time_term {
  std::string name;
  f64 ns;
};

/// What the runner says about one workload.
struct workload_measurement {
  std::string uuid;
  /// passed means "ran to its end"; runtime_error and timeout are the candidate's; infrastructure
  /// is ours.
  verdict_status status = verdict_status::infrastructure;
  /// Median of the samples; 0 when there is none.
  uint64_t time_ns = 0;
  std::vector<uint64_t> samples_ns;
  std::vector<time_term> terms;
  /// The largest term: what to improve first.
  std::string bound;
  /// True when the correctness run used a shrunken twin.
  bool shrunken = false;
  /// Fault with its PTX line, or the reason of a failure.
  std::string detail;
};

/// Answer of the gpu actor; when it arrives the lease is over, unless `last` was false and the part
/// ran well.
struct measurement {
  attempt_id attempt;
  uint32_t gpu = 0;
  uint64_t token = 0;
  /// Of the request.
  uint32_t part = 0;
  std::string device;
  time_origin origin = time_origin::none;
  std::vector<workload_measurement> workloads;
  /// Folder with the outputs of the correctness runs, for the judge on the same node.
  std::string output_folder;
  /// What the runner noticed: writes to inputs, changed module globals, scratch that was not
  /// restored.
  std::vector<finding> findings;
  /// From the start of the first part to the verified release. With several parts each tells its
  /// own share: from the answer of the part before it to its own.
  std::chrono::nanoseconds held{0};
  /// Set when no workload could be run at all.
  std::string failure_text;
};

/// Compare outputs with references and decide.
struct judge_request {
  attempt_id attempt;
  attempt_kind kind = attempt_kind::search;
  candidate_ref candidate;
  /// The verdict of a probe speaks of the measured workloads only and makes no incumbent.
  attempt_effort effort = attempt_effort::full;
  /// As in the `measure_request`.
  std::vector<std::string> workloads;
  measurement measured;
};

/// A verdict reached without running: the compiler refused the candidate.
struct refused_request {
  attempt_id attempt;
  attempt_kind kind = attempt_kind::search;
  candidate_ref candidate;
  attempt_effort effort = attempt_effort::full;
  compiled_candidate compiled;
};

} // namespace gristmill
