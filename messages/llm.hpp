#pragma once

#include "messages/wire.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Who speaks in a conversation. Instructions are no message: they are `llm_request::instructions`.
enum class chat_role : uint8_t { user = 0, assistant };

struct chat_message {
  chat_role from = chat_role::user;
  std::string text;

  friend bool operator==(const chat_message&, const chat_message&) = default;
};

/// One call of a language model: the same for every provider.
struct llm_request {
  /// Of the asker: never used twice by one agent.
  uint64_t call = 0;
  /// Who pays: the budgets of the run, of this problem and of this agent.
  std::string problem;
  std::string agent;
  /// What the call is for, such as "propose", "repair" or "reflect"; roles may use different
  /// models.
  std::string purpose;
  /// The stable beginning: equal for many calls, so that providers can keep it.
  std::string instructions;
  std::vector<chat_message> messages;
  /// Cap on what the model writes, hidden reasoning included; at least 1.
  uint32_t output_tokens_max = 0;
  /// Not sent when absent: some models refuse it.
  maybe<f64> temperature;
  /// Not sent when absent; only some servers heed it.
  maybe<uint64_t> seed;
};

/// Why a model stopped. Anything that is not `stop` has its own treatment; what a provider says
/// that nobody knows is `unknown`, which is a failure.
enum class finish_kind : uint8_t {
  stop = 0,
  /// The cap was reached: the text is cut off.
  length,
  refusal,
  content_filter,
  /// The prompt (or prompt and answer) is larger than the model's context.
  context_exceeded,
  unknown,
};

std::string to_string(finish_kind kind);

/// How well usage is known. Unknown is not zero.
enum class usage_state : uint8_t { unknown = 0, estimated, exact };

std::string to_string(usage_state state);

/// Tokens of one call, normalised: the five kinds do not overlap, whatever the provider's own
/// fields include.
struct llm_usage {
  usage_state state = usage_state::unknown;
  uint64_t uncached_input = 0;
  uint64_t cache_read = 0;
  uint64_t cache_write = 0;
  uint64_t visible_output = 0;
  uint64_t reasoning = 0;

  uint64_t input() const { return uncached_input + cache_read + cache_write; }
  uint64_t output() const { return visible_output + reasoning; }
  friend bool operator==(const llm_usage&, const llm_usage&) = default;
};

/// What came of a call. `refusal`, `length` and the like are answers, not errors.
struct llm_reply {
  uint64_t call = 0;
  std::string text;
  finish_kind finish = finish_kind::unknown;
  llm_usage usage;
  /// Of all tries of this call together, in 10^-9 USD; what is held back for unknown usage
  /// included.
  uint64_t cost_nano_usd = 0;
  /// Which deployment answered, and the model that it says it is.
  std::string deployment;
  std::string model;
  /// The provider's own number for the request, for questions to its support.
  std::string request_id;
  uint32_t tries = 0;
  std::chrono::nanoseconds first_event{0};
  std::chrono::nanoseconds took{0};
};

/// The asker does not want the answer any more; what was spent stays spent.
struct llm_cancel {
  std::string agent;
  uint64_t call = 0;
};

struct llm_query {};

struct llm_deployment_snapshot {
  std::string name;
  std::string model;
  uint32_t in_flight = 0;
  uint32_t in_flight_max = 0;
  uint64_t calls = 0;
  uint64_t retries = 0;
  uint64_t failures = 0;
  /// Why nothing is sent to it right now; empty when it works.
  std::string paused;
};

struct llm_snapshot {
  std::vector<llm_deployment_snapshot> deployments;
  uint32_t waiting = 0;
  uint64_t calls = 0;
  llm_usage usage;
  /// Calls whose usage nobody knows.
  uint64_t calls_unknown = 0;
  uint64_t spent_nano_usd = 0;
  /// Held back for calls under way and for unknown usage.
  uint64_t reserved_nano_usd = 0;
  /// Why no call is taken any more; empty while calls are taken.
  std::string closed;
};

} // namespace gristmill
