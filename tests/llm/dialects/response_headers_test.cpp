#include "llm/dialects/response_headers.hpp"
#include "llm/dialects/token_estimate.hpp"
#include "tests/llm/dialects/stream.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

rate_limits limits(const http_headers& headers) {
  return spoken("openai-chat").limits_of(headers, now());
}

} // namespace

TEST_CASE("resets of OpenAI are durations") {
  CHECK(parse_reset_duration("1s") == 1s);
  CHECK(parse_reset_duration("6m0s") == 6min);
  CHECK(parse_reset_duration("1h2m3.5s") == 1h + 2min + 3500ms);
  CHECK(parse_reset_duration("120ms") == 120ms);
  CHECK(parse_reset_duration("1d") == 24h);
  CHECK(parse_reset_duration("46.5s") == 46500ms);
  CHECK(parse_reset_duration(" 7 ") == 7s);
  for (const auto* text :
    {"", "s", "-1s", "1", "1x", "1s ago", ".5s", "5.s", "1e3s", "nan", "1 s"}) {
    CAPTURE(text);
    CHECK(parse_reset_duration(text).has_value() == (std::string_view{text} == "1"));
  }
}

TEST_CASE("a wait beyond every run is told as a hundred days and never wraps") {
  CHECK(parse_reset_duration("99999999999999999999s") == 2400h);
  CHECK(retry_after({{"retry-after", "18446744073709551615"}}, now()) == 2400h);
  CHECK(time_until_rfc3339("2199-01-01T00:00:00Z", now()) == 2400h);
}

TEST_CASE("resets of Anthropic are instants, with fractions and offsets") {
  CHECK(time_until_rfc3339("2026-11-30T12:00:30Z", now()) == 30s);
  CHECK(time_until_rfc3339("2026-11-30T12:00:30.25Z", now()) == 30250ms);
  CHECK(time_until_rfc3339("2026-11-30T14:01:00+02:00", now()) == 60s);
  CHECK(time_until_rfc3339("2026-11-30T06:31:00-05:30", now()) == 60s);
  CHECK(time_until_rfc3339("2026-11-30T11:00:00Z", now()) == 0s);
  for (const auto* text : {"", "2026-11-30", "2026-13-30T12:00:00Z", "2026-02-30T12:00:00Z",
         "2026-11-30T12:00:00", "2026-11-30T25:00:00Z", "2026-11-30T12:00:00Zx",
         "2026-11-30T12:00:00.Z", "9999-11-30T12:00:00Z"}) {
    CAPTURE(text);
    CHECK_FALSE(time_until_rfc3339(text, now()).has_value());
  }
}

TEST_CASE("retry-after-ms goes before Retry-After, which is seconds or a date") {
  CHECK(retry_after({{"retry-after", "7"}, {"retry-after-ms", "1500"}}, now()) == 1500ms);
  CHECK(retry_after({{"retry-after", "7"}}, now()) == 7s);
  CHECK(retry_after({{"retry-after", "0.5"}}, now()) == 500ms);
  CHECK(retry_after({{"retry-after", "Mon, 30 Nov 2026 12:02:00 GMT"}}, now()) == 2min);
  CHECK(retry_after({{"retry-after", "Mon, 30 Nov 2026 11:02:00 GMT"}}, now()) == 0s);
  CHECK(retry_after({{"retry-after-ms", "soon"}, {"retry-after", "3"}}, now()) == 3s);
  for (const auto* text : {"", "-5", "later", "Mon, 31 Nov 2026 12:02:00 GMT",
         "Mon, 30 Foo 2026 12:02:00 GMT", "Mon, 30 Nov 2026 12:02:00 CET", "inf"}) {
    CAPTURE(text);
    CHECK_FALSE(retry_after({{"retry-after", text}}, now()).has_value());
  }
}

TEST_CASE("limits are read from both families of headers") {
  const auto openai =
    limits({{"x-ratelimit-limit-requests", "60"}, {"x-ratelimit-remaining-requests", "59"},
      {"x-ratelimit-reset-requests", "1s"}, {"x-ratelimit-limit-tokens", "150000"},
      {"x-ratelimit-remaining-tokens", "149984"}, {"x-ratelimit-reset-tokens", "6m0s"}});
  CHECK(openai.requests_remaining == 59);
  CHECK(openai.requests_reset == 1s);
  CHECK(openai.tokens_remaining == 149984);
  CHECK(openai.tokens_reset == 6min);

  const auto anthropic = limits(
    {{"anthropic-ratelimit-requests-limit", "50"}, {"anthropic-ratelimit-requests-remaining", "0"},
      {"anthropic-ratelimit-requests-reset", "2026-11-30T12:00:10Z"},
      {"anthropic-ratelimit-input-tokens-remaining", "40000"},
      {"anthropic-ratelimit-input-tokens-reset", "2026-11-30T12:01:00Z"},
      {"anthropic-ratelimit-output-tokens-remaining", "8000"},
      {"anthropic-ratelimit-output-tokens-reset", "2026-11-30T12:00:20Z"}});
  CHECK(anthropic.requests_remaining == 0);
  CHECK(anthropic.requests_reset == 10s);
  CHECK(anthropic.tokens_remaining == 8000);
  CHECK(anthropic.tokens_reset == 20s);
}

TEST_CASE("a server without limits says so with -1") {
  const auto none = limits({{"content-type", "text/event-stream"}});
  CHECK(none.requests_remaining == -1);
  CHECK(none.tokens_remaining == -1);
  CHECK(none.requests_reset == -1ns);
  CHECK(none.tokens_reset == -1ns);
}

TEST_CASE("trap Azure (openai-dotnet#838): limits of -1 and 0 are no limits") {
  const auto minus = limits({{"x-ratelimit-limit-requests", "-1"},
    {"x-ratelimit-remaining-requests", "-1"}, {"x-ratelimit-reset-requests", "0"},
    {"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "0"}});
  CHECK(minus.requests_remaining == -1);
  CHECK(minus.tokens_remaining == -1);
  CHECK(limits({{"x-ratelimit-limit-tokens", "0"}, {"x-ratelimit-remaining-tokens", "0"},
                 {"x-ratelimit-reset-tokens", "10s"}})
          .tokens_remaining
    == -1);
  // And without Retry-After nothing makes up a wait: how long is the caller's to choose.
  const auto judged_429 = judged_file(429, "rate-limit.json",
    {{"x-ratelimit-remaining-tokens", "-1"}, {"x-ratelimit-reset-tokens", "0"}});
  CHECK(judged_429.kind == trouble_kind::throttle);
  CHECK(judged_429.wait == 0s);
}

TEST_CASE("the provider's number of a request comes from the headers of either family") {
  CHECK(request_id_of({{"request-id", "req_011"}}) == "req_011");
  CHECK(request_id_of({{"x-request-id", " abc "}, {"request-id", "other"}}) == "abc");
  CHECK(request_id_of({}).empty());
}

TEST_CASE("the estimate of a reservation is never below a token a byte") {
  llm_request request;
  request.instructions = "twelve bytes";
  request.messages = {{chat_role::user, "four"}, {chat_role::assistant, ""}};
  CHECK(input_tokens_at_most(request) >= 16);
  CHECK(input_tokens_at_most(request) == 128 + 3 * 16 + 16);
  CHECK(input_tokens_likely(request) < input_tokens_at_most(request));
  CHECK(tokens_likely(0) == 0);
  CHECK(tokens_likely(1) == 1);
  CHECK(tokens_likely(3) == 1);
  CHECK(tokens_likely(UINT64_MAX) == UINT64_MAX / 3);
}
