#pragma once

#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

// For `--gpus sleep:… --proposer sleep`: the real planner, workers, broker and journal at full
// scale, with no kernel anywhere. Everything that these four say is NOT A MEASUREMENT.

/// Every problem is ready at once.
class rehearsal_oracle final : public oracle_actor::base {
public:
  explicit rehearsal_oracle(caf::actor_config& actor) : oracle_actor::base(actor) {}
  const char* name() const override { return "oracle"; }

protected:
  behavior_type make_behavior() override;
};

/// A new key each time.
class rehearsal_proposer final : public proposer_actor::base {
public:
  explicit rehearsal_proposer(caf::actor_config& actor) : proposer_actor::base(actor) {}
  const char* name() const override { return "proposer"; }

protected:
  behavior_type make_behavior() override;
};

/// Everything compiles at once.
class rehearsal_compiler final : public compiler_actor::base {
public:
  explicit rehearsal_compiler(caf::actor_config& actor) : compiler_actor::base(actor) {}
  const char* name() const override { return "compiler"; }

protected:
  behavior_type make_behavior() override;
};

/// Everything that was held is passed, with no score; kept in the journal like a real verdict.
class rehearsal_scorer final : public scorer_actor::base {
public:
  rehearsal_scorer(caf::actor_config& actor, event_port events);
  const char* name() const override { return "scorer"; }
  void on_exit() override { events_.close(); }

protected:
  behavior_type make_behavior() override;

private:
  event_port events_;
};

} // namespace gristmill
