#pragma once

#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"

#include <chrono>

namespace gristmill {

struct node_proposer_config {
  run_context_ptr context;
  /// Who has the ideas; it ends with this actor.
  proposer_actor inner;
  /// Of this node, and of the hub.
  blob_keeper_actor keeper;
  caf::strong_actor_ptr hub_keeper;
  cluster_hub_actor hub;
  /// For the bytes of one proposal, each way.
  std::chrono::nanoseconds fetch_limit = std::chrono::minutes{1};
};

/// A proposer on a node. What the inner one needs is fetched first, and what it has put into the
/// node's store is with the coordinator before its proposal is told: whoever is asked to compile or
/// measure it may live anywhere.
class node_proposer final : public proposer_actor::base {
public:
  node_proposer(caf::actor_config& actor, node_proposer_config config);

  const char* name() const override { return "node-proposer"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  using promise = caf::typed_response_promise<proposal>;

  void think(const propose_request& request, promise reply);
  void offer(const proposal& idea, promise reply);

  node_proposer_config config_;
};

} // namespace gristmill
