#pragma once

#include "messages/prepare.hpp"
#include "messages/result.hpp"
#include "planning/cluster/node_table.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace gristmill {

/// One preparation on every machine that will measure: tensors never travel, and each machine makes
/// the same ones from the run's secret. Over when every place has answered or is gone. Pure.
class prepare_fan {
public:
  /// Place 0 is the coordinator.
  explicit prepare_fan(std::set<session_id> places);

  /// An answer of a place that is not awaited changes nothing.
  void answered(session_id place, const prepared_problem& prepared);
  void failed(session_id place, const failure& why);
  /// The node is gone.
  void lost(session_id place);
  bool over() const { return waiting_.empty(); }

  /// Once over. The coordinator's own answer, else the first that passed, else the first; the
  /// failure when no place has answered. `node_lost`: every place is gone, so it is to be made
  /// elsewhere.
  result<prepared_problem> outcome() const;
  /// Whose answer `outcome` is.
  session_id winner() const;
  /// Nodes that cannot do what another one could, with the reason: nothing of this problem can be
  /// measured there.
  std::vector<std::pair<session_id, std::string>> unfit() const;

private:
  const std::pair<session_id, prepared_problem>* best() const;

  std::set<session_id> waiting_;
  /// In the order in which they came.
  std::vector<std::pair<session_id, prepared_problem>> answers_;
  std::vector<std::pair<session_id, failure>> failures_;
};

/// "softmax", or "softmax @ softmax/cuda/17#1" for a draw: what a node has or lacks.
std::string prepare_key(const prepare_request& what);

} // namespace gristmill
