#pragma once

#include "llm/mind/idea_book.hpp"
#include "llm/mind/turn_facts.hpp"
#include "llm/mind/turn_plan.hpp"
#include "messages/llm.hpp"
#include "messages/propose.hpp"
#include "protocol/program/prompt.hpp"
#include "protocol/program/reply.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gristmill {

struct mind_settings {
  std::shared_ptr<const protocol_program> program;
  std::shared_ptr<idea_book> book;
  /// Name of the worker; who pays.
  std::string agent;
  /// Tools that work in this run: name, and one line of what it does and takes.
  std::vector<std::pair<std::string, std::string>> tools;
  blob_reader read;
  /// Of the pause before an attempt, after attempts in a row that failed at once; doubled for each
  /// further one. 0: never a pause.
  std::chrono::nanoseconds pause_first = std::chrono::seconds{5};
  std::chrono::nanoseconds pause_max = std::chrono::minutes{2};
  /// Attempts in a row that must fail before there is a pause.
  uint32_t failures_before_pause = 3;
};

// What can happen.

/// The gateway has no answer for the call.
struct model_failed {
  uint64_t call = 0;
  failure why;
};

struct tool_answered {
  std::string text;
};

/// A pause is over.
struct pause_over {};

using mind_event = std::variant<llm_reply, model_failed, tool_answered, pause_over>;

// What is to be done; `llm_request` goes to the gateway.

struct mind_pause {
  std::chrono::nanoseconds time{0};
};

struct tool_call {
  tool_request what;
  /// Of a question about code.
  std::string source;
  std::string plan;
};

/// The attempt has come to a candidate.
struct idea {
  std::string source;
  std::string plan;
  /// "STRATEGY" for `model_key`.
  std::string strategy;
  /// Hash of the candidate that it was made from; empty for none.
  std::string parent;
  std::string hypothesis;
};

/// The attempt has come to none.
struct no_idea {
  proposal_kind kind = proposal_kind::failed;
  std::string reason;
  /// Of the gateway's last error; `invalid_input` when a model answered and it was of no use.
  errc code = errc::invalid_input;
};

/// The insights of a problem were written anew; for the log.
struct insights_written {
  std::string problem;
  std::vector<std::string> lines;
};

using mind_command =
  std::variant<llm_request, mind_pause, tool_call, idea, no_idea, insights_written>;

/// One worker's talk with models: from an assignment to a candidate or to the reason why there is
/// none. Pure; the only state that outlives an attempt is what spares work: which candidates were
/// its own, how many attempts failed in a row.
///
/// Each turn begins with a fresh context from the store. One reply that cannot be read, or whose
/// candidate breaks a rule or repeats an earlier one, is sent back once with what is wrong
/// (`turn.format_repairs`); a reply that was cut off never is. A refusal is asked once more with
/// another card. A prompt that is too large is asked once more in short.
class conversation {
public:
  explicit conversation(mind_settings settings);

  /// Begins an attempt; whatever was open is forgotten. The commands are to be carried out in
  /// order; the last one is a question, a pause, an `idea` or a `no_idea`.
  std::vector<mind_command> begin(const mind_problem& problem, const assignment& work);
  /// Answers that are not awaited change nothing.
  std::vector<mind_command> step(const mind_event& what);

  /// The idea has a name: for the own memory and the filter of the others.
  void proposed(const candidate_ref& candidate, const idea& what);
  /// Nobody waits any more.
  void forget() { state_ = state::idle; }

  bool idle() const { return state_ == state::idle; }
  /// Of the question that is open; 0 for none.
  uint64_t open_call() const { return open_call_; }
  /// Attempts in a row that came to nothing.
  uint32_t failures_in_row() const { return failures_in_row_; }

private:
  enum class state : uint8_t { idle, pausing, reflecting, handing_off, asking, using_tool };
  using commands = std::vector<mind_command>;

  commands think();
  commands ask_for_kernel();
  commands reflect();
  commands hand_off(const std::string& why);
  void ask(
    commands& out, const std::string& purpose, const prompt& what, std::vector<chat_message> more);
  commands on(const llm_reply& reply);
  commands on(const model_failed& failed);
  commands on(const tool_answered& answer);
  commands on(const pause_over& over);
  commands read_reply(const llm_reply& reply);
  commands use_tool(const parsed_reply& parsed);
  commands take_candidate(const llm_reply& reply, parsed_reply parsed);
  /// Sends the reply back with `fault`, or ends the attempt.
  commands send_back(const llm_reply& reply, const std::string& fault, const std::string& why);
  commands on_refusal(const llm_reply& reply);
  commands on_too_large();
  commands give_up(std::string reason, errc code = errc::invalid_input);

  mind_settings settings_;
  state state_ = state::idle;
  mind_problem problem_;
  assignment work_;
  turn_plan plan_;
  prompt_facts facts_;
  prompt shown_;
  /// Of this attempt.
  own_work own_;
  uint32_t repairs_ = 0;
  uint32_t refusals_ = 0;
  bool shortened_ = false;
  bool reflected_ = false;
  std::map<std::string, uint32_t> tool_calls_;
  /// Questions to tools that were turned down.
  uint32_t tools_refused_ = 0;
  uint64_t open_call_ = 0;
  uint64_t questions_ = 0;
  /// Over attempts.
  std::map<std::string, std::vector<std::string>> proposed_;
  /// How many of them were there when the worker last handed the problem off.
  std::map<std::string, size_t> handed_off_at_;
  uint32_t failures_in_row_ = 0;
};

} // namespace gristmill
