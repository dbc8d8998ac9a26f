#include "actors/node_proposer.hpp"

namespace gristmill {

node_proposer::node_proposer(caf::actor_config& actor, node_proposer_config config)
  : proposer_actor::base(actor), config_(std::move(config)) {}

void node_proposer::on_exit() {
  if (config_.inner)
    caf::anon_send_exit(config_.inner, caf::exit_reason::user_shutdown);
  config_.inner = nullptr;
  config_.keeper = nullptr;
  config_.hub_keeper = nullptr;
  config_.hub = nullptr;
}

proposer_actor::behavior_type node_proposer::make_behavior() {
  seam::end_on_exception(this);
  return {[this](const propose_request& request) -> caf::result<proposal> {
    auto reply = make_response_promise<proposal>();
    const auto& graph = request.work.graph;
    if (graph.sha256.empty() || config_.context->blobs->has(graph)) {
      think(request, reply);
      return reply;
    }
    seam::ask(this, config_.keeper, blob_fetch{{graph}, config_.fetch_limit}, config_.hub_keeper)
      .then([this, request, reply](const blobs_fetched&) { think(request, reply); },
        [reply](const caf::error& why) mutable { reply.deliver(why); });
    return reply;
  }};
}

void node_proposer::think(const propose_request& request, promise reply) {
  seam::ask(this, config_.inner, request)
    .then([this, reply](const proposal& idea) { offer(idea, reply); },
      [reply](const caf::error& why) mutable { reply.deliver(why); });
}

void node_proposer::offer(const proposal& idea, promise reply) {
  blobs_offered made;
  // A candidate that was given by file is with the coordinator already and not here.
  for (const auto& ref : {idea.candidate.source, idea.candidate.plan})
    if (!ref.sha256.empty() && config_.context->blobs->has(ref))
      made.blobs.push_back(ref);
  if (made.blobs.empty()) {
    reply.deliver(idea);
    return;
  }
  // The hub answers within its own limit; when it is lost, this actor is ended.
  seam::ask(
    this, config_.hub, std::move(made), caf::actor_cast<caf::strong_actor_ptr>(config_.keeper))
    .then([idea, reply](const blobs_fetched&) mutable { reply.deliver(idea); },
      [reply](const caf::error& why) mutable { reply.deliver(why); });
}

} // namespace gristmill
