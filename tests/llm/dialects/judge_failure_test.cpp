#include "llm/dialects/plain_words.hpp"
#include "tests/llm/dialects/stream.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

bool has(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

trouble ended_as(http_end how, uint32_t status, const std::string& why = "") {
  http_report ended;
  ended.status = status;
  ended.how = how;
  ended.why = why;
  ended.ended = true;
  return spoken("openai-chat").judge_failure(ended, now());
}

} // namespace

TEST_CASE("a status alone decides when the body says nothing") {
  struct row {
    uint32_t status;
    trouble_kind kind;
  };
  for (const auto& [status, kind] : {row{400, trouble_kind::config}, row{401, trouble_kind::config},
         row{403, trouble_kind::config}, row{404, trouble_kind::config},
         row{405, trouble_kind::config}, row{408, trouble_kind::transient},
         row{409, trouble_kind::transient}, row{413, trouble_kind::too_big},
         row{422, trouble_kind::config}, row{425, trouble_kind::transient},
         row{429, trouble_kind::throttle}, row{500, trouble_kind::transient},
         row{502, trouble_kind::transient}, row{503, trouble_kind::transient},
         row{504, trouble_kind::transient}, row{524, trouble_kind::transient},
         row{529, trouble_kind::overload}, row{402, trouble_kind::money},
         row{301, trouble_kind::config}, row{204, trouble_kind::config}}) {
    CAPTURE(status);
    CHECK(judged(status, "").kind == kind);
    CHECK(judged(status, corpus_text("errors/proxy-page.html")).kind == kind);
    CHECK(judged(status, "{}").kind == kind);
    CHECK(judged(status, "not { json").kind == kind);
  }
}

TEST_CASE("a page of a proxy is judged by its status and not read") {
  const auto page = judged_file(429, "proxy-page.html", {{"retry-after", "9"}});
  CHECK(page.kind == trouble_kind::throttle);
  CHECK(page.wait == 9s);
  CHECK(has(page.what, "HTML"));
  CHECK_FALSE(has(page.what, "nginx"));
  // Words in a page are no codes.
  CHECK(judged(503, "<p>insufficient_quota usage limit overloaded</p>").kind
    == trouble_kind::transient);
  CHECK(has(judged(502, "").what, "empty"));
  // An error of a model server under the wrong type is one nevertheless.
  CHECK(judged_file(429, "insufficient-quota.json", {{"content-type", "text/html"}}).kind
    == trouble_kind::money);
}

TEST_CASE("a throttle waits for as long as the server says, in any of its ways") {
  CHECK(judged_file(429, "rate-limit.json", {{"retry-after", "7"}}).wait == 7s);
  CHECK(judged_file(429, "rate-limit.json", {{"retry-after-ms", "250"}, {"retry-after", "7"}}).wait
    == 250ms);
  CHECK(judged_file(429, "rate-limit.json", {{"retry-after", "Mon, 30 Nov 2026 12:00:30 GMT"}}).wait
    == 30s);
  CHECK(judged_file(429, "rate-limit.json",
          {{"x-ratelimit-remaining-requests", "0"}, {"x-ratelimit-reset-requests", "6m0s"},
            {"x-ratelimit-remaining-tokens", "5"}, {"x-ratelimit-reset-tokens", "1h"}})
          .wait
    == 6min);
  CHECK(judged_file(429, "rate-limit.json").wait == 0s);
  CHECK(judged(503, "", {{"retry-after", "5"}}).wait == 5s);
  // No wait is asked of what is not tried again.
  CHECK(judged_file(429, "insufficient-quota.json", {{"retry-after", "7"}}).wait == 0s);
}

TEST_CASE("no money left is seen behind 429, 400, 402 and 403") {
  for (const auto* file :
    {"insufficient-quota.json", "credit-exhausted.json", "spend-limit-anthropic.json"})
    CHECK(judged_file(429, file).kind == trouble_kind::money);
  CHECK(judged_file(400, "usage-limit-anthropic.json").kind == trouble_kind::money);
  CHECK(judged(402, R"({"type":"error","error":{"type":"billing_error","message":"x"}})").kind
    == trouble_kind::money);
  for (const auto* code : {"organization_spend_limit_exceeded", "project_spend_limit_exceeded",
         "organization_usage_limit_exceeded"})
    CHECK(judged(429,
            std::string{R"({"error":{"type":"insufficient_quota","message":"","code":")"} + code
              + "\"}}")
            .kind
      == trouble_kind::money);
  CHECK(judged_file(429, "rate-limit.json").kind == trouble_kind::throttle);
}

TEST_CASE("Gemini's wait stands in the body, and some of its quotas never come back") {
  const auto minute = judged_file(429, "gemini-minute.json");
  CHECK(minute.kind == trouble_kind::throttle);
  CHECK(minute.wait == 46500ms);
  CHECK(judged_file(429, "gemini-day.json").kind == trouble_kind::money);
  CHECK(judged_file(429, "gemini-never.json").kind == trouble_kind::money);
  CHECK(judged_file(503, "gemini-overloaded.json").kind == trouble_kind::overload);
}

TEST_CASE("overload is the server's trouble and not our quota") {
  CHECK(judged_file(529, "overloaded-anthropic.json").kind == trouble_kind::overload);
  CHECK(judged_file(503, "overloaded-anthropic.json").kind == trouble_kind::overload);
  CHECK(judged(503, R"({"error":{"message":"Slow down","code":"slow_down"}})").kind
    == trouble_kind::overload);
  CHECK(
    judged(503, R"({"error":{"message":"internal","code":null}})").kind == trouble_kind::transient);
  CHECK(judged(429, R"({"error":{"message":"That model is currently overloaded"}})").kind
    == trouble_kind::overload);
}

TEST_CASE("a prompt that is too large is seen in the words of each server") {
  for (const auto* file : {"context-openai.json", "context-vllm.json", "context-llama-cpp.json",
         "context-anthropic.json", "lmstudio-context.json"}) {
    CAPTURE(file);
    CHECK(judged_file(400, file).kind == trouble_kind::too_big);
  }
  CHECK(judged(413, R"({"type":"error","error":{"type":"request_too_large","message":"x"}})").kind
    == trouble_kind::too_big);
  CHECK(
    judged(429,
      R"({"error":{"message":"Request too large for m on tokens per min: Limit 30000","code":"rate_limit_exceeded"}})")
      .kind
    == trouble_kind::too_big);
  CHECK(judged(503, R"({"error":{"message":"a worker lost its maximum context length"}})").kind
    == trouble_kind::transient);
}

TEST_CASE("what will never work names the setting") {
  const auto key = judged_file(401, "wrong-key.json");
  CHECK(key.kind == trouble_kind::config);
  CHECK(has(key.what, "key_env (--model-key-env)"));
  const auto model = judged_file(404, "unknown-model-vllm.json");
  CHECK(model.kind == trouble_kind::config);
  CHECK(has(model.what, "--model"));
  CHECK(has(model.what, "`nope` does not exist"));
  CHECK(has(judged_file(422, "detail-fastapi.json").what, "field required"));
  CHECK(has(judged(307, "").what, "--model-endpoint"));
}

TEST_CASE(
  "an answer with status 200 that is no stream is a wrong endpoint, unless it is an error") {
  const auto page = judged(200, "<!doctype html><html>", {{"content-type", "text/html"}});
  CHECK(page.kind == trouble_kind::config);
  CHECK(has(page.what, "text/html"));
  CHECK(judged(200, R"({"choices":[]})", {{"content-type", "application/json"}}).kind
    == trouble_kind::config);
  CHECK(judged(200, "").kind == trouble_kind::ambiguous);
  CHECK(judged(200, R"({"error":{"message":"odd"}})").kind == trouble_kind::ambiguous);
  CHECK(judged_file(200, "insufficient-quota.json").kind == trouble_kind::money);
}

TEST_CASE("x-should-retry is heeded where the table leaves a choice") {
  CHECK(judged(500, "", {{"x-should-retry", "false"}}).kind == trouble_kind::ambiguous);
  CHECK(judged(500, "", {{"x-should-retry", "true"}}).kind == trouble_kind::transient);
  CHECK(judged(400, "", {{"x-should-retry", "true"}}).kind == trouble_kind::transient);
  CHECK(judged(429, "", {{"x-should-retry", "false"}}).kind == trouble_kind::throttle);
  CHECK(judged(401, "", {{"x-should-retry", "true"}}).kind == trouble_kind::config);
  CHECK(judged_file(429, "insufficient-quota.json", {{"x-should-retry", "true"}}).kind
    == trouble_kind::money);
}

TEST_CASE("a transfer that failed is judged by how far it came") {
  CHECK(ended_as(http_end::not_sent, 0, "no route").kind == trouble_kind::transient);
  CHECK(ended_as(http_end::connect_timeout, 0).kind == trouble_kind::transient);
  CHECK(ended_as(http_end::cut_off, 0).kind == trouble_kind::transient);
  CHECK(ended_as(http_end::cut_off, 200).kind == trouble_kind::ambiguous);
  CHECK(ended_as(http_end::cut_off, 503).kind == trouble_kind::transient);
  CHECK(ended_as(http_end::cut_off, 401).kind == trouble_kind::config);
  for (const auto how : {http_end::first_event_timeout, http_end::idle_timeout,
         http_end::wall_timeout, http_end::too_large, http_end::cancelled})
    CHECK(ended_as(how, 200).kind == trouble_kind::ambiguous);
  CHECK(has(ended_as(http_end::not_sent, 0, "no route").what, "no route"));
  CHECK(ended_as(http_end::not_sent, 0,
          "the environment variable TOY_KEY, which is to hold the key, is not set")
          .kind
    == trouble_kind::config);
}

TEST_CASE("an error in a stream keeps its class while nothing of the answer has come") {
  const auto throttled = decoded_file("openai-responses/error.sse");
  CHECK(throttled.failed.kind == trouble_kind::throttle);
  CHECK(has(throttled.failed.what, "Too fast."));
  CHECK(decoded_file("openai-responses/failed.sse").failed.kind == trouble_kind::ambiguous);
  const auto error = [](const std::string& body) {
    return decoded_bytes("anthropic-messages", "event: error\ndata: " + body + "\n\n").failed.kind;
  };
  CHECK(error(R"({"type":"error","error":{"type":"overloaded_error","message":"x"}})")
    == trouble_kind::overload);
  CHECK(error(R"({"type":"error","error":{"type":"api_error","message":"x"}})")
    == trouble_kind::ambiguous);
  CHECK(error(R"({"type":"error","error":{"type":"invalid_request_error","message":"x"}})")
    == trouble_kind::config);
  CHECK(error(R"({"message":"odd"})") == trouble_kind::ambiguous);
  // After text, after reasoning and after a count of the prompt it is billed; the end of the money
  // stays the end of the money.
  for (const auto* first : {R"({"choices":[{"delta":{"reasoning":"a"}}]})",
         R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0}})"})
    CHECK(decoded_bytes("openai-chat",
            std::string{"data: "} + first + "\n\ndata: {\"error\":{\"code\":429}}\n\n")
            .failed.kind
      == trouble_kind::ambiguous);
  CHECK(
    decoded_bytes("openai-chat", "data: {\"choices\":[]}\n\ndata: {\"error\":{\"code\":429}}\n\n")
      .failed.kind
    == trouble_kind::throttle);
  const std::string begun = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
  CHECK(decoded_bytes("openai-chat", begun + "data: {\"error\":{\"code\":429}}\n\n").failed.kind
    == trouble_kind::ambiguous);
  CHECK(
    decoded_bytes("openai-chat", begun + "data: {\"error\":{\"code\":\"insufficient_quota\"}}\n\n")
      .failed.kind
    == trouble_kind::money);
}

TEST_CASE("a server's words hold no key, no control character and no flood") {
  const auto key = judged_file(401, "wrong-key.json");
  CHECK_FALSE(has(key.what, "abcdEFGH"));
  CHECK(has(key.what, "[redacted]"));
  for (const auto* secret : {"sk-ant-api03-AbCd1234", "AIzaSyA1234567890", "Bearer abc.def-123",
         "key=0123456789abcdef", "hf_abcdefghij", "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
         "eyJhbGciOi.eyJzdWIi.sig", "gsk_a1b2c3"}) {
    CAPTURE(secret);
    const auto words = plain_words(std::string{"no such key: "} + secret + ", sorry");
    CHECK_FALSE(has(words, std::string{secret}.substr(7)));
    CHECK(has(words, "sorry"));
  }
  for (const auto* harmless :
    {"gpt-4o-mini-2024-07-18", "Qwen2.5-Coder-32B-Instruct-GPTQ-Int4",
      "organization_usage_limit_exceeded", "max_completion_tokens", "claude-sonnet-4-5-20250929"})
    CHECK(plain_words(harmless) == harmless);
  const auto odd = judged(500, "{\"error\":\"a\\u001b[31mred\\n\\u0000b\\u202ec\\u009bd\"}").what;
  CHECK(std::none_of(odd.begin(), odd.end(), [](char c) { return c >= 0 && c < 0x20; }));
  CHECK_FALSE(has(odd, "\xE2\x80\xAE"));
  CHECK_FALSE(has(odd, "\xC2\x9B"));
  const auto flood = judged(500, "{\"error\":\"" + std::string(100'000, 'x') + "\"}").what;
  CHECK(flood.size() < 500);
  CHECK(is_utf8(judged(400, std::string(500, '\xFF')).what));
  // Cut between characters, not within one.
  std::string wide;
  for (int i = 0; i < 200; ++i)
    wide += "\xE2\x82\xAC";
  CHECK(is_utf8(plain_words(wide, 100)));
}

TEST_CASE("no body is too odd to be judged") {
  for (const auto& body : {std::string(3 << 20, 'x'), std::string(100'000, '['), std::string{"[]"},
         std::string{"null"}, std::string{"7"}, std::string{"\"text\""},
         std::string{R"({"error":null})"}, std::string{R"({"error":[]})"},
         std::string{R"({"error":{"code":{},"message":[],"details":7}})"},
         std::string{R"({"error":{"code":99999999999999999999,"message":null}})"},
         std::string{R"({"detail":[]})"}, std::string{R"({"error":{"code":-1}})"},
         std::string{R"([[{"error":1}]])"}}) {
    const auto odd = judged(500, body);
    CHECK(odd.kind == trouble_kind::transient);
    CHECK_FALSE(odd.what.empty());
    CHECK(judged(429, body).kind == trouble_kind::throttle);
  }
}
