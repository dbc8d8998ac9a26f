#pragma once

#include "actors/agent_tools.hpp"
#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"
#include "cli/run_setup.hpp"
#include "cli/run_watch.hpp"
#include "protocol/docs_search.hpp"
#include "protocol/mcp/session.hpp"
#include "protocol/program/candidate_rules.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// Actors of the run that the tools ask. Filled when the run starts, emptied before it ends.
struct tool_peers {
  std::mutex mutex;
  /// Filled for the first time.
  std::condition_variable filled;
  planner_actor planner;
  agent_tools_actor tools;
  journal_actor journal;
  caf::actor_clock::time_point run_start{};
};

/// What the tools of `gristmill mcp` work on; outlives them.
struct tool_run {
  const run_setup* setup = nullptr;
  run_context_ptr context;
  caf::actor_system* system = nullptr;
  std::shared_ptr<tool_peers> peers;
  std::shared_ptr<run_watch> watch;
  const protocol_program* program = nullptr;
  const docs_index* docs = nullptr;
  /// Why the run is over; empty while it goes on.
  std::function<std::string()> over;
};

/// How a call tells how far it has come, and learns that nobody waits for it any more.
struct call_control {
  std::atomic<bool> cancelled{false};
  /// May be called from the thread of the call; `done` grows.
  std::function<void(double done, const std::string& message)> progress;
};

/// The tools of `gristmill mcp`: a run's law for agents that call it. Each call blocks its thread
/// until it is answered; safe from several threads.
class mcp_tools {
public:
  explicit mcp_tools(tool_run run) : run_(std::move(run)) {}

  /// Tools, resources and prompts with their schemas.
  mcp_catalogue catalogue();

  mcp_outcome call(const mcp_call& what, call_control& control);

private:
  using json = ordered_json;

  mcp_outcome list_problems();
  mcp_outcome show_problem(const json& arguments);
  mcp_outcome ask_tool(agent_tool what, const json& arguments, call_control& control);
  mcp_outcome evaluate(const json& arguments, call_control& control);
  mcp_outcome leaderboard();
  mcp_outcome history(const json& arguments);
  mcp_outcome search_docs(const json& arguments);
  mcp_outcome hand_in(const json& arguments);

  std::string problem_page(const problem& of) const;
  /// `invalid_input` names the nearest.
  result<const problem*> find_problem(const std::string& name) const;
  /// Waits until inputs and references are made.
  result<void> await_prepared(const std::string& problem, call_control& control) const;
  /// After the rules of the protocol file; without a hypothesis it is only a question.
  result<candidate_ref> take_candidate(const json& arguments, bool question);
  mcp_outcome judged(const problem& of, const candidate_ref& candidate, const plant_reply& reply);
  /// What somebody wrote that no rule of the run stands behind, as text.
  std::string times_are() const;

  template <class Reply, class Handle, class Request>
  result<Reply> ask(const Handle& whom, const Request& request, call_control& control,
    const std::function<void()>& meanwhile) const;

  tool_run run_;
  std::mutex mutex_;
  /// By problem: what `evaluate` was given, for near-duplicates.
  std::map<std::string, std::vector<earlier_source>> evaluated_;
};

} // namespace gristmill
