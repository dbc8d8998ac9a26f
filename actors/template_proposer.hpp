#pragma once

#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"

namespace gristmill {

/// Proposes template candidates. Has no memory: what it needs to know comes with each request.
class template_proposer final : public proposer_actor::base {
public:
  template_proposer(caf::actor_config& actor, run_context_ptr context);

  const char* name() const override { return "proposer"; }

protected:
  behavior_type make_behavior() override;

private:
  run_context_ptr context_;
};

/// The pure part: the frozen plain kernel for a baseline, the given candidate for a planted
/// attempt, the next point of the search otherwise. Errors: `not_found` and `io_failed` of the blob
/// store, `invalid_input` for a graph that does not parse.
result<proposal> propose_for(const run_context& context, const assignment& work);

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
