#include "actors/system_config.hpp"

#include "actors/interfaces.hpp"
#include "messages/inspect_agent_tool.hpp"
#include "messages/inspect_device_join.hpp"

namespace gristmill {

void configure(caf::actor_system_config& config, unsigned threads) {
  seam::add_types<caf::id_block::gristmill_attempt, caf::id_block::gristmill_lease,
    caf::id_block::gristmill_measure, caf::id_block::gristmill_child,
    caf::id_block::gristmill_runtime, caf::id_block::gristmill_llm, caf::id_block::gristmill_plant,
    caf::id_block::gristmill_agent_tool, caf::id_block::gristmill_cluster,
    caf::id_block::gristmill_device_join>(config);
  seam::add_errors<errc>(config, "gristmill");
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", threads);
}

} // namespace gristmill
