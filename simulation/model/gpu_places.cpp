#include "simulation/model/gpu_places.hpp"

#include "simulation/model/scenario_check.hpp"

#include <fmt/format.h>

namespace gristmill {

std::vector<gpu_place> gpu_places(const scenario& what) {
  std::vector<gpu_place> out;
  for (const auto& group : what.gpus)
    for (uint32_t i = 0; i < group.count && out.size() < entities_max; ++i)
      out.push_back({fmt::format("{}#{}", group.name, i), group.model,
        fmt::format("{}-{}", group.name, group.per_node == 0 ? 0 : i / group.per_node),
        group.speed});
  return out;
}

std::vector<std::string> node_names(const std::vector<gpu_place>& gpus) {
  // GPUs of one node stand in a row.
  std::vector<std::string> out;
  for (const auto& gpu : gpus)
    if (out.empty() || out.back() != gpu.node)
      out.push_back(gpu.node);
  return out;
}

} // namespace gristmill
