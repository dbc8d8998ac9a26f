#include "llm/traffic/call_reader.hpp"
#include "tests/llm/traffic/gateway_driver.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

// From the bytes of a server to what the gateway does: dialect, reader and core together, with the
// answers that providers document.

namespace {

/// What became of the first of two deployments, and of the call.
enum class deed { again_there, paused, moved_on, closed, call_fails, context_exceeded };

struct seen_answer {
  const char* dialect;
  uint32_t status;
  http_headers headers;
  std::string body;
  deed expected;
};

const http_headers json_type{{"content-type", "application/json"}};

http_headers json_with(const char* name, const char* value) {
  auto out = json_type;
  out.emplace_back(name, value);
  return out;
}

try_result read_whole(const dialect& how, uint32_t status, http_headers headers, std::string body) {
  call_reader reader(1, how, 1000);
  http_report report;
  report.id = 1;
  report.status = status;
  report.headers = std::move(headers);
  report.body = std::move(body);
  report.ended = true;
  auto out = reader.take(report, 1s, std::chrono::sys_seconds{std::chrono::seconds{1'796'000'000}});
  REQUIRE(out);
  return *out;
}

deed deed_of(const seen_answer& row) {
  auto how = find_dialect(row.dialect);
  REQUIRE(how);
  gateway_driver g(some_deployments(2));
  auto asker = g.ask(a_request(1));
  REQUIRE(g.open[0].deployment == 0);
  g.finish(read_whole(**how, row.status, row.headers, row.body));
  auto first = g.core.snapshot(g.now).deployments[0];
  if (g.answers.count(asker) != 0) {
    REQUIRE(g.answers[asker].finish == finish_kind::context_exceeded);
    return deed::context_exceeded;
  }
  if (first.paused.find("paused by the server") != std::string::npos)
    return deed::paused;
  if (!first.paused.empty())
    return deed::closed;
  if (!g.open.empty())
    return deed::moved_on;
  if (g.refusals.count(asker) != 0)
    return deed::call_fails;
  g.advance_to_send();
  return g.open[0].deployment == 0 ? deed::again_there : deed::moved_on;
}

} // namespace

TEST_SUITE_BEGIN("decision table");

TEST_CASE("each documented answer of a server leads to the deed of the table") {
  const std::string html = "<html><body>502 Bad Gateway</body></html>";
  const seen_answer rows[] = {
    {"openai-chat", 500, json_type, R"({"error":{"message":"oops","type":"server_error"}})",
      deed::again_there},
    {"openai-chat", 502, {{"content-type", "text/html"}}, html, deed::again_there},
    {"openai-chat", 408, json_type, "", deed::again_there},
    {"openai-chat", 409, json_type, "", deed::again_there},
    {"openai-chat", 429, json_with("retry-after", "20"),
      R"({"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}})",
      deed::paused},
    {"openai-chat", 429, json_type,
      R"({"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}})",
      deed::closed},
    {"openai-chat", 401, json_type,
      R"({"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}})",
      deed::closed},
    {"openai-chat", 404, json_type,
      R"({"error":{"message":"The model does not exist","code":"model_not_found"}})", deed::closed},
    {"openai-chat", 400, json_type,
      R"({"error":{"message":"Unsupported parameter","type":"invalid_request_error"}})",
      deed::moved_on},
    {"openai-chat", 400, json_type,
      R"({"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":2048}})",
      deed::context_exceeded},
    {"openai-chat", 413, {{"content-type", "text/html"}}, html, deed::context_exceeded},
    {"anthropic-messages", 529, json_type,
      R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})",
      deed::moved_on},
    {"anthropic-messages", 429, json_with("retry-after", "12"),
      R"({"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your per-minute rate limit"}})",
      deed::paused},
    {"anthropic-messages", 402, json_type,
      R"({"type":"error","error":{"type":"billing_error","message":"no credit"}})", deed::closed},
    {"anthropic-messages", 403, json_type,
      R"({"type":"error","error":{"type":"permission_error","message":"no"}})", deed::closed},
  };
  for (const auto& row : rows) {
    CAPTURE(row.dialect);
    CAPTURE(row.status);
    CAPTURE(row.body);
    CHECK(static_cast<int>(deed_of(row)) == static_cast<int>(row.expected));
  }
}

TEST_CASE("a stream of each dialect is paid by its own count of tokens") {
  struct stream {
    const char* dialect;
    std::vector<sse_event> events;
    llm_usage usage;
  };
  const stream rows[] = {
    {"openai-chat",
      {{"", R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]})"},
        {"", R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"},
        {"",
          R"({"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":20}}})"},
        {"", "[DONE]"}},
      {usage_state::exact, 40, 60, 0, 10, 20}},
    {"anthropic-messages",
      {{"message_start",
         R"({"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":40,"cache_read_input_tokens":60,"cache_creation_input_tokens":5,"output_tokens":1}}})"},
        {"content_block_start",
          R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"},
        {"content_block_delta",
          R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}})"},
        {"content_block_stop", R"({"type":"content_block_stop","index":0})"},
        {"message_delta",
          R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30}})"},
        {"message_stop", R"({"type":"message_stop"})"}},
      {usage_state::exact, 40, 60, 5, 30, 0}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.dialect);
    auto how = find_dialect(row.dialect);
    REQUIRE(how);
    gateway_driver g(some_deployments(1));
    auto asker = g.ask(a_request(1));
    call_reader reader(g.open[0].record.id, **how, 1000);
    http_report report;
    report.status = 200;
    report.headers = {{"content-type", "text/event-stream"}};
    report.events = row.events;
    CHECK_FALSE(reader.take(report, 1s, {}));
    CHECK(reader.just_finished());
    http_report last;
    last.ended = true;
    auto ended = reader.take(last, 2s, {});
    REQUIRE(ended);
    g.finish(*ended);
    REQUIRE(g.answers.count(asker) == 1);
    CHECK(g.answers[asker].text == "hi");
    CHECK(g.answers[asker].usage == row.usage);
    CHECK(g.run().spent.nano_usd == cost_of(plain_price("x"), row.usage));
    CHECK(g.run().held == budget_amounts{});
  }
}

TEST_CASE("a stream that breaks off after words is held, whatever dialect") {
  for (const char* name : {"openai-chat", "openai-responses", "anthropic-messages"}) {
    CAPTURE(name);
    auto how = find_dialect(name);
    REQUIRE(how);
    gateway_driver g(some_deployments(1));
    g.ask(a_request(1));
    auto reserved = g.run().reserved;
    call_reader reader(g.open[0].record.id, **how, 1000);
    http_report report;
    report.status = 200;
    report.headers = {{"content-type", "text/event-stream"}};
    reader.take(report, 1s, {});
    http_report last;
    last.ended = true;
    last.how = http_end::cut_off;
    report.events = {{"", "{}"}};
    reader.take(report, 1s, {});
    auto ended = reader.take(last, 2s, {});
    REQUIRE(ended);
    g.finish(*ended);
    CHECK(g.run().held.nano_usd == reserved.nano_usd);
    CHECK(g.core.snapshot(g.now).calls_unknown == 1);
  }
}

TEST_SUITE_END();
