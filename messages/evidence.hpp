#pragma once

#include "messages/attempt.hpp"
#include "messages/measure.hpp"
#include "messages/verdict.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// What a candidate's time on one workload is held against.
struct workload_yardstick {
  std::string uuid;
  /// T_b; 0 = none known (yet).
  uint64_t baseline_ns = 0;
  /// Where T_b comes from. A time of another origin is not compared with it.
  time_origin baseline_origin = time_origin::none;
  /// T_SOL; 0 = none known. A bound by nominal rates: a time below it needs an explanation.
  uint64_t floor_ns = 0;
  /// What physics forbids to beat (`physical_floor` of scoring/floor.hpp); 0 = none known. A time
  /// below it is none.
  uint64_t physical_ns = 0;
};

/// What the definition says about one output.
struct output_facts {
  std::string output;
  /// Name of the element type, such as "float32".
  std::string type;
};

/// Everything a verdict rests on, as it was at the time: rules that are made later can be tried on
/// it. It holds counts and times, never tensors.
struct evidence {
  attempt_id attempt;
  attempt_kind kind = attempt_kind::search;
  attempt_effort effort = attempt_effort::full;
  measure_purpose purpose = measure_purpose::screen;
  candidate_ref candidate;
  /// With whom it was measured in blocks; empty hash = with nobody.
  candidate_ref against;
  /// Such as "clang-19.1.7".
  std::string toolchain;
  /// Such as "NVIDIA H200"; that of the measurement, kept where there is none.
  std::string device;
  measurement measured;
  evaluation judged;
  /// The workloads that the verdict is about, all of them, in the problem's order: the denominator
  /// of every mean.
  std::vector<workload_yardstick> yardsticks;
  std::vector<output_facts> outputs;
  /// Bits of the narrowest floating-point input: 8, 16, 32 or 64; 0 = none or not known.
  uint32_t narrowest_input_bits = 0;
  /// The plan's `domain`, "true" for every shape.
  std::string domain = "true";
  /// What the checks of the compiled code found.
  std::vector<finding> compiled;
  /// Attempts on the problem so far, this one included; 0 = not counted.
  uint32_t attempts = 0;
  /// How often this candidate has been measured again on a suspicion.
  uint32_t retrials = 0;
};

} // namespace gristmill
