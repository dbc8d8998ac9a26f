#include "kernels/search.hpp"

#include "kernels/search/program_search_space.hpp"
#include "kernels/search/proposal_maker.hpp"

namespace gristmill {

search_result propose(const problem& target, const op_graph& graph, const trial_history& history,
  const std::vector<std::string>& in_flight, uint64_t seed, const search_limits& limits,
  search_strategy strategy) {
  auto programs = program_space::make(target, graph);
  if (!programs)
    return search_ended(search_outcome::no_candidate, programs.error().what);
  const program_search_space space(std::move(*programs));
  const auto workloads = search_workloads(target, 0);
  return propose(space, {workloads, history, in_flight, seed, {}, {}, limits}, strategy);
}

} // namespace gristmill
