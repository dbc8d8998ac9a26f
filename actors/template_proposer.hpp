#pragma once

#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"
#include "actors/search_library.hpp"
#include "kernels/search.hpp"

#include <memory>

namespace gristmill {

/// Proposes candidates of our own template families by one of the searches. What it needs to know
/// of a problem comes with each request; `library` spares it work and lets it learn from problems
/// of equal structure.
class template_proposer final : public proposer_actor::base {
public:
  template_proposer(caf::actor_config& actor, run_context_ptr context,
    std::shared_ptr<search_library> library = std::make_shared<search_library>(),
    search_strategy strategy = search_strategy::guided);

  const char* name() const override { return "proposer"; }

protected:
  behavior_type make_behavior() override;

private:
  run_context_ptr context_;
  std::shared_ptr<search_library> library_;
  search_strategy strategy_;
};

/// What it does, without the actor: the frozen plain kernel for a baseline, the given candidate for
/// a planted attempt, the next point of the search otherwise. Errors: `not_found` and `io_failed`
/// of the blob store, `invalid_input` for a graph that does not parse.
result<proposal> propose_for(const run_context& context, const assignment& work,
  search_library& library, search_strategy strategy);

/// Proposes nothing: for runs that only try what was given by file.
class scripted_proposer final : public proposer_actor::base {
public:
  scripted_proposer(caf::actor_config& actor, run_context_ptr context);

  const char* name() const override { return "proposer"; }

protected:
  behavior_type make_behavior() override;

private:
  run_context_ptr context_;
};

} // namespace gristmill
