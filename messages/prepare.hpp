#pragma once

#include "messages/blob.hpp"
#include "messages/verdict.hpp"
#include "messages/wire.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// Make inputs and references of a problem, and its operator graph where none is shipped.
struct prepare_request {
  std::string problem;
};

/// One axis and its value.
struct axis_value {
  std::string name;
  int64_t value = 0;
};

/// One workload as this node will run it.
struct prepared_workload {
  std::string uuid;
  /// True when the correctness run uses `check_axes` that differ from the workload's.
  bool shrunken = false;
  std::vector<axis_value> check_axes;
  /// T_SOL of the whole workload and how it was got.
  uint64_t floor_ns = 0;
  std::string floor_method;
};

struct prepared_problem {
  std::string problem;
  /// passed, or with `reason`: invalid_reference, runtime_error (an input could not be made),
  /// infrastructure, not_checked.
  verdict_status status = verdict_status::invalid_reference;
  std::vector<prepared_workload> workloads;
  blob_ref graph;
  /// Whether a baseline comes from `--bounds`; then no baseline attempt is needed.
  bool has_bounds = false;
  std::string reason;
};

} // namespace gristmill
