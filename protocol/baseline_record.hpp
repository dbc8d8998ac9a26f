#pragma once

#include "protocol/field_reader.hpp"
#include "protocol/json_document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Times of one call, in nanoseconds.
struct time_summary {
  double median = 0;
  /// Median of the distances from the median.
  double mad = 0;
  double min = 0;
  double max = 0;
  int64_t samples = 0;

  friend bool operator==(const time_summary&, const time_summary&) = default;
};

/// One way to compute a baseline, as `gristmill baseline` measured it, or why there is no time.
struct baseline_mode {
  /// "eager", "compile", "cublaslt", …
  std::string name;
  /// Empty when it was timed. A mode with a reason has no times and does not count.
  std::string reason;
  /// What was chosen among several, such as an algorithm; may be empty.
  std::string choice;
  /// Device events around a call that was enqueued behind a wait.
  std::optional<time_summary> device;
  /// The same without the wait: launches count where they are slower than the device.
  std::optional<time_summary> span;
  /// From the first activity of the device to the last, by the profiler.
  std::optional<time_summary> activity;

  /// What counts, as for candidates: activities where the profiler saw all of them, else events.
  /// Only of a mode that was timed.
  const time_summary& counted() const { return activity ? *activity : *device; }

  friend bool operator==(const baseline_mode&, const baseline_mode&) = default;
};

/// Where T_b of a workload is from.
struct baseline_record {
  /// The mode whose median is T_b; one of those below that was timed.
  std::string winner;
  std::vector<baseline_mode> modes;
  /// A copy that moves as many bytes as the workload must, in the same protocol.
  std::optional<time_summary> copy;
  /// What that copy moved: bytes read and bytes written together.
  int64_t copy_bytes = 0;

  const baseline_mode* find(std::string_view mode) const;

  friend bool operator==(const baseline_record&, const baseline_record&) = default;
};

/// Both directions of `"baseline"` of a workload in a bounds table. The reader is strict: unknown
/// keys, times that are not positive and a winner that was not timed are errors at their path.
baseline_record read_baseline(
  const ordered_json& from, const std::string& path, field_reader& fields);
ordered_json to_json(const baseline_record& record);

/// A summary as the measuring script writes it; the same rules.
time_summary read_summary(const ordered_json& from, const std::string& path, field_reader& fields);

} // namespace gristmill
