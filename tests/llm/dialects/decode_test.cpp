#include "tests/llm/dialects/stream.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

bool has(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

llm_usage chat_usage(const std::string& usage) {
  return decoded_bytes("openai-chat",
    "data: {\"choices\":[{\"delta\":{\"content\":\"text\"},\"finish_reason\":\"stop\"}],\"usage\":"
      + usage + "}\n\ndata: [DONE]\n\n")
    .usage;
}

} // namespace

TEST_CASE(
  "Chat Completions: an answer with comments, a first delta of a role only and usage at the end") {
  const auto reply = decoded_file("openai-chat/plain.sse");
  CHECK(reply.failed.kind == trouble_kind::none);
  CHECK(reply.finish == finish_kind::stop);
  CHECK(reply.text == "HYPOTHESIS: wider loads help, na\xC3\xAFvely");
  CHECK(reply.model == "toy-1");
  CHECK(reply.request_id == "chatcmpl-91c");
  CHECK(reply.usage == llm_usage{usage_state::exact, 176, 1024, 0, 20, 40});
  CHECK(reply.note.empty());
}

TEST_CASE("Responses: the full response of the last event goes before the deltas") {
  const auto reply = decoded_file("openai-responses/plain.sse");
  CHECK(reply.failed.kind == trouble_kind::none);
  CHECK(reply.finish == finish_kind::stop);
  CHECK(reply.text == "HYPOTHESIS: one pass is enough");
  CHECK(reply.model == "toy-2");
  CHECK(reply.request_id == "resp_1");
  CHECK(reply.usage == llm_usage{usage_state::exact, 200, 1100, 200, 26, 64});
}

TEST_CASE("Responses: without an output in the last event the deltas are the answer") {
  for (const auto* output : {"", ",\"output\":[]", ",\"output\":null"}) {
    const auto reply = decoded_bytes("openai-responses",
      fmt::format(
        "event: response.output_text.delta\ndata: {{\"delta\":\"kept\"}}\n\n"
        "event: response.completed\ndata: {{\"response\":{{\"status\":\"completed\"{}}}}}\n\n",
        output));
    CHECK(reply.failed.kind == trouble_kind::none);
    CHECK(reply.text == "kept");
  }
}

TEST_CASE(
  "Messages: pings and unknown events are read over, blocks are joined, thinking is no text") {
  const auto plain = decoded_file("anthropic-messages/plain.sse");
  CHECK(plain.failed.kind == trouble_kind::none);
  CHECK(plain.finish == finish_kind::stop);
  CHECK(plain.text == "HYPOTHESIS: fewer barriers");
  CHECK(plain.request_id == "msg_01A");
  CHECK(plain.usage == llm_usage{usage_state::exact, 90, 2000, 300, 15, 0});
  const auto thinking = decoded_file("anthropic-messages/thinking.sse");
  CHECK(thinking.text == "the answer");
  // Counts are sums so far: the larger one of two, never both together.
  CHECK(thinking.usage == llm_usage{usage_state::exact, 40, 0, 0, 13, 12});
}

TEST_CASE("Messages: without the counts of the end usage is unknown, whatever the beginning said") {
  const auto reply = decoded_bytes("anthropic-messages",
    "data: "
    "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}"
    "\n\n"
    "data: "
    "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"t\"}}\n\n"
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"
    "data: {\"type\":\"message_stop\"}\n\n");
  CHECK(reply.failed.kind == trouble_kind::none);
  CHECK(reply.usage.state == usage_state::unknown);
  CHECK(reply.usage.uncached_input == 9);
}

TEST_CASE("a refusal has its own delta, and its words are the answer when there is no other") {
  const auto chat = decoded_file("openai-chat/refusal.sse");
  CHECK(chat.finish == finish_kind::refusal);
  CHECK(chat.text == "I cannot help with that.");
  CHECK(chat.failed.kind == trouble_kind::none);
  const auto responses = decoded_file("openai-responses/refusal.sse");
  CHECK(responses.finish == finish_kind::refusal);
  CHECK(responses.text == "I cannot do that.");
}

TEST_CASE("each reason to stop has its kind") {
  const auto chat = [](const std::string& word) {
    return decoded_bytes("openai-chat",
      "data: {\"choices\":[{\"delta\":{\"content\":\"t\"},\"finish_reason\":\"" + word
        + "\"}]}\n\ndata: [DONE]\n\n")
      .finish;
  };
  CHECK(chat("stop") == finish_kind::stop);
  CHECK(chat("length") == finish_kind::length);
  CHECK(chat("content_filter") == finish_kind::content_filter);
  const auto messages = [](const std::string& word) {
    return decoded_bytes("anthropic-messages",
      "data: "
      "{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"t\"}}\n\n"
      "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""
        + word + "\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n")
      .finish;
  };
  CHECK(messages("end_turn") == finish_kind::stop);
  CHECK(messages("stop_sequence") == finish_kind::stop);
  CHECK(messages("max_tokens") == finish_kind::length);
  CHECK(messages("refusal") == finish_kind::refusal);
  CHECK(messages("model_context_window_exceeded") == finish_kind::context_exceeded);
  CHECK(messages("pause_turn") == finish_kind::unknown);
  CHECK(messages("tool_use") == finish_kind::unknown);
  const auto responses = [](const std::string& rest) {
    return decoded_bytes("openai-responses",
      "data: {\"type\":\"response.output_text.delta\",\"delta\":\"t\"}\n\n"
      "data: {\"type\":\"response.completed\",\"response\":{"
        + rest + "}}\n\n")
      .finish;
  };
  CHECK(responses("\"status\":\"completed\"") == finish_kind::stop);
  CHECK(
    responses("\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}")
    == finish_kind::length);
  CHECK(responses("\"status\":\"completed\",\"incomplete_details\":{\"reason\":\"content_filter\"}")
    == finish_kind::content_filter);
  CHECK(responses("\"status\":\"incomplete\"") == finish_kind::unknown);
  CHECK(responses("\"status\":\"cancelled\"") == finish_kind::unknown);
  CHECK(responses("\"status\":\"in_progress\"") == finish_kind::unknown);
}

TEST_CASE("a reason that is no plain stop is not taken back") {
  const auto reply = decoded_bytes("openai-chat",
    "data: {\"choices\":[{\"delta\":{\"content\":\"t\"},\"finish_reason\":\"content_filter\"}]}\n\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
  CHECK(reply.finish == finish_kind::content_filter);
}

TEST_CASE("an event that is no JSON, or too much of it, ends the stream as ambiguous") {
  for (const auto& data : {std::string{"{"}, std::string{"nonsense"}, std::string(9 << 20, '1'),
         std::string(1000, '['), std::string{"{\"a\":\"\xFF\"}"}, std::string{"[DONE"},
         std::string{"7"}, std::string{"[1,2]"}}) {
    for (const auto& name : known_dialects()) {
      const auto decoder = spoken(name).decoder();
      decoder->take({"", data});
      CHECK(decoder->finished());
      const auto reply = decoder->result(100);
      CHECK(reply.failed.kind == trouble_kind::ambiguous);
      CHECK(reply.failed.what.size() < 200);
      CHECK(reply.usage.state == usage_state::unknown);
    }
  }
}

TEST_CASE("an answer that grows without end is given up") {
  const auto decoder = spoken("openai-chat").decoder();
  const auto delta =
    "{\"choices\":[{\"delta\":{\"content\":\"" + std::string(1 << 20, 'x') + "\"}}]}";
  for (int i = 0; i < 9 && !decoder->finished(); ++i)
    decoder->take({"", delta});
  CHECK(decoder->finished());
  CHECK(decoder->text_bytes() <= size_t{8} << 20);
  CHECK(decoder->result(100).failed.kind == trouble_kind::ambiguous);
}

TEST_CASE("nothing after the last event changes an answer") {
  for (const auto* file :
    {"openai-chat/plain.sse", "openai-responses/plain.sse", "anthropic-messages/plain.sse"}) {
    const std::string name = std::string{file}.substr(0, std::string_view{file}.find('/'));
    auto events = events_of(corpus_text(file));
    const auto before = decoded(name, events);
    events.push_back({"error", "{\"error\":{\"message\":\"late\"}}"});
    events.push_back({"", "nonsense"});
    events.push_back(events.front());
    const auto after = decoded(name, events);
    CHECK(after.text == before.text);
    CHECK(after.usage == before.usage);
    CHECK(after.failed.kind == trouble_kind::none);
  }
}

TEST_CASE("[DONE] ends Chat Completions only; the typed dialects have their own last event") {
  for (const auto* file : {"openai-responses/plain.sse", "anthropic-messages/plain.sse"}) {
    const std::string name = std::string{file}.substr(0, std::string_view{file}.find('/'));
    auto events = events_of(corpus_text(file));
    events.insert(events.end() - 1, {"", "[DONE]"});
    CHECK(decoded(name, events).failed.kind == trouble_kind::none);
    events.pop_back();
    CHECK(decoded(name, events).failed.kind == trouble_kind::ambiguous);
  }
}

TEST_CASE("progress is told while the text grows") {
  const auto decoder = spoken("openai-chat").decoder();
  CHECK(decoder->text_bytes() == 0);
  CHECK_FALSE(decoder->finished());
  decoder->take({"", "{\"choices\":[{\"delta\":{\"content\":\"12345\"}}]}"});
  CHECK(decoder->text_bytes() == 5);
  decoder->take({"", "{\"choices\":[{\"delta\":{\"reasoning\":\"123\"}}]}"});
  CHECK(decoder->text_bytes() == 8);
  CHECK_FALSE(decoder->finished());
  decoder->take({"", "[DONE]"});
  CHECK(decoder->finished());
}

TEST_CASE("content may be an array of parts, a whole message, or of another choice") {
  const auto reply = decoded_bytes("openai-chat",
    "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"text\":\"no\"},"
    "{\"type\":\"text\",\"text\":\"yes\"}]}}]}\n\n"
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another choice\"}}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
  CHECK(reply.text == "yes");
  const auto whole = decoded_bytes("openai-chat",
    "data: {\"choices\":[{\"message\":{\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}\n\n"
    "data: [DONE]\n\n");
  CHECK(whole.text == "whole");
}

TEST_CASE("usage without a count of input or output is unknown, unless the total gives it") {
  CHECK(chat_usage("{}").state == usage_state::unknown);
  CHECK(chat_usage("[]").state == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":5})").state == usage_state::unknown);
  CHECK(chat_usage(R"({"completion_tokens":5})").state == usage_state::unknown);
  CHECK(
    chat_usage(R"({"prompt_tokens":null,"completion_tokens":5})").state == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":"5","completion_tokens":5})").state == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":-5,"completion_tokens":5})").state == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":5.5,"completion_tokens":5})").state == usage_state::unknown);
  CHECK(
    chat_usage(R"({"prompt_tokens":1e300,"completion_tokens":5})").state == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":18446744073709551615,"completion_tokens":5})").state
    == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":5,"total_tokens":8})")
    == llm_usage{usage_state::exact, 5, 0, 0, 3, 0});
  CHECK(chat_usage(R"({"prompt_tokens":5.0,"completion_tokens":3})")
    == llm_usage{usage_state::exact, 5, 0, 0, 3, 0});
}

TEST_CASE("counts of zero are the counts of a server that does not count") {
  CHECK(chat_usage(R"({"prompt_tokens":0,"completion_tokens":0})").state == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":0,"completion_tokens":7})").state == usage_state::unknown);
  CHECK(chat_usage(R"({"prompt_tokens":7,"completion_tokens":0})").state == usage_state::unknown);
}

TEST_CASE("reasoning beside the completion is told from reasoning within it by the total") {
  CHECK(chat_usage(R"({"prompt_tokens":10,"completion_tokens":30,"total_tokens":40,)"
                   R"("completion_tokens_details":{"reasoning_tokens":20}})")
    == llm_usage{usage_state::exact, 10, 0, 0, 10, 20});
  CHECK(chat_usage(R"({"prompt_tokens":10,"completion_tokens":30,"total_tokens":60,)"
                   R"("completion_tokens_details":{"reasoning_tokens":20}})")
    == llm_usage{usage_state::exact, 10, 0, 0, 30, 20});
  // Without a total that settles it: more rather than fewer, and not exact.
  CHECK(chat_usage(R"({"prompt_tokens":10,"completion_tokens":30,)"
                   R"("completion_tokens_details":{"reasoning_tokens":50}})")
    == llm_usage{usage_state::estimated, 10, 0, 0, 30, 50});
}

TEST_CASE("cache counts of other names are read") {
  CHECK(chat_usage(R"({"prompt_tokens":100,"completion_tokens":3,"prompt_cache_hit_tokens":60})")
    == llm_usage{usage_state::exact, 40, 60, 0, 3, 0});
  CHECK(chat_usage(R"({"prompt_tokens":100,"completion_tokens":3,)"
                   R"("prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}})")
    == llm_usage{usage_state::exact, 10, 60, 30, 3, 0});
  const auto kinds = decoded_bytes("anthropic-messages",
    "data: "
    "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"cache_creation\":"
    "{\"ephemeral_5m_input_tokens\":5,\"ephemeral_1h_input_tokens\":6}}}}\n\n"
    "data: "
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_"
    "tokens\":2}}\n\n"
    "data: {\"type\":\"message_stop\"}\n\n")
                       .usage;
  CHECK(kinds.cache_write == 11);
}

TEST_CASE("what a stream calls itself cannot hurt a log") {
  const auto reply = decoded_bytes("openai-chat",
    "data: {\"id\":\"a "
    "b\\u001b\",\"model\":\"m\\u001b[2J\",\"choices\":[{\"delta\":{\"content\":\"t\"},"
    "\"finish_reason\":\"stop\\n\"}]}\n\ndata: [DONE]\n\n");
  CHECK(reply.request_id.empty());
  CHECK_FALSE(has(reply.model, "\x1b"));
  CHECK_FALSE(has(reply.failed.what, "\n"));
}
