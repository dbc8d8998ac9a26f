#pragma once

#include "kernels/search.hpp"
#include "kernels/search/point_model.hpp"
#include "kernels/search/proposal_maker.hpp"
#include "kernels/search/search_record.hpp"
#include "kernels/search/workload_groups.hpp"
#include "kernels/splitmix64.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// The default strategy; see `propose`. Made for one question.
class guided_search {
public:
  guided_search(const search_space& space, const search_question& question);

  search_result next();

private:
  using offer = std::optional<search_result>;

  // In the order in which they are asked.
  offer first_point();
  /// Nothing was correct yet: other kernels for the same stages, down to the plainest.
  offer ladder();
  offer combination();
  offer promotion();
  offer relative();
  /// What the families themselves would try next.
  offer promise();
  offer start();
  offer move();
  offer random_point();
  /// Before the end: the best once more.
  offer confirmation();

  std::optional<std::string> stop_reason() const;
  bool is_probing() const { return !probe_places_.empty(); }
  /// A probe where probes make sense and there is something to compare with, else a full trial.
  offer try_out(const program_point& point, std::string parent, std::string hypothesis);
  offer promote(const probed_point& probe, const std::string& why);
  /// Starts that every problem with such a space has: other partitions, other families.
  std::vector<program_point> systematic_starts() const;
  size_t starts_wanted(size_t systematic) const;
  /// Points to move from, best first.
  std::vector<const tried_candidate*> bases() const;
  std::optional<workload_grouping> grouping() const;
  /// Fitted to what is known; needs a passed point.
  point_model model() const;
  program_point drawn_point();

  const search_space& space_;
  const search_question& question_;
  const search_limits& limits_;
  search_record record_;
  proposal_maker maker_;
  splitmix64 random_;
  std::vector<size_t> probe_places_;
  std::vector<program_point> promises_;
  const tried_candidate* best_ = nullptr;
  /// Passed points, fastest first.
  std::vector<const tried_candidate*> passed_;
};

} // namespace gristmill
