#pragma once

#include "actors/run_context.hpp"
#include "kernels/search.hpp"
#include "kernels/search/program_search_space.hpp"
#include "kernels/search/search_memory.hpp"
#include "messages/attempt.hpp"
#include "messages/result.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// A problem made ready for searching. Everything in it follows from the problem and its graph.
struct searchable_problem {
  explicit searchable_problem(program_space programs) : space(std::move(programs)) {}

  program_search_space space;
  std::vector<search_workload> workloads;
  plan_check check;
  /// `structure_of` its graph.
  std::string structure;
};

/// What the proposers of a run share: spaces, which take milliseconds to make and never change, and
/// what searches found out for problems of equal structure. Losing it costs time, nothing else. May
/// be used by several threads at once.
class search_library {
public:
  /// Made at the first question. Errors of the blob store; `invalid_input` for a graph that does
  /// not parse; `unsupported` with a reason when some operator has no kernel.
  result<std::shared_ptr<const searchable_problem>> find(
    const run_context& context, const problem& target, const blob_ref& graph);

  /// Learns from the problem's trials; gives the best points of its relatives.
  std::vector<std::string> exchange(
    const searchable_problem& of, const std::string& problem_name, const trial_history& history);

private:
  std::mutex guard_;
  /// By name of the problem and hash of its graph.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const searchable_problem>> known_;
  search_memory memory_;
};

} // namespace gristmill
