#pragma once

#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// When a call is given up; 0: never. See `http_deadlines` for what each counts from.
struct model_deadlines {
  std::chrono::nanoseconds connect = std::chrono::seconds{10};
  std::chrono::nanoseconds first_event = std::chrono::seconds{60};
  std::chrono::nanoseconds idle = std::chrono::seconds{300};
  std::chrono::nanoseconds wall = std::chrono::minutes{30};

  friend bool operator==(const model_deadlines&, const model_deadlines&) = default;
};

/// One model on one server, with what the server allows us.
struct model_deployment {
  std::string name;
  /// Of llm/dialects: "openai-chat", "openai-responses", "anthropic-messages".
  std::string dialect;
  /// "https://host/v1", without the dialect's own path and without a final slash.
  std::string endpoint;
  /// As the server calls it.
  std::string model;
  /// Name of the environment variable that holds the key; empty for none.
  std::string key_env;
  std::string instructions_role = "system";
  /// Of openai-chat: "max_tokens" or "max_completion_tokens"; empty: by the endpoint.
  std::string output_cap_field;
  /// Empty: not sent.
  std::string reasoning_effort;
  /// A JSON object; empty for none.
  std::string extra_body;
  bool send_cache_key = false;
  model_deadlines deadlines;
  /// Absent: not limited by us.
  std::optional<uint64_t> requests_per_minute;
  std::optional<uint64_t> input_tokens_per_minute;
  std::optional<uint64_t> output_tokens_per_minute;
  /// Calls at the same time, at most.
  uint32_t in_flight_max = 8;
  /// Prompt and answer together; absent: unknown.
  std::optional<uint64_t> context_tokens;
  /// How far the cap on an answer may be raised when it was cut off.
  uint32_t output_tokens_max = 32'768;
  /// Certificates to trust instead of the system's; empty: the system's.
  std::string ca_file;
  /// http to another machine is refused without it.
  bool allow_plain_http = false;
  /// The endpoint is this machine: 127.0.0.0/8, ::1 or localhost.
  bool loopback = false;

  friend bool operator==(const model_deployment&, const model_deployment&) = default;
};

/// What a model costs, in 10^-12 USD a token: 1 USD per million tokens is 1,000,000.
struct model_price {
  std::string model;
  std::chrono::year_month_day as_of{};
  uint64_t input = 0;
  uint64_t cached_read = 0;
  uint64_t cache_write = 0;
  uint64_t output = 0;

  friend bool operator==(const model_price&, const model_price&) = default;
};

/// The models of a run: `models.toml`, or the short form of flags.
struct model_file {
  /// Of the file, for messages; empty for flags.
  std::string source;
  std::vector<model_deployment> deployments;
  std::vector<model_price> prices;
  /// By role: places in `deployments`, in the order of fail-over. Roles of `model_roles()` alone;
  /// "propose" is always there.
  std::map<std::string, std::vector<size_t>> roles;

  const model_price* price_of(const std::string& model) const;
  /// The deployments of a role; those of "propose" where the role has none of its own.
  const std::vector<size_t>& role(const std::string& purpose) const;

  friend bool operator==(const model_file&, const model_file&) = default;
};

/// "propose", "repair", "reflect": the values of `llm_request::purpose`.
const std::vector<std::string>& model_roles();

/// Reads the form of docs/models.md. `dialects`: the names that may be used (`known_dialects()`).
/// `invalid_input` names file, line and field and the nearest valid choice: unknown key, missing or
/// doubled field, unknown role, deployment or dialect, bad URL, http to another machine, a limit of
/// 0, a price that is negative, finer than 10^-6 USD per million tokens or without its date.
result<model_file> parse_model_file(
  std::string_view text, const std::string& file_name, const std::vector<std::string>& dialects);
/// `not_found` when there is none.
result<model_file> load_model_file(
  const std::filesystem::path& path, const std::vector<std::string>& dialects);

/// The short form: --model-endpoint, --model, --model-dialect, --model-key-env; one deployment
/// "model" for all roles. An empty dialect is "anthropic-messages" for hosts of anthropic.com and
/// "openai-chat" for all others. `invalid_input` names the flag.
result<model_file> model_file_from_flags(const std::string& endpoint, const std::string& model,
  const std::string& dialect, const std::string& key_env, const std::vector<std::string>& dialects);

/// Names of the environment variables that hold keys, each once: what must be set before a run.
std::vector<std::string> key_variables(const model_file& models);

} // namespace gristmill
