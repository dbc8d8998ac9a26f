#pragma once

#include "messages/compile.hpp"
#include "messages/measure.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What kind of trouble a candidate is in, or that it is only slower than it could be.
enum class feedback_class : uint8_t { compile = 0, wrong, slow, hang, fault, cheat };

std::string to_string(feedback_class what);

/// One thing that the compiler said.
struct feedback_diagnostic {
  /// Of the candidate's source, from 1; 0 when the compiler named none.
  uint32_t line = 0;
  std::string message;
  /// The line with its neighbours, numbered, as a person would look at it.
  std::string source;
};

/// One output of one workload that misses its reference.
struct feedback_miss {
  std::string workload;
  std::string output;
  /// Of the tensor that was compared; a twin's where `shrunken`.
  std::vector<int64_t> shape;
  bool shrunken = false;
  uint64_t elements = 0;
  uint64_t mismatches = 0;
  f64 max_absolute_error;
  f64 max_relative_error;
  bool has_nan = false;
  bool has_inf = false;
  bool all_zero = false;
  /// In words; empty for none.
  std::string where;
};

/// Where the time of one workload goes.
struct feedback_time {
  std::string workload;
  uint64_t time_ns = 0;
  uint64_t floor_ns = 0;
  uint64_t baseline_ns = 0;
  /// Name of the largest term.
  std::string limiter;
  /// Largest first.
  std::vector<time_term> terms;
};

/// What an agent may know of a verdict: schema `gristmill.feedback/1`. Holds no path of a host and
/// nothing of reference tensors but counts.
struct feedback {
  feedback_class what = feedback_class::slow;
  time_origin origin = time_origin::none;
  /// One line.
  std::string summary;
  std::vector<feedback_diagnostic> diagnostics;
  std::vector<feedback_miss> misses;
  /// The slowest against its floor first.
  std::vector<feedback_time> times;
  /// Of a fault or a hang: the workload and what the device said, with its PTX line.
  std::string workload;
  std::string detail;
  std::vector<finding> findings;
  /// How many entries of the lists above were left out.
  uint32_t left_out = 0;
};

/// The largest document, in bytes of JSON.
inline constexpr size_t feedback_bytes_max = 8192;

/// Of a candidate that the compiler refused. `source` is its own.
feedback feedback_of_refusal(
  const compiled_candidate& compiled, const verdict& judged, std::string_view source);

/// Shape of an output as it was compared; empty when it is not known.
using output_shape = std::function<std::vector<int64_t>(
  const std::string& workload, const std::string& output, bool shrunken)>;

/// Of a candidate that ran, or tried to.
feedback feedback_of_verdict(const verdict& judged, const measurement& measured,
  const evaluation& compared, const output_shape& shape_of);

/// At most `feedback_bytes_max` bytes: entries at the end of the longest list go first.
std::string to_json(feedback what);
/// `invalid_input` names the field.
result<feedback> parse_feedback(std::string_view json);

/// For a prompt: plain text of at most `bytes_max` bytes, in whole lines.
std::string to_text(const feedback& what, size_t bytes_max = 2048);

} // namespace gristmill
