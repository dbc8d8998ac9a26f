#pragma once

#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"
#include "gpu/children/job_directory.hpp"
#include "llm/mind/turn_facts.hpp"
#include "messages/result.hpp"
#include "protocol/program/program.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace gristmill {

struct command_proposer_config {
  run_context_ptr context;
  child_front_actor child_front;
  event_port events;
  std::shared_ptr<const protocol_program> program;
  /// Shared by the workers of a run.
  std::shared_ptr<idea_book> book;
  /// The texts of a problem of the context; called when an attempt begins.
  std::function<mind_problem(const problem&)> describe;
  /// For `/bin/sh -c`.
  std::string command;
  /// Of one attempt; below the worker's own patience with proposals.
  std::chrono::nanoseconds wall_cap = std::chrono::minutes{9};
  /// Of this worker, by what the command tells in cost.json, in 10^-9 USD; 0: no cap.
  uint64_t nano_usd_cap = 0;
  /// Attempts in a row without a candidate, after which the worker gives up.
  uint32_t failures_in_row_max = 5;
};

/// A coding agent as a proposer: any command line, started once an attempt in a private folder of
/// its own (docs/coding-agents.md):
///
/// - `prompt.md`: the whole task, rendered from the protocol file; `program.md`: that file.
/// - `problem/`: definition.json, workload.jsonl, reference.py.
/// - `incumbent/`: candidate.cu, plan.json, numbers.txt of the best so far, if there is one.
/// - `history.tsv`: what was tried, a line each.
///
/// It leaves `candidate.cu`, `plan.json`, `hypothesis.txt` and, if it knows, `cost.json`
/// (`{"usd": 0.12}`) there. It runs as the user, with the user's environment and network (but none
/// of ours), in a process group that is killed as a whole at its end or at the cap, and never under
/// a lease: that is asked for once it has gone. What it leaves is not trusted: no link is followed,
/// sizes are capped, the rules of the protocol file hold.
///
/// An attempt without a candidate is an answer (`failed`, with what exactly was wrong).
class command_proposer final : public proposer_actor::base {
public:
  command_proposer(caf::actor_config& actor, command_proposer_config config);

  const char* name() const override { return "command-proposer"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct open_attempt {
    assignment work;
    caf::typed_response_promise<proposal> reply;
    std::shared_ptr<job_directory> folder;
  };

  caf::result<proposal> propose(const propose_request& request);
  void on_ended(uint64_t child, const child_result& ended);
  proposal outcome_of(const open_attempt& attempt, const child_result& ended);
  void note_end(const open_attempt& attempt, const child_result& ended, const proposal& came_to);

  command_proposer_config config_;
  /// By the number of the child.
  std::map<uint64_t, open_attempt> open_;
  uint64_t spent_nano_usd_ = 0;
  uint64_t attempts_of_unknown_cost_ = 0;
  uint32_t failures_in_row_ = 0;
};

/// Writes what the command is given into the folder. `io_failed`.
result<void> write_command_folder(const job_directory& folder, const protocol_program& program,
  const problem& of, const prompt_facts& facts);

/// What a command left in its folder.
struct command_answer {
  std::string source;
  std::string plan;
  /// At most a few hundred bytes, one line.
  std::string hypothesis;
};

/// Reads it back. The folder is a stranger's: a name that is missing, no plain file, a link of
/// either kind or larger than the rules allow is `invalid_input` with its name.
result<command_answer> read_command_folder(const std::string& folder, const program_rules& rules);

/// What the attempt cost by its cost.json, in 10^-9 USD, also one that came to nothing; nothing
/// when the command did not say it in that form.
maybe<uint64_t> read_command_cost(const std::string& folder);

} // namespace gristmill
