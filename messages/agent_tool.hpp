#pragma once

#include "messages/attempt.hpp"
#include "messages/verdict.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// What an agent may find out about a candidate without an attempt and without a lease.
enum class agent_tool : uint8_t {
  /// Does it compile, and into what.
  compile = 0,
  /// Runs it on the mock GPU: faults, and where the modelled time goes. Says nothing of its
  /// results.
  emulate,
  /// Runs it on the mock GPU and compares its results with the references. Says nothing of times.
  check,
};

std::string to_string(agent_tool what);

struct tool_question {
  agent_tool what = agent_tool::compile;
  std::string problem;
  candidate_ref candidate;
  /// Of emulate and check: uuids of the workloads; empty for all.
  std::vector<std::string> workloads;
};

struct tool_answer {
  agent_tool what = agent_tool::compile;
  /// passed: it compiles, runs, is right. Never `infrastructure`.
  verdict_status status = verdict_status::not_checked;
  /// For the agent, in whole lines; at most 8 KiB, no path of a host.
  std::string text;
  /// The same for a program: one JSON object.
  std::string json;
};

} // namespace gristmill
