#pragma once

#include "llm/transport/http_port.hpp"
#include "messages/llm.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// How one model server wants to be spoken to; from the file of models (protocol/model_file.hpp).
struct dialect_options {
  /// As the server calls it.
  std::string model;
  /// "https://host/v1" or the like, without the dialect's own path. One without any path gets
  /// "/v1".
  std::string endpoint;
  std::string key_environment;
  /// Name of the instructions' role in openai-chat: "system" or "developer".
  std::string instructions_role = "system";
  /// Name of the output cap in openai-chat: "max_completion_tokens" or "max_tokens". Empty: the
  /// former at OpenAI and Azure, the latter elsewhere, because servers exist that read over the
  /// former.
  std::string output_cap_field;
  /// Empty: not sent.
  std::string reasoning_effort;
  /// A JSON object that is merged into each body, for what only one server knows; empty for none.
  std::string extra_body;
  /// Groups calls with equal beginnings for the provider's cache; empty: not sent.
  bool send_cache_key = false;
  http_deadlines deadlines;
};

/// What kind of trouble an answer is: llm.md 1.4 as a type. What follows from it (waiting, another
/// deployment, the end of the run) is decided in llm/traffic.
enum class trouble_kind : uint8_t {
  none = 0,
  /// Same deployment again, after a while.
  transient,
  /// Our quota for this minute: wait at least `wait`, and pause everybody.
  throttle,
  /// The server's trouble, not our quota: longer wait, breaker, another deployment.
  overload,
  /// No money or no quota left: never again in this run.
  money,
  /// Prompt larger than the context or the body limit.
  too_big,
  /// Key, model name, malformed request: never again; names the setting.
  config,
  /// Cut off or failed inside the stream, possibly billed: at most two more tries.
  ambiguous,
};

std::string to_string(trouble_kind kind);

struct trouble {
  trouble_kind kind = trouble_kind::none;
  /// What the server asked for; 0 for nothing.
  std::chrono::nanoseconds wait{0};
  std::string what;
};

/// What a server says about its limits with an answer; absent values are -1.
struct rate_limits {
  int64_t requests_remaining = -1;
  int64_t tokens_remaining = -1;
  std::chrono::nanoseconds requests_reset{-1};
  std::chrono::nanoseconds tokens_reset{-1};
};

/// A finished stream.
struct decoded_reply {
  std::string text;
  finish_kind finish = finish_kind::unknown;
  llm_usage usage;
  std::string model;
  std::string request_id;
  /// Set when the stream itself reported trouble, was cut off, or ended in a way that is no
  /// success: without text, or for a reason that nobody knows. Text and usage are then what came
  /// before it.
  trouble failed;
  /// What a person should know of an answer that is none the worse for it; empty for nothing.
  std::string note;
};

/// Reads one answer, event by event.
class reply_decoder {
public:
  virtual ~reply_decoder() = default;
  virtual void take(const sse_event& event) = 0;
  /// The dialect's terminal event has come (or trouble that ends the stream).
  virtual bool finished() const = 0;
  /// How many bytes of the answer have come, hidden reasoning included, for progress and estimates.
  virtual size_t text_bytes() const = 0;
  /// After `finished`, or at the end of a transfer: a stream without its terminal event is
  /// `ambiguous` trouble. `cap` is the request's, to see a cut-off that the server does not own up
  /// to.
  virtual decoded_reply result(uint32_t cap) = 0;
};

/// A wire format. Stateless; one object serves all calls.
class dialect {
public:
  virtual ~dialect() = default;
  virtual std::string_view name() const = 0;
  /// URL, headers, body (`stream` on), key header. The id is the caller's to set. `invalid_input`
  /// for an extra body that is no object or names a field that we set.
  virtual result<http_call> encode(
    const llm_request& request, const dialect_options& how) const = 0;
  virtual std::unique_ptr<reply_decoder> decoder() const = 0;
  /// For an answer that is no event stream, or has a status other than 200. `now_utc` is for
  /// instants in headers.
  virtual trouble judge_failure(
    const http_report& ended, std::chrono::sys_seconds now_utc) const = 0;
  virtual rate_limits limits_of(
    const http_headers& headers, std::chrono::sys_seconds now_utc) const = 0;
};

/// The provider's own number for a request, from the headers of its answer; empty for none. Goes
/// before the one in the stream.
std::string request_id_of(const http_headers& headers);

/// "openai-chat", "openai-responses", "anthropic-messages".
std::vector<std::string> known_dialects();
/// `not_found` with the nearest name.
result<const dialect*> find_dialect(std::string_view name);

} // namespace gristmill
