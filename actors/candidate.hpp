#pragma once

#include "actors/run_context.hpp"
#include "messages/attempt.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// A candidate's launch plan on one workload: as it is, and as its correctness run sees it.
struct candidate_workload {
  std::string uuid;
  /// True when `check` has other axes than the workload.
  bool shrunken = false;
  std::vector<std::pair<std::string, int64_t>> check_axes;
  resolved_workload check;
  resolved_workload full;
};

struct resolved_candidate {
  plan parsed;
  std::string source;
  std::vector<candidate_workload> workloads;
  /// The distinct units of all workloads, ordered by key.
  std::vector<compile_unit> units;
};

/// Reads source and plan from the blob store and resolves the plan on every workload of the
/// problem. `invalid_input` for a plan that does not parse, resolve or cover a workload, with a
/// text for the candidate's author; `not_found` for an unknown problem or a blob that is gone. Also
/// refuses
/// (`refused`) a plan whose shrunken twin would use another unit than the workload itself: what was
/// not checked must not be timed.
result<resolved_candidate> resolve_candidate(
  const run_context& context, const std::string& problem_name, const candidate_ref& candidate);

/// Puts source and plan into the blob store and names the pair.
result<candidate_ref> store_candidate(blob_store& blobs, const std::string& source,
  const std::string& plan_text, std::string key, std::string parent, std::string hypothesis);

} // namespace gristmill
