#pragma once

#include "actors/llm_proposer.hpp"
#include "actors/supervisor.hpp"
#include "protocol/proposer_text.hpp"

#include <memory>
#include <vector>

namespace gristmill {

/// What the proposers of a run are made from.
struct proposer_parts {
  run_context_ptr context;
  /// At least one; workers get theirs by share.
  std::vector<proposer_choice> mix;
  std::shared_ptr<search_library> library = std::make_shared<search_library>();
  /// Used where the mix asks models or commands.
  model_mind mind;
  /// What one command may spend, in 10^-9 USD; 0: no cap.
  uint64_t agent_nano_usd = 0;
};

/// The proposer of this worker. All kinds work on the same history: what one has found is there for
/// the others. `sleep` is not made here, because a rehearsal has no run context.
proposer_actor make_proposer(
  caf::actor_system& system, const run_peers& peers, uint32_t worker, const proposer_parts& parts);

} // namespace gristmill
