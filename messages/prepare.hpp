#pragma once

#include "messages/blob.hpp"
#include "messages/candidate.hpp"
#include "messages/verdict.hpp"
#include "messages/wire.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// Make inputs and references of a problem, and its operator graph where none is shipped.
///
/// With a draw it makes only what a promotion needs and the problem's first preparation has not
/// made: sets from held-out distributions and neighbouring shapes, other ones for each draw.
struct prepare_request {
  std::string problem;
  /// Names the promotion, such as "softmax/cuda/17"; empty for the problem itself.
  std::string draw;
  /// Whose plan says which shapes are neighbours. Only of a draw.
  candidate_ref candidate;
};

/// Nobody needs what this draw made any more: its files are removed. Of a draw that is still being
/// made, as soon as it is.
struct draw_over {
  std::string draw;
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
  /// Sets of inputs that every candidate is checked on.
  uint32_t sets = 1;
  /// Why there are fewer than the run asks for; empty when there are not.
  std::string sets_note;
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
