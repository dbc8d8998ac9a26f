// Each trap of a server and each report that concerns wire formats, usage or classification, as
// docs/model-dialects.md lists them. Names of reports are repository#number.

#include "tests/llm/dialects/stream.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

bool has(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

bool succeeded(const decoded_reply& reply) {
  return reply.failed.kind == trouble_kind::none && reply.finish == finish_kind::stop;
}

/// A whole Chat stream with one delta, this finish and this usage.
decoded_reply chat(const std::string& content, const std::string& finish, const std::string& usage,
  uint32_t cap = 100'000) {
  return decoded_bytes("openai-chat",
    fmt::format(
      "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}},\"finish_reason\":"
      "null}}]}}\n\n"
      "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":{}}}],\"usage\":{}}}"
      "\n\ndata: [DONE]\n\n",
      content, finish, usage),
    cap);
}

} // namespace

TEST_CASE(
  "trap OpenAI (covan-ai/covan#112): a cap spent on hidden reasoning is a cut-off, not an answer") {
  const auto reply = decoded_file("openai-chat/only-reasoning-length.sse", 400);
  CHECK(reply.finish == finish_kind::length);
  CHECK(reply.failed.kind == trouble_kind::none);
  CHECK(reply.text.empty());
  CHECK(reply.usage.state == usage_state::exact);
  CHECK(reply.usage.reasoning == 400);
  CHECK(reply.usage.visible_output == 0);
  CHECK(reply.note.empty());
}

TEST_CASE("trap OpenAI (async-openai#424): empty content on length is no failure of the format") {
  const auto reply = chat("", "\"length\"", R"({"prompt_tokens":9,"completion_tokens":64})", 64);
  CHECK(reply.finish == finish_kind::length);
  CHECK(reply.failed.kind == trouble_kind::none);
}

TEST_CASE("trap OpenAI (litellm#36859): a cap that is too small is a setting, named, and never "
          "tried again") {
  const auto refused = judged_file(400, "cap-too-small.json");
  CHECK(refused.kind == trouble_kind::config);
  CHECK(has(refused.what, "max_output_tokens"));
}

TEST_CASE(
  "trap truncated replies (tangosdev/sm64ds-decomp#1199): a cut-off looks like no bad format") {
  const auto reply =
    chat("half a block", "\"length\"", R"({"prompt_tokens":9,"completion_tokens":64})", 64);
  CHECK(reply.finish == finish_kind::length);
  CHECK(reply.text == "half a block");
  CHECK(reply.failed.kind == trouble_kind::none);
  CHECK(decoded_file("openai-responses/incomplete.sse", 64).finish == finish_kind::length);
}

TEST_CASE("a cut-off below the cap is told as one that a larger cap does not lift") {
  const auto reply =
    chat("half", "\"length\"", R"({"prompt_tokens":9,"completion_tokens":30})", 64);
  CHECK(reply.finish == finish_kind::length);
  CHECK(has(reply.note, "30 of 64"));
}

TEST_CASE("trap Anthropic: a refusal is an answer with status 200, and its category is told") {
  const auto reply = decoded_file("anthropic-messages/refusal.sse");
  CHECK(reply.finish == finish_kind::refusal);
  CHECK(reply.failed.kind == trouble_kind::none);
  CHECK(has(reply.note, "frontier_llm"));
  CHECK(reply.usage.visible_output == 6);
}

TEST_CASE("trap Anthropic: a full context is a reason of its own") {
  CHECK(decoded_file("anthropic-messages/context.sse").finish == finish_kind::context_exceeded);
}

TEST_CASE("trap vLLM (vllm#57082): an abort with status 200 and [DONE] is a failure") {
  const auto reply = decoded_file("openai-chat/abort.sse");
  CHECK(reply.finish == finish_kind::unknown);
  CHECK(reply.failed.kind == trouble_kind::ambiguous);
  CHECK(has(reply.failed.what, "abort"));
  CHECK(reply.text == "half a ker");
}

TEST_CASE("trap vLLM (vllm#57082): whatever nobody knows is a failure, in every dialect") {
  for (const auto* word : {"abort", "error", "cancelled", "", "STOP", "tool_calls", "eos"}) {
    CAPTURE(word);
    const auto reply = chat("text", fmt::format("\"{}\"", word), "null");
    CHECK(reply.finish == finish_kind::unknown);
    CHECK(reply.failed.kind == trouble_kind::ambiguous);
    const auto messages = decoded_bytes("anthropic-messages",
      fmt::format("data: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\","
                  "\"text\":\"text\"}}}}\n\ndata: {{\"type\":\"message_delta\",\"delta\":{{"
                  "\"stop_reason\":\"{}\"}}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n",
        word));
    CHECK(messages.finish == finish_kind::unknown);
    CHECK(messages.failed.kind == trouble_kind::ambiguous);
    const auto responses = decoded_bytes("openai-responses",
      fmt::format(
        "data: {{\"type\":\"response.completed\",\"response\":{{\"status\":\"{}\",\"output\":[{{"
        "\"type\":\"message\",\"content\":[{{\"type\":\"output_text\",\"text\":\"t\"}}]}}]}}}}\n\n",
        *word == '\0' ? "queued" : word));
    CHECK(responses.finish == finish_kind::unknown);
    CHECK(responses.failed.kind == trouble_kind::ambiguous);
  }
  CHECK(chat("text", "null", "null").failed.kind == trouble_kind::ambiguous);
}

TEST_CASE("trap vLLM (vllm#50624, vllm#27755): reasoning has two names and is in no text") {
  for (const auto* file : {"openai-chat/reasoning.sse", "openai-chat/reasoning-content.sse"}) {
    CAPTURE(file);
    const auto reply = decoded_file(file);
    CHECK(succeeded(reply));
    CHECK(reply.text == "the answer");
  }
  // Seen in both: a model that only reasoned is told from one that had nothing to say.
  for (const auto* name : {"reasoning", "reasoning_content"}) {
    const auto reply = decoded_bytes("openai-chat",
      fmt::format(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"{}\":\"hm\"}},\"finish_reason\":"
        "\"stop\"}}]}}\n\ndata: [DONE]\n\n",
        name));
    CHECK(has(reply.failed.what, "only reasoned"));
  }
}

TEST_CASE("trap vLLM (vllm#24184): Responses calls a length stop completed") {
  const auto reply = decoded_file("openai-responses/capped-completed.sse", 5);
  CHECK(reply.finish == finish_kind::length);
  CHECK(has(reply.note, "calls the answer whole"));
}

TEST_CASE("trap vLLM (vllm#12692, vllm#13260): endless whitespace is no answer") {
  const auto cut =
    chat("{\\n\\n\\n\\n", "\"length\"", R"({"prompt_tokens":9,"completion_tokens":64})", 64);
  CHECK(cut.finish == finish_kind::length);
  const auto stopped =
    chat(" \\n\\t\\r\\n", "\"stop\"", R"({"prompt_tokens":9,"completion_tokens":5})");
  CHECK(stopped.failed.kind == trouble_kind::ambiguous);
  CHECK(has(stopped.failed.what, "without text"));
}

TEST_CASE(
  "trap llama.cpp: a capped answer that says completed and nothing else is seen by its usage") {
  CHECK(decoded_file("openai-responses/capped-completed.sse", 5).finish == finish_kind::length);
  CHECK(decoded_file("openai-responses/capped-completed.sse", 6).finish == finish_kind::stop);
  CHECK(chat("text", "\"stop\"", R"({"prompt_tokens":9,"completion_tokens":64})", 64).finish
    == finish_kind::length);
}

TEST_CASE("trap llama.cpp: exceed_context_size_error is a prompt that is too big") {
  const auto refused = judged_file(400, "context-llama-cpp.json");
  CHECK(refused.kind == trouble_kind::too_big);
  CHECK(has(refused.what, "exceed_context_size_error"));
}

TEST_CASE("trap llama.cpp: 503 while the model loads is over soon") {
  const auto loading = judged_file(503, "loading-llama-cpp.json");
  CHECK(loading.kind == trouble_kind::transient);
  CHECK(has(loading.what, "Loading model"));
}

TEST_CASE(
  "trap Ollama (hermes-agent#43900): prompt and answer that end at 4096 or 2048 are warned of") {
  const auto reply = decoded_file("openai-chat/ollama-4096.sse");
  CHECK(succeeded(reply));
  CHECK(has(reply.note, "4096"));
  CHECK(
    has(chat("t", "\"stop\"", R"({"prompt_tokens":2000,"completion_tokens":48})").note, "2048"));
  CHECK(chat("t", "\"stop\"", R"({"prompt_tokens":2000,"completion_tokens":49})").note.empty());
}

TEST_CASE("trap Ollama (TradingAgents#168, TradingAgents#169): a cut-off at its context says that "
          "the cap is not the cause") {
  const auto reply =
    chat("t", "\"length\"", R"({"prompt_tokens":4000,"completion_tokens":96})", 8192);
  CHECK(reply.finish == finish_kind::length);
  CHECK(has(reply.note, "4096"));
  CHECK(has(reply.note, "larger cap does not lift"));
}

TEST_CASE("trap Ollama (ollama#17889): the models that answer 400 instead are told as too big") {
  CHECK(judged(400, R"({"error":"prompt too long; exceeds the context length of the model"})").kind
    == trouble_kind::too_big);
  // Its errors are a text without fields.
  const auto unknown = judged_file(404, "text-error.json");
  CHECK(unknown.kind == trouble_kind::config);
  CHECK(has(unknown.what, "try pulling it first"));
}

TEST_CASE("trap Ollama (ollama#18575): a whole answer above a cap that nobody heeded is whole, and "
          "that is told") {
  const auto reply = chat("t", "\"stop\"", R"({"prompt_tokens":9,"completion_tokens":900})", 64);
  CHECK(succeeded(reply));
  CHECK(has(reply.note, "does not heed the cap: 900"));
  // One more token for the mark of the end, or reasoning that the cap does not count, is the cap.
  CHECK(chat("t", "\"stop\"", R"({"prompt_tokens":9,"completion_tokens":65})", 64).finish
    == finish_kind::length);
  CHECK(
    chat("t", "\"stop\"",
      R"({"prompt_tokens":9,"completion_tokens":564,"completion_tokens_details":{"reasoning_tokens":500}})",
      64)
      .finish
    == finish_kind::length);
}

TEST_CASE("trap SGLang (sglang#954): usage that is null is unknown and not zero") {
  const auto reply = decoded_file("openai-chat/usage-null.sse");
  CHECK(succeeded(reply));
  CHECK(reply.usage.state == usage_state::unknown);
}

TEST_CASE("trap SGLang (litellm#24020): reasoning in a delta of its own name is no text") {
  CHECK(decoded_file("openai-chat/reasoning.sse").text == "the answer");
}

TEST_CASE(
  "trap SGLang (sglang#2956): an abort that surfaces as one token and no reason is a failure") {
  const auto reply = chat("H", "null", R"({"prompt_tokens":9,"completion_tokens":1})");
  CHECK(reply.failed.kind == trouble_kind::ambiguous);
  CHECK(has(reply.failed.what, "did not say why"));
  CHECK(chat("H", "{\"type\":\"abort\"}", "null").failed.kind == trouble_kind::ambiguous);
}

TEST_CASE("trap LM Studio (lmstudio-bug-tracker#2339): status 200 without one delta is a failure "
          "with its own words") {
  const auto reply = decoded_file("openai-chat/zero-deltas.sse");
  CHECK(reply.failed.kind == trouble_kind::ambiguous);
  CHECK(has(reply.failed.what, "without text"));
  CHECK(has(reply.failed.what, "context"));
  CHECK(reply.usage.state == usage_state::unknown);
}

TEST_CASE("trap LM Studio (lmstudio-bug-tracker#2322): status 200 with an error text is an error") {
  const auto streamed = decoded_bytes(
    "openai-chat", "event: error\ndata: " + corpus_text("errors/lmstudio-context.json") + "\n");
  CHECK(streamed.failed.kind == trouble_kind::too_big);
  CHECK(judged_file(200, "lmstudio-context.json").kind == trouble_kind::too_big);
}

TEST_CASE("trap LiteLLM (litellm#11364, litellm#29145, litellm#16341): what came from the cache is "
          "counted apart, neither dropped nor as fresh") {
  const auto chat_usage = decoded_file("openai-chat/plain.sse").usage;
  CHECK(chat_usage.uncached_input == 176);
  CHECK(chat_usage.cache_read == 1024);
  CHECK(chat_usage.input() == 1200);
  const auto responses_usage = decoded_file("openai-responses/plain.sse").usage;
  CHECK(responses_usage.uncached_input == 200);
  CHECK(responses_usage.cache_read == 1100);
  CHECK(responses_usage.cache_write == 200);
  CHECK(responses_usage.input() == 1500);
  const auto messages_usage = decoded_file("anthropic-messages/plain.sse").usage;
  CHECK(messages_usage.uncached_input == 90);
  CHECK(messages_usage.cache_read == 2000);
  CHECK(messages_usage.cache_write == 300);
  CHECK(messages_usage.input() == 2390);
}

TEST_CASE("trap LiteLLM (litellm#36926, litellm#30460): usage that is told twice is counted once") {
  const auto reply = decoded_file("openai-chat/duplicate-usage.sse");
  CHECK(succeeded(reply));
  CHECK(reply.usage == llm_usage{usage_state::exact, 50, 0, 0, 2, 0});
  // A proxy that takes its budget for spent may be wrong, so it does not end the run.
  CHECK(judged_file(400, "litellm-budget.json").kind == trouble_kind::throttle);
}

TEST_CASE(
  "report headroom#2757: more cached tokens than prompt never give a negative or a small input") {
  const auto usage = chat("t", "\"stop\"",
    R"({"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":150}})")
                       .usage;
  CHECK(usage.state == usage_state::estimated);
  CHECK(usage.uncached_input == 100);
  CHECK(usage.cache_read == 150);
  CHECK(usage.input() >= 150);
}

TEST_CASE("report agentdescent#189: hidden reasoning is output, and all of it is counted") {
  const auto usage = chat("t", "\"stop\"",
    R"({"prompt_tokens":100,"completion_tokens":48010,"completion_tokens_details":{"reasoning_tokens":48000}})")
                       .usage;
  CHECK(usage.output() == 48010);
  CHECK(usage.reasoning == 48000);
  CHECK(usage.visible_output == 10);
}

TEST_CASE("reports openclaw#120008, PostHog/posthog-js#4664: an interrupted answer has unknown "
          "usage, not none") {
  // The tokens that Anthropic counted at the beginning stay, as what there was at least.
  const auto messages = decoded_file("anthropic-messages/overloaded.sse");
  CHECK(messages.usage.state == usage_state::unknown);
  CHECK(messages.usage.uncached_input == 700);
  CHECK(messages.text == "part of it");
  CHECK(messages.failed.kind == trouble_kind::ambiguous);
  CHECK(decoded_file("openai-chat/error-midstream.sse").usage.state == usage_state::unknown);
  CHECK(decoded_file("openai-responses/failed.sse").usage.state == usage_state::unknown);
}

TEST_CASE(
  "reports openai/openai-openapi#539, openai-node#1505: a stream that we leave has no usage") {
  auto events = events_of(corpus_text("openai-chat/plain.sse"));
  // Without the chunk of usage and without [DONE].
  events.resize(events.size() - 2);
  const auto reply = decoded("openai-chat", events);
  CHECK(reply.usage.state == usage_state::unknown);
  CHECK(reply.usage.output() == 0);
  CHECK(reply.failed.kind == trouble_kind::ambiguous);
}

TEST_CASE(
  "trap OpenRouter: comments are no events, and an error after half an answer is ambiguous") {
  const auto reply = decoded_file("openai-chat/error-midstream.sse");
  CHECK(reply.failed.kind == trouble_kind::ambiguous);
  CHECK(has(reply.failed.what, "Provider disconnected"));
  CHECK(reply.text == "some ");
}

TEST_CASE("trap OpenRouter: its codes are numbers, and 402 is sometimes over soon") {
  const auto passing = judged_file(402, "openrouter-in-flight.json", {{"retry-after", "3"}});
  CHECK(passing.kind == trouble_kind::throttle);
  CHECK(passing.wait == 3s);
  CHECK(judged_file(402, "openrouter-no-credit.json").kind == trouble_kind::money);
  CHECK(judged_file(402, "openrouter-no-credit.json", {{"retry-after", "3"}}).kind
    == trouble_kind::money);
  // Status 200 with an error in the body: the number in it is the status.
  const auto throttled = judged_file(200, "openrouter-200.json", {{"retry-after", "2"}});
  CHECK(throttled.kind == trouble_kind::throttle);
  CHECK(throttled.wait == 2s);
  CHECK(judged(200, R"({"error":{"code":502,"message":"Provider returned error"}})").kind
    == trouble_kind::transient);
}
