#pragma once

#include "simulation/model/scenario.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// A GPU of a scenario, and where it stands.
struct gpu_place {
  /// "<group>#<n>".
  std::string name;
  std::string model;
  /// "<group>-<n>".
  std::string node;
  double speed = 1;
};

/// All GPUs in the order of the groups, but no more than `entities_max`.
std::vector<gpu_place> gpu_places(const scenario& what);

/// The nodes that they stand on, each once, in the same order.
std::vector<std::string> node_names(const std::vector<gpu_place>& gpus);

} // namespace gristmill
