#pragma once

#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"
#include "messages/inspect_agent_tool.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace gristmill {

/// Answers agents what they may know of a candidate before they spend an attempt on it.
using agent_tools_actor = caf::typed_actor<
  // A candidate that does not compile, faults or is wrong is an answer. `not_found` for a problem
  // that the run has not, or whose inputs are not made yet (ask again); `invalid_input` for an
  // unknown workload; `queue_full`; `child_failed` when something of ours broke; `shutting_down`.
  sig<tool_answer, tool_question>,
  // A compiler was replaced.
  sig<void, peer_restarted, caf::strong_actor_ptr>>;

struct agent_tools_config {
  run_context_ptr context;
  compiler_actor compiler;
  child_front_actor child_front;
  /// For the profile, which compiles once more to know source lines: "auto", "clang" or "nvrtc".
  std::string toolchain = "auto";
  /// Questions that are worked on at the same time; further ones wait here.
  uint32_t slots = 2;
  uint32_t waiting_max = 64;
  /// Of one child.
  std::chrono::nanoseconds deadline = std::chrono::minutes{5};
};

/// Compile-only, emulation with a profile in words, and the check of results, all on the mock GPU
/// and never under a lease. The children run beside the runners of leases, with the limits of a
/// judge, so that no question delays a measurement.
///
/// Its owner is whoever spawned it: spawn it linked, or end it. (Search in documentation needs no
/// actor: protocol/docs_search.hpp.)
class agent_tools final : public agent_tools_actor::base {
public:
  agent_tools(caf::actor_config& actor, agent_tools_config config);

  const char* name() const override { return "agent-tools"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct question;
  using question_ptr = std::shared_ptr<question>;

  void serve();
  void compile(const question_ptr& work);
  void emulate(const question_ptr& work);
  /// Of the slowest workload, by gristmill-emulate; an answer without it where it cannot be had.
  void profile(const question_ptr& work);
  void judge(const question_ptr& work);
  /// The question is over, with an answer or a failure of ours.
  void answer(const question_ptr& work, tool_answer what);
  void fail_question(const question_ptr& work, const failure& why);

  agent_tools_config config_;
  std::deque<question_ptr> waiting_;
  std::deque<question_ptr> running_;
  uint32_t next_ = 0;
};

} // namespace gristmill
