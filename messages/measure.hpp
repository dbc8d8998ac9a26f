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

/// Why a candidate is measured.
enum class measure_purpose : uint8_t {
  /// First look: right on the run's pool of input sets, then the clock.
  screen = 0,
  /// May it become the incumbent? Sets that were never used before, from held-out distributions and
  /// at neighbouring shapes, and in blocks against the incumbent. The figure that is reported comes
  /// from here.
  promotion,
};

std::string to_string(measure_purpose purpose);

/// What a promotion is compared with.
struct rival {
  candidate_ref candidate;
  std::vector<compiled_unit> units;
};

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
  measure_purpose purpose = measure_purpose::screen;
  /// Only of a promotion: the draw that its inputs were made under (`prepare_request`).
  std::string draw;
  /// Only of a promotion, and only where there is an incumbent to compare with.
  maybe<rival> against;
};

/// One term of a modelled time, in nanoseconds, such as {"dram", 62000}.
struct time_term {
  std::string name;
  f64 ns;
};

/// One activity of a call on the device, as a tracer saw it: what ran, not how long.
struct device_activity {
  /// "kernel", "memset" or "copy".
  std::string kind;
  /// Name of the kernel; empty for the others.
  std::string name;
  std::vector<uint32_t> grid;
  std::vector<uint32_t> block;
  /// Of a memset or copy.
  uint64_t bytes = 0;

  friend bool operator==(const device_activity&, const device_activity&) = default;
};

/// The device while samples were taken, from the vendor's management library; 0 = it did not say.
struct device_weather {
  uint32_t readings = 0;
  uint32_t sm_mhz_min = 0;
  uint32_t sm_mhz_max = 0;
  uint32_t memory_mhz_min = 0;
  uint32_t memory_mhz_max = 0;
  uint32_t power_mw_max = 0;
  uint32_t temperature_c_max = 0;
  /// Reasons for throttling that held at any reading, in the library's bits.
  uint64_t throttle_bits = 0;
  /// Processes on the device that are not ours, at most at one time.
  uint32_t foreign_processes = 0;
};

/// How the samples of one workload were taken on a real device. A modelled time has none.
struct timing_record {
  /// "cupti": from the first activity's start to the last one's end, as the tracer saw them.
  /// "events": device events around a call that was enqueued behind a wait.
  std::string method;
  /// Why not by the tracer; empty when it was.
  std::string fallback;
  /// What L2 held before each call: "official" or "clean".
  std::string flush;
  uint32_t warm_up_calls = 0;
  /// The same calls as a benchmark in PyTorch sees them: events, the host enqueuing meanwhile.
  std::vector<uint64_t> span_ns;
  /// By events with the call enqueued behind a wait; equal to the samples when `method` is
  /// "events".
  std::vector<uint64_t> device_ns;
  /// What each call did. Every timed call did exactly this.
  std::vector<device_activity> activities;
  /// Samples that were taken again because records of the tracer lacked.
  uint32_t taken_again = 0;
  /// Clock of the multiprocessors by a kernel of ours that counts cycles, before and after.
  uint32_t canary_khz_before = 0;
  uint32_t canary_khz_after = 0;
  device_weather weather;
  /// Timed calls whose outputs were digested on the device and compared with those of the checked
  /// run on the same inputs; how many were equal; how many were written out for the judge.
  uint32_t digested = 0;
  uint32_t digests_equal = 0;
  uint32_t written_out = 0;

  bool taken() const { return !method.empty(); }
};

/// Outputs of one call that the judge is to compare.
struct written_call {
  /// Which case of the workload, as numbered by the job.
  uint32_t check = 0;
  /// "check", or for a timed call "timed 17".
  std::string call;
};

/// One block of a comparison: so many calls of one side in a process of its own.
struct comparison_block {
  /// True for the incumbent's.
  bool rival = false;
  uint64_t median_ns = 0;
  uint64_t mad_ns = 0;
  uint32_t samples = 0;
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
  /// Empty (`taken() == false`) for a modelled time.
  timing_record timing;
  /// What was written into the output folder for the judge, in order.
  std::vector<written_call> written;
  /// Of a promotion with a rival, in the order in which the blocks ran.
  std::vector<comparison_block> blocks;
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
  measure_purpose purpose = measure_purpose::screen;
  std::string draw;
  maybe<rival> against;
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
