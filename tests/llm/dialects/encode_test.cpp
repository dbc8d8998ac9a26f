#include "llm/dialects/plain_words.hpp"
#include "tests/llm/dialects/stream.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <limits>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const std::vector<std::string> dialects{"openai-chat", "openai-responses", "anthropic-messages"};

llm_request small_request() {
  llm_request request;
  request.call = 7;
  request.problem = "rmsnorm";
  request.agent = "worker-1";
  request.instructions = "Write one kernel.";
  request.messages = {{chat_role::user, "problem"}, {chat_role::assistant, "answer"},
    {chat_role::user, "feedback"}, {chat_role::user, "one task"}};
  request.output_tokens_max = 4096;
  return request;
}

dialect_options small_options() {
  dialect_options how;
  how.model = "toy-1";
  how.endpoint = "http://127.0.0.1:8080/v1";
  how.key_environment = "TOY_KEY";
  return how;
}

nlohmann::json body_of(
  const std::string& name, const llm_request& request, const dialect_options& how) {
  const auto call = spoken(name).encode(request, how);
  REQUIRE_MESSAGE(call, (call ? "" : call.error().what));
  return nlohmann::json::parse(call->body);
}

std::string refusal_of(
  const std::string& name, const llm_request& request, const dialect_options& how) {
  const auto call = spoken(name).encode(request, how);
  REQUIRE_FALSE(call);
  CHECK(call.error().code == errc::invalid_input);
  return call.error().what;
}

bool has(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

} // namespace

TEST_CASE("Chat Completions: what is sent") {
  const auto call = spoken("openai-chat").encode(small_request(), small_options());
  REQUIRE(call);
  CHECK(call->url == "http://127.0.0.1:8080/v1/chat/completions");
  CHECK(call->key_header == "Authorization");
  CHECK(call->key_prefix == "Bearer ");
  CHECK(call->key_environment == "TOY_KEY");
  CHECK(call->body
    == R"({"max_tokens":4096,"messages":[{"content":"Write one kernel.","role":"system"},)"
       R"({"content":"problem","role":"user"},{"content":"answer","role":"assistant"},)"
       R"({"content":"feedback","role":"user"},{"content":"one task","role":"user"}],"model":"toy-1",)"
       R"("stream":true,"stream_options":{"include_usage":true}})");
}

TEST_CASE("Responses: what is sent") {
  const auto call = spoken("openai-responses").encode(small_request(), small_options());
  REQUIRE(call);
  CHECK(call->url == "http://127.0.0.1:8080/v1/responses");
  CHECK(call->key_header == "Authorization");
  CHECK(call->body
    == R"({"input":[{"content":"problem","role":"user"},{"content":"answer","role":"assistant"},)"
       R"({"content":"feedback","role":"user"},{"content":"one task","role":"user"}],)"
       R"("instructions":"Write one kernel.","max_output_tokens":4096,"model":"toy-1","stream":true})");
}

TEST_CASE("Messages: what is sent, with messages of one role in a row as one") {
  const auto call = spoken("anthropic-messages").encode(small_request(), small_options());
  REQUIRE(call);
  CHECK(call->url == "http://127.0.0.1:8080/v1/messages");
  CHECK(call->key_header == "x-api-key");
  CHECK(call->key_prefix.empty());
  const std::pair<std::string, std::string> version{"anthropic-version", "2023-06-01"};
  CHECK(std::count(call->headers.begin(), call->headers.end(), version) == 1);
  CHECK(call->body
    == R"({"max_tokens":4096,"messages":[{"content":[{"text":"problem","type":"text"}],"role":"user"},)"
       R"({"content":[{"text":"answer","type":"text"}],"role":"assistant"},)"
       R"({"content":[{"text":"feedback","type":"text"},{"text":"one task","type":"text"}],"role":"user"}],)"
       R"("model":"toy-1","stream":true,"system":"Write one kernel."})");
}

TEST_CASE("equal requests have equal bodies, whatever the order of the extra body") {
  for (const auto& name : dialects) {
    auto one = small_options();
    auto other = small_options();
    one.extra_body = R"({"top_k": 5, "cache": {"b": 1, "a": 2}})";
    other.extra_body = R"({"cache": {"a": 2, "b": 1}, "top_k": 5})";
    const auto first = spoken(name).encode(small_request(), one);
    const auto second = spoken(name).encode(small_request(), other);
    REQUIRE(first);
    REQUIRE(second);
    CHECK(first->body == second->body);
    CHECK(has(first->body, R"("cache":{"a":2,"b":1})"));
  }
}

TEST_CASE("no key is in a call, and without a variable there is no header for one") {
  auto how = small_options();
  for (const auto& name : dialects) {
    how.key_environment = "TOY_KEY";
    const auto call = spoken(name).encode(small_request(), how);
    REQUIRE(call);
    for (const auto& [key, value] : call->headers) {
      CHECK(key != "authorization");
      CHECK(key != "x-api-key");
      CHECK(value != "TOY_KEY");
    }
    how.key_environment.clear();
    CHECK(spoken(name).encode(small_request(), how)->key_header.empty());
  }
}

TEST_CASE("trap OpenAI reasoning models: with an effort no temperature is sent") {
  auto request = small_request();
  request.temperature = f64{0.7};
  auto how = small_options();
  for (const auto& name : dialects) {
    CAPTURE(name);
    how.reasoning_effort = "high";
    CHECK_FALSE(body_of(name, request, how).contains("temperature"));
    how.reasoning_effort = "none";
    CHECK(body_of(name, request, how)["temperature"] == 0.7);
  }
}

TEST_CASE("trap OpenAI reasoning models: temperature and seed are sent only when they are given") {
  auto request = small_request();
  for (const auto& name : dialects) {
    const auto body = body_of(name, request, small_options());
    CHECK_FALSE(body.contains("temperature"));
    CHECK_FALSE(body.contains("top_p"));
    CHECK_FALSE(body.contains("seed"));
  }
  request.temperature = f64{0.7};
  request.seed = UINT64_MAX;
  for (const auto& name : dialects)
    CHECK(body_of(name, request, small_options())["temperature"] == 0.7);
  // Only Chat Completions has a place for a seed; servers read 63 bits of it.
  CHECK(body_of("openai-chat", request, small_options())["seed"] == INT64_MAX);
  CHECK_FALSE(body_of("openai-responses", request, small_options()).contains("seed"));
  CHECK_FALSE(body_of("anthropic-messages", request, small_options()).contains("seed"));
  // And what the server says about one that it does not take is for a person.
  const auto refused = judged_file(400, "temperature-refused.json");
  CHECK(refused.kind == trouble_kind::config);
  CHECK(has(refused.what, "(field temperature)"));
}

TEST_CASE(
  "reports llama.cpp#13700, ollama#14464: a cap under a name that a server reads over is no cap") {
  auto how = small_options();
  for (const auto* endpoint : {"http://127.0.0.1:11434", "https://openrouter.ai/api/v1",
         "https://api.openai.com.example.org/v1", "https://example.org/api.openai.com"}) {
    how.endpoint = endpoint;
    const auto body = body_of("openai-chat", small_request(), how);
    CHECK(body["max_tokens"] == 4096);
    CHECK_FALSE(body.contains("max_completion_tokens"));
  }
  for (const auto* endpoint : {"https://api.openai.com/v1", "https://API.OpenAI.com:443",
         "https://ours.openai.azure.com/openai/v1"}) {
    how.endpoint = endpoint;
    const auto body = body_of("openai-chat", small_request(), how);
    CHECK(body["max_completion_tokens"] == 4096);
    CHECK_FALSE(body.contains("max_tokens"));
  }
}

TEST_CASE("the name of the cap can be given") {
  auto how = small_options();
  how.output_cap_field = "max_completion_tokens";
  const auto body = body_of("openai-chat", small_request(), how);
  CHECK(body["max_completion_tokens"] == 4096);
  CHECK_FALSE(body.contains("max_tokens"));
  how.output_cap_field = "max_token";
  CHECK(has(refusal_of("openai-chat", small_request(), how), "did you mean `max_tokens`?"));
  how.output_cap_field = "max_tokens";
  CHECK(has(refusal_of("openai-responses", small_request(), how), "output_cap_field"));
  CHECK(has(refusal_of("anthropic-messages", small_request(), how), "output_cap_field"));
}

TEST_CASE("instructions have the role that the model knows") {
  auto how = small_options();
  how.instructions_role = "developer";
  CHECK(body_of("openai-chat", small_request(), how)["messages"][0]["role"] == "developer");
  CHECK(body_of("openai-responses", small_request(), how)["instructions"] == "Write one kernel.");
  CHECK(has(refusal_of("anthropic-messages", small_request(), how), "instructions_role"));
  how.instructions_role = "sytem";
  for (const auto& name : dialects)
    CHECK(has(refusal_of(name, small_request(), how), "did you mean `system`?"));
  auto request = small_request();
  request.instructions.clear();
  CHECK(body_of("openai-chat", request, small_options())["messages"].size() == 4);
  CHECK_FALSE(body_of("openai-responses", request, small_options()).contains("instructions"));
  CHECK_FALSE(body_of("anthropic-messages", request, small_options()).contains("system"));
}

TEST_CASE("reasoning effort stands where each dialect has it") {
  auto how = small_options();
  how.reasoning_effort = "high";
  CHECK(body_of("openai-chat", small_request(), how)["reasoning_effort"] == "high");
  CHECK(body_of("openai-responses", small_request(), how)["reasoning"]["effort"] == "high");
  const auto body = body_of("anthropic-messages", small_request(), how);
  CHECK(body["output_config"]["effort"] == "high");
  CHECK(body["thinking"]["type"] == "adaptive");
  how.reasoning_effort = "none";
  CHECK(body_of("anthropic-messages", small_request(), how)["thinking"]["type"] == "disabled");
  how.reasoning_effort = "hihg";
  for (const auto& name : dialects)
    CHECK(has(refusal_of(name, small_request(), how), "did you mean `high`?"));
}

TEST_CASE("the cache key is the problem's, and Anthropic's mark stands after the instructions") {
  auto how = small_options();
  how.send_cache_key = true;
  auto request = small_request();
  for (const auto* name : {"openai-chat", "openai-responses"}) {
    const auto key = body_of(name, request, how)["prompt_cache_key"].get<std::string>();
    CHECK(key.size() <= 64);
    CHECK_FALSE(has(key, "rmsnorm"));
    auto same = request;
    same.messages.pop_back();
    same.agent = "worker-2";
    CHECK(body_of(name, same, how)["prompt_cache_key"] == key);
    auto other = request;
    other.problem = "softmax";
    CHECK(body_of(name, other, how)["prompt_cache_key"] != key);
  }
  const auto body = body_of("anthropic-messages", request, how);
  REQUIRE(body["system"].size() == 1);
  CHECK(body["system"][0]["cache_control"]["type"] == "ephemeral");
  // One of the four marks that there may be.
  const auto text = body.dump();
  CHECK(text.find("cache_control") == text.rfind("cache_control"));
}

TEST_CASE("an extra body is merged, and every field of ours in it is named") {
  auto how = small_options();
  how.extra_body = R"({"top_k": 5, "nested": {"a": [1, null, "x"]}})";
  for (const auto& name : dialects) {
    const auto body = body_of(name, small_request(), how);
    CHECK(body["top_k"] == 5);
    CHECK(body["nested"]["a"][2] == "x");
  }
  how.extra_body = R"({"temperature": 1, "top_k": 5, "model": "other", "stream": false})";
  for (const auto& name : dialects) {
    const auto why = refusal_of(name, small_request(), how);
    CHECK(has(why, "temperature"));
    CHECK(has(why, "model"));
    CHECK(has(why, "stream"));
    CHECK_FALSE(has(why, "top_k"));
  }
  // Both names of the cap are ours.
  how.extra_body = R"({"max_completion_tokens": 9})";
  CHECK(has(refusal_of("openai-chat", small_request(), how), "max_completion_tokens"));
}

TEST_CASE("an extra body may hold what we do not set for this model") {
  auto how = small_options();
  how.extra_body = R"({"thinking": {"type": "enabled", "budget_tokens": 2048}})";
  CHECK(body_of("anthropic-messages", small_request(), how)["thinking"]["budget_tokens"] == 2048);
  how.reasoning_effort = "low";
  CHECK(has(refusal_of("anthropic-messages", small_request(), how), "thinking"));
}

TEST_CASE("an extra body that is no object is refused with its place") {
  auto how = small_options();
  for (const auto* text : {"[1]", "{", "7", "{\"a\":1,\"a\":2}", "null", "{} {}"}) {
    CAPTURE(text);
    how.extra_body = text;
    for (const auto& name : dialects)
      CHECK(refusal_of(name, small_request(), how).starts_with("extra_body"));
  }
  how.extra_body = "{}";
  CHECK(spoken("openai-chat").encode(small_request(), how));
}

TEST_CASE(
  "trap LM Studio (free-claude-code#979): no tools are offered, so none can leak into the text") {
  auto how = small_options();
  for (const auto& name : dialects) {
    how.extra_body.clear();
    CHECK_FALSE(body_of(name, small_request(), how).contains("tools"));
    how.extra_body = R"({"tools": [], "tool_choice": "auto", "n": 2})";
    const auto why = refusal_of(name, small_request(), how);
    CHECK(has(why, "`tools`, `tool_choice`, `n`"));
  }
}

TEST_CASE("bytes that are no UTF-8 become U+FFFD and are never sent raw") {
  auto request = small_request();
  request.instructions = "caf\xC3";
  request.messages = {{chat_role::user, "a\xFFz \xED\xA0\x80 \xC0\xAF ok \xC3\xA9"}};
  for (const auto& name : dialects) {
    const auto call = spoken(name).encode(request, small_options());
    REQUIRE(call);
    CHECK(is_utf8(call->body));
    CHECK(has(call->body, "caf\xEF\xBF\xBD"));
    CHECK(has(call->body, "ok \xC3\xA9"));
    CHECK(has(call->body, "a\xEF\xBF\xBDz"));
  }
  auto how = small_options();
  how.model = "toy\xFF";
  for (const auto& name : dialects)
    CHECK(has(refusal_of(name, request, how), "UTF-8"));
}

TEST_CASE("requests that no server takes are refused here") {
  for (const auto& name : dialects) {
    auto request = small_request();
    request.output_tokens_max = 0;
    CHECK(has(refusal_of(name, request, small_options()), "output cap"));
    request = small_request();
    request.messages.clear();
    CHECK(has(refusal_of(name, request, small_options()), "at least one message"));
    request = small_request();
    request.messages[1].text.clear();
    CHECK(has(refusal_of(name, request, small_options()), "message 2"));
    for (const double wrong :
      {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      request = small_request();
      request.temperature = f64{wrong};
      CHECK(has(refusal_of(name, request, small_options()), "temperature"));
    }
    auto how = small_options();
    how.model.clear();
    CHECK(has(refusal_of(name, small_request(), how), "--model"));
  }
  auto request = small_request();
  request.messages.erase(request.messages.begin());
  CHECK(has(refusal_of("anthropic-messages", request, small_options()), "first message"));
  CHECK(spoken("openai-chat").encode(request, small_options()));
}

TEST_CASE("an endpoint gets the dialect's path, and /v1 when it has no path at all") {
  auto how = small_options();
  const auto url = [&](const std::string& name, const std::string& endpoint) {
    how.endpoint = endpoint;
    const auto call = spoken(name).encode(small_request(), how);
    REQUIRE_MESSAGE(call, (call ? "" : call.error().what));
    return call->url;
  };
  CHECK(url("openai-chat", "http://127.0.0.1:9") == "http://127.0.0.1:9/v1/chat/completions");
  CHECK(url("openai-chat", "http://127.0.0.1:9/") == "http://127.0.0.1:9/v1/chat/completions");
  CHECK(url("openai-chat", "https://h/api/v4//") == "https://h/api/v4/chat/completions");
  CHECK(url("openai-chat", "https://h/deployments/d?api-version=1")
    == "https://h/deployments/d/chat/completions?api-version=1");
  CHECK(url("openai-responses", "https://h") == "https://h/v1/responses");
  CHECK(url("anthropic-messages", "https://h") == "https://h/v1/messages");
  CHECK(url("anthropic-messages", "https://h/v1/") == "https://h/v1/messages");
  CHECK(url("anthropic-messages", "https://h/proxy") == "https://h/proxy/v1/messages");
}

TEST_CASE("an endpoint that cannot be one is refused, without showing what is secret in it") {
  auto how = small_options();
  for (const auto* text : {"", "h/v1", "ftp://h", "https://", "https:///v1", "https://h/ v1",
         "https://h#x", "https://user:hunter2@h/v1", "https://h/v1/chat/completions"}) {
    CAPTURE(text);
    how.endpoint = text;
    const auto why = refusal_of("openai-chat", small_request(), how);
    CHECK(why.starts_with("endpoint (--model-endpoint): "));
    CHECK_FALSE(has(why, "hunter2"));
  }
}

TEST_CASE("a dialect is found by its name, and a wrong one gets the nearest") {
  CHECK(known_dialects() == dialects);
  for (const auto& name : dialects)
    CHECK((*find_dialect(name))->name() == name);
  const auto wrong = find_dialect("openai-chta");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == errc::not_found);
  CHECK(has(wrong.error().what, "did you mean `openai-chat`?"));
  CHECK_FALSE(find_dialect(""));
}

TEST_CASE("every kind of trouble has a name of its own") {
  std::vector<std::string> names;
  for (const auto kind :
    {trouble_kind::none, trouble_kind::transient, trouble_kind::throttle, trouble_kind::overload,
      trouble_kind::money, trouble_kind::too_big, trouble_kind::config, trouble_kind::ambiguous})
    names.push_back(to_string(kind));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}
