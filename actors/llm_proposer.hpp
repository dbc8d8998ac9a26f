#pragma once

#include "actors/agent_tools.hpp"
#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"
#include "actors/search_library.hpp"
#include "llm/mind/conversation.hpp"
#include "protocol/docs_search.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace gristmill {

/// What the proposers of a run that ask models share.
struct model_mind {
  std::shared_ptr<const protocol_program> program;
  std::shared_ptr<idea_book> book = std::make_shared<idea_book>();
  /// Null without `--docs`.
  std::shared_ptr<const docs_index> docs;
  /// Set once no model can be asked any more in this run (`llm_gateway_config::on_stop`).
  std::shared_ptr<std::atomic<bool>> closed = std::make_shared<std::atomic<bool>>(false);
  /// A run of several kinds of proposers goes on without models: by the template search.
  bool search_when_closed = false;
  /// Of the tools: "auto", "clang" or "nvrtc".
  std::string toolchain = "auto";
  /// Of `mind_settings`.
  std::chrono::nanoseconds pause_first = std::chrono::seconds{5};
};

struct llm_proposer_config {
  run_context_ptr context;
  std::shared_ptr<search_library> library;
  model_mind mind;
  /// Name of its worker.
  std::string agent;
  llm_gateway_actor models;
  compiler_actor compiler;
  child_front_actor child_front;
  event_port events;
};

/// A problem of the context as prompts show it, on the context's device. `graph_json` is its
/// operator graph; empty where there is none.
mind_problem describe_problem(
  const run_context& context, const problem& of, const std::string& graph_json);

/// A `proposer_actor` that keeps its own time.
using llm_proposer_actor = caf::typed_actor<
  // Having none is an answer. A second request ends the first one with `shutting_down`: whoever
  // asked it has given up.
  sig<proposal, propose_request>,
  // INTERNAL: a pause is over.
  sig<void, tick>>;

/// Proposes what a language model writes. What is asked and what follows from the answer is decided
/// by `conversation`; this actor sends it and hands back what comes in. Baselines and given
/// candidates are those of `propose_for`.
class llm_proposer final : public llm_proposer_actor::base {
public:
  llm_proposer(caf::actor_config& actor, llm_proposer_config config);

  const char* name() const override { return "llm-proposer"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  using reply_promise = caf::typed_response_promise<proposal>;

  caf::result<proposal> start(const assignment& work);
  void happened(const mind_event& what);
  void carry_out_all(std::vector<mind_command> todo);
  void carry_out(const llm_request& command);
  void carry_out(const mind_pause& command);
  void carry_out(const tool_call& command);
  void carry_out(const idea& command);
  void carry_out(const no_idea& command);
  void carry_out(const insights_written& command);
  void answer(proposal what);
  /// Nobody waits for the attempt in work any more.
  void drop(const std::string& why);
  const mind_problem& problem_of(const assignment& work);
  void ask_device_tool(const tool_call& command, agent_tool which);

  llm_proposer_config config_;
  conversation mind_;
  std::map<std::string, mind_problem> problems_;
  std::optional<reply_promise> waiting_;
  assignment work_;
  /// Made for the first question.
  agent_tools_actor tools_;
  /// Which attempt of this actor; answers to tools and pauses of an older one change nothing.
  uint64_t generation_ = 0;
};

} // namespace gristmill
