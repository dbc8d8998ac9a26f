#include "llm/dialects/provider_error.hpp"

#include "llm/dialects/plain_words.hpp"
#include "llm/dialects/response_headers.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

/// Larger bodies are no error of a model server; they are judged by their status.
constexpr size_t body_max = size_t{1} << 20;

std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool mentions(const std::string& text, std::span<const std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
    [&](std::string_view each) { return text.find(each) != std::string::npos; });
}

// Codes and types of "no money": OpenAI's, Anthropic's.
constexpr std::array<std::string_view, 10> money_words{"insufficient_quota",
  "credit_balance_exhausted", "organization_spend_limit_exceeded", "project_spend_limit_exceeded",
  "organization_usage_limit_exceeded", "billing_hard_limit_reached", "billing_not_active",
  "billing_error", "enforced_spend_limit_reached", "insufficient_credits"};
// Anthropic has no code of its own for these.
constexpr std::array<std::string_view, 3> money_phrases{
  "usage limit", "credit balance is too low", "spend limit"};
constexpr std::array<std::string_view, 4> too_big_words{"context_length_exceeded",
  "exceed_context_size_error", "request_too_large", "string_above_max_length"};
constexpr std::array<std::string_view, 11> too_big_phrases{// OpenAI, older vLLM.
  "maximum context length",
  // Newer vLLM.
  "longer than the maximum model length", "maximum model length",
  // llama.cpp.
  "exceeds the available context size",
  // Anthropic.
  "prompt is too long", "exceed context limit",
  // Gemini.
  "exceeds the maximum number of tokens",
  // SGLang, LM Studio, Ollama.
  "exceeds the model's context length", "longer than the model's context length",
  "greater than the context length", "exceeds the context"};
constexpr std::array<std::string_view, 4> overload_words{
  "overloaded_error", "slow_down", "engine_overloaded_error", "server_overloaded"};
constexpr std::array<std::string_view, 3> throttle_words{
  "rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"};
constexpr std::array<std::string_view, 4> overload_phrases{
  "overloaded", "slow down", "slow_down", "at capacity"};
constexpr std::array<std::string_view, 8> config_words{"invalid_api_key", "authentication_error",
  "permission_error", "model_not_found", "not_found_error", "invalid_request_error",
  "unsupported_parameter", "unsupported_value"};
constexpr std::array<std::string_view, 3> proxy_budget_words{
  "budget_exceeded", "ExceededBudget", "BudgetExceededError"};

bool has_word(const provider_error& error, std::span<const std::string_view> words) {
  return is_one_of(error.code, words) || is_one_of(error.type, words)
    || is_one_of(error.detail_code, words) || is_one_of(error.status, words);
}

void read_google_details(const ordered_json* details, provider_error& error) {
  if (details == nullptr || !details->is_array())
    return;
  for (const auto& each : *details) {
    const auto type = text_at(&each, "@type");
    if (type.ends_with("RetryInfo"))
      error.retry_delay = parse_reset_duration(text_at(&each, "retryDelay"));
    if (!type.ends_with("QuotaFailure"))
      continue;
    const auto* violations = member(&each, "violations");
    if (violations == nullptr || !violations->is_array())
      continue;
    for (const auto& one : *violations)
      if (text_at(&one, "quotaId").find("PerDay") != std::string_view::npos
        || text_at(&one, "quotaValue") == "0")
        error.quota_is_gone = true;
  }
}

/// FastAPI's list of what is wrong with a request, or its one sentence.
std::string detail_text(const ordered_json* detail) {
  if (const auto* first = first_element(detail))
    return std::string{text_at(first, "msg")};
  return std::string{text_of(detail)};
}

std::string words_of(const provider_error& error) {
  // A number says less than a name.
  const auto& name = !error.code.empty() && error.numeric_code == 0 ? error.code
    : !error.type.empty()                                           ? error.type
    : !error.status.empty()                                         ? error.status
                                                                    : error.code;
  auto words = plain_words(name, 80);
  if (!error.message.empty())
    words += (words.empty() ? "" : ": ") + plain_words(error.message);
  if (!error.param.empty())
    words += fmt::format(" (field {})", plain_words(error.param, 80));
  return words;
}

trouble make(trouble_kind kind, std::string what, nanoseconds wait = nanoseconds{0}) {
  trouble out;
  out.kind = kind;
  out.wait = wait;
  out.what = std::move(what);
  return out;
}

/// A reset in the headers, when the server does not say how long in any other way.
nanoseconds wait_of_limits(const http_headers& headers, std::chrono::sys_seconds now_utc) {
  const auto limits = limits_in(headers, now_utc);
  nanoseconds wait{0};
  if (limits.requests_remaining == 0)
    wait = std::max(wait, limits.requests_reset);
  if (limits.tokens_remaining == 0)
    wait = std::max(wait, limits.tokens_reset);
  return wait;
}

trouble_kind kind_by_status(uint32_t status) {
  switch (status) {
  case 429:
    return trouble_kind::throttle;
  case 402:
    return trouble_kind::money;
  case 413:
    return trouble_kind::too_big;
  case 529:
    return trouble_kind::overload;
  case 408:
  case 409:
  case 425:
    return trouble_kind::transient;
  case 0:
    return trouble_kind::ambiguous;
  default:
    return status >= 500 ? trouble_kind::transient : trouble_kind::config;
  }
}

/// Whether a prompt that is too large is what this status may mean.
bool can_be_too_big(uint32_t status) {
  return status == 0 || status == 200 || status == 400 || status == 413 || status == 422
    || status == 500;
}

struct judged {
  trouble_kind kind = trouble_kind::none;
  /// Goes before the server's words.
  std::string_view why;
};

judged kind_of(uint32_t status, const provider_error& error, bool asks_to_wait) {
  const auto message = lower(error.message);
  if (status == 402 || error.numeric_code == 402) {
    if (error.limit_source == "openrouter_in_flight_budget"
      || (error.limit_source.empty() && asks_to_wait))
      return {trouble_kind::throttle, "too many calls under way for the account's balance"};
    return {trouble_kind::money, "no credit left"};
  }
  // A proxy's own counter, which is known to count wrong in both directions.
  if (has_word(error, proxy_budget_words))
    return {trouble_kind::throttle, "the proxy takes its budget for spent"};
  if (has_word(error, money_words))
    return {trouble_kind::money, "no money or quota left"};
  if ((status == 400 || status == 403 || status == 429) && mentions(message, money_phrases))
    return {trouble_kind::money, "no money or quota left"};
  if (error.status == "RESOURCE_EXHAUSTED") {
    constexpr auto pause_max = std::chrono::hours{1};
    if (error.quota_is_gone || message.find("limit: 0") != std::string::npos
      || (error.retry_delay && *error.retry_delay > pause_max))
      return {trouble_kind::money, "the quota of the day is spent, or there is none"};
    return {trouble_kind::throttle, ""};
  }
  // OpenAI's 429 for a request that is larger than what a minute allows: waiting does not help.
  const bool beyond_a_minute =
    status == 429 && message.find("request too large for") != std::string::npos;
  if (has_word(error, too_big_words) || beyond_a_minute
    || (can_be_too_big(status) && mentions(message, too_big_phrases)))
    return {trouble_kind::too_big, "the prompt is too large"};
  if (has_word(error, overload_words))
    return {trouble_kind::overload, "the server is overloaded"};
  if ((status == 503 || status == 429 || status == 0)
    && (error.status == "UNAVAILABLE" || mentions(message, overload_phrases)))
    return {trouble_kind::overload, "the server is overloaded"};
  if (status == 0 && has_word(error, throttle_words))
    return {trouble_kind::throttle, ""};
  if (status == 0 && has_word(error, config_words))
    return {trouble_kind::config, ""};
  return {kind_by_status(status == 0 ? error.numeric_code : status), ""};
}

/// What a person can do about an answer that will never be another one. The key itself is nowhere.
std::string_view setting_to_check(uint32_t status) {
  switch (status) {
  case 401:
    return "the server does not take the key: check the environment variable that key_env "
           "(--model-key-env) names";
  case 403:
    return "the key may not do this: check its rights, and the model's name (--model)";
  case 404:
    return "not found: check the endpoint (--model-endpoint), the model's name (--model) and the "
           "dialect (--model-dialect)";
  default:
    return "";
  }
}

bool is_html(std::string_view body, std::string_view content_type) {
  const auto start = body.find_first_not_of(" \t\r\n");
  return content_type.starts_with("text/html")
    || (start != std::string_view::npos && body[start] == '<');
}

} // namespace

std::optional<provider_error> read_provider_error(const ordered_json& document) {
  const ordered_json* whole = document.is_array() ? first_element(&document) : &document;
  if (whole == nullptr || !whole->is_object())
    return std::nullopt;
  provider_error read;
  const auto* inner = member(whole, "error");
  const bool bare =
    inner == nullptr && (text_at(whole, "type") == "error" || text_at(whole, "object") == "error");
  const auto* detail = member(whole, "detail");
  if (inner == nullptr && !bare) {
    if (detail == nullptr || member(whole, "choices") != nullptr)
      return std::nullopt;
    read.message = detail_text(detail);
    return read;
  }
  const auto* error = inner != nullptr ? inner : whole;
  if (error->is_string()) {
    read.message = text_of(error);
    return read;
  }
  read.message = text_at(error, "message");
  read.type = text_at(error, "type");
  read.code = word_at(error, "code");
  read.param = text_at(error, "param");
  read.status = text_at(error, "status");
  read.detail_code = text_at(member(error, "details"), "error_code");
  read_google_details(member(error, "details"), read);
  const auto* metadata = member(error, "metadata");
  for (const auto* place : {metadata, error, whole})
    if (read.limit_source.empty())
      read.limit_source = text_at(place, "limit_source");
  if (const auto number = natural_at(error, "code"); number && *number >= 100 && *number <= 599)
    read.numeric_code = static_cast<uint32_t>(*number);
  // Responses says only that it is an error; that is no name of one.
  if (bare && read.type == "error")
    read.type.clear();
  return read;
}

trouble judge_error(uint32_t status, const provider_error& error, const http_headers& headers,
  std::chrono::sys_seconds now_utc) {
  const auto asked = retry_after(headers, now_utc);
  auto judged = kind_of(status, error, asked.has_value());
  // Their word against a status: a failure that they call lasting gets few tries, a refusal that
  // they call passing gets some. Keys, money and sizes do not mend by themselves.
  const auto again = header(headers, "x-should-retry");
  if (again == "false" && judged.kind == trouble_kind::transient)
    judged.kind = trouble_kind::ambiguous;
  if (again == "true" && judged.kind == trouble_kind::config && status != 401 && status != 403
    && status != 404)
    judged.kind = trouble_kind::transient;
  nanoseconds wait{0};
  if (judged.kind == trouble_kind::transient || judged.kind == trouble_kind::throttle
    || judged.kind == trouble_kind::overload) {
    wait = asked.value_or(nanoseconds{0});
    if (!asked && error.retry_delay)
      wait = *error.retry_delay;
    if (!asked && !error.retry_delay && judged.kind == trouble_kind::throttle)
      wait = wait_of_limits(headers, now_utc);
  }
  std::string what = status == 0 ? "error in the stream" : fmt::format("HTTP {}", status);
  const auto why = judged.kind == trouble_kind::config && judged.why.empty()
    ? setting_to_check(status)
    : judged.why;
  if (!why.empty())
    what += fmt::format(": {}", why);
  if (const auto words = words_of(error); !words.empty())
    what += fmt::format("; the server says {}", words);
  return make(judged.kind, std::move(what), wait);
}

trouble judge_stream_error(const provider_error& error, bool begun) {
  auto judged = judge_error(0, error, {}, {});
  if (judged.kind == trouble_kind::transient || (begun && judged.kind != trouble_kind::money)) {
    judged.kind = trouble_kind::ambiguous;
    judged.wait = nanoseconds{0};
  }
  return judged;
}

trouble judge_answer(const http_report& ended, std::chrono::sys_seconds now_utc) {
  const auto why = ended.why.empty() ? std::string{} : ": " + plain_words(ended.why);
  const auto told = to_string(ended.how) + why;
  switch (ended.how) {
  case http_end::cancelled:
    return make(trouble_kind::ambiguous, told);
  case http_end::not_sent:
    // A key that is not there, or is none, will not come by waiting (transport/key.hpp).
    if (ended.why.find("environment variable") != std::string::npos)
      return make(trouble_kind::config, told);
    return make(trouble_kind::transient, told);
  case http_end::connect_timeout:
    return make(trouble_kind::transient, told);
  case http_end::first_event_timeout:
  case http_end::idle_timeout:
  case http_end::wall_timeout:
  case http_end::too_large:
    return make(trouble_kind::ambiguous, told);
  case http_end::cut_off:
    // Cut off before any answer is a reset of the connection; later, it is a billed fragment.
    if (ended.status == 0)
      return make(trouble_kind::transient, told);
    if (ended.status == 200)
      return make(trouble_kind::ambiguous, told);
    break;
  case http_end::complete:
    break;
  }
  const std::string_view body = ended.body;
  const auto type = header(ended.headers, "content-type");
  // Whatever the type says: some send JSON as text/html. A page is no JSON in any case.
  const bool readable = !body.empty() && body.size() <= body_max;
  const auto document = readable ? read_json(body) : std::nullopt;
  const auto error = document ? read_provider_error(*document) : std::nullopt;
  if (ended.status == 200) {
    // OpenRouter answers so: the real status is in the body, or there is none.
    if (error && error->numeric_code != 0)
      return judge_error(error->numeric_code, *error, ended.headers, now_utc);
    if (error)
      return judge_stream_error(*error, false);
    if (body.empty())
      return make(trouble_kind::ambiguous, "HTTP 200 with an empty answer");
    return make(trouble_kind::config,
      fmt::format("HTTP 200 with {} instead of an event stream: check the endpoint "
                  "(--model-endpoint) and the dialect (--model-dialect)",
        type.empty() ? std::string{"no content type"} : plain_words(type, 80)));
  }
  if (error)
    return judge_error(ended.status, *error, ended.headers, now_utc);
  // No JSON, or none that says anything: the page of a proxy in between, or nothing at all. A short
  // text may be quoted, but decides nothing.
  auto judged = judge_error(ended.status, {}, ended.headers, now_utc);
  if (ended.status >= 300 && ended.status < 400)
    judged.what += ": the endpoint (--model-endpoint) sends us elsewhere, which is not followed";
  if (!document && is_html(body, type))
    judged.what += "; the answer is a page of HTML, as of a proxy in between";
  else if (body.empty())
    judged.what += "; the answer is empty";
  else if (!document && body.size() <= body_max)
    judged.what += "; the answer says " + plain_words(body, 120);
  return judged;
}

} // namespace gristmill
