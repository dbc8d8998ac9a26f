#include "tests/llm/dialects/stream.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;

namespace {

class dice {
public:
  explicit dice(uint64_t seed) : state_(seed * 2 + 1) {}
  size_t below(size_t end) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<size_t>(state_ >> 33) % end;
  }

private:
  uint64_t state_;
};

/// Text of one to 40 pieces: code, quotes, marks of the stream itself, characters of many bytes.
std::vector<std::string> random_pieces(dice& rolls) {
  static const std::vector<std::string> pieces{"__global__ void f() {\n", "\"quoted\"", "\\n",
    "data: [DONE]\n\n", "\xF0\x9F\x98\x80", "\xC3\xA9", "\r\n", "```cuda\n", "{\"error\":1}", " ",
    "x", "event: message_stop\n"};
  std::vector<std::string> out{"begin "};
  for (size_t i = 0, count = 1 + rolls.below(40); i < count; ++i)
    out.push_back(pieces[rolls.below(pieces.size())]);
  return out;
}

std::string event(const std::string& name, const nlohmann::json& data) {
  return (name.empty() ? "" : "event: " + name + "\n") + "data: " + data.dump() + "\n\n";
}

/// A whole stream with this text, in pieces.
std::string stream_of(const std::string& dialect_name, const std::vector<std::string>& pieces) {
  using nlohmann::json;
  std::string text;
  std::string out;
  for (const auto& piece : pieces) {
    text += piece;
    if (dialect_name == "openai-chat")
      out += event("", {{"choices", {{{"index", 0}, {"delta", {{"content", piece}}}}}}});
    else if (dialect_name == "openai-responses")
      out += event(
        "response.output_text.delta", {{"type", "response.output_text.delta"}, {"delta", piece}});
    else
      out += event("content_block_delta",
        {{"type", "content_block_delta"}, {"delta", {{"type", "text_delta"}, {"text", piece}}}});
  }
  if (dialect_name == "openai-chat")
    return out
      + event(
        "", {{"choices", {{{"index", 0}, {"delta", json::object()}, {"finish_reason", "stop"}}}}})
      + event("",
        {{"choices", json::array()}, {"usage", {{"prompt_tokens", 11}, {"completion_tokens", 22}}}})
      + "data: [DONE]\n\n";
  if (dialect_name == "openai-responses") {
    const json content = json::array({{{"type", "output_text"}, {"text", text}}});
    const json output = json::array({{{"type", "message"}, {"content", content}}});
    return out
      + event("response.completed",
        {{"type", "response.completed"},
          {"response",
            {{"status", "completed"}, {"output", output},
              {"usage", {{"input_tokens", 11}, {"output_tokens", 22}}}}}});
  }
  return event("message_start",
           {{"type", "message_start"}, {"message", {{"usage", {{"input_tokens", 11}}}}}})
    + out
    + event("message_delta",
      {{"type", "message_delta"}, {"delta", {{"stop_reason", "end_turn"}}},
        {"usage", {{"output_tokens", 22}}}})
    + event("message_stop", {{"type", "message_stop"}});
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string out;
  for (const auto& piece : pieces)
    out += piece;
  return out;
}

/// An answer that a caller would use.
bool succeeds(const decoded_reply& reply) {
  return reply.failed.kind == trouble_kind::none;
}

/// Where the last event is whole but for the ends of its lines.
size_t whole_from(const std::string& bytes) {
  const auto last = bytes.find_last_not_of("\r\n");
  return last == std::string::npos ? 0 : last + 1;
}

} // namespace

TEST_CASE("a stream of the corpus that is cut at any byte is never a success") {
  for (const auto& name : known_dialects()) {
    for (const auto& file : corpus_streams(name)) {
      CAPTURE(file);
      auto bytes = corpus_text(file);
      // Marks of the end that some servers add behind the last event of a typed dialect.
      if (name != "openai-chat" && bytes.ends_with("data: [DONE]\n\n"))
        bytes.resize(bytes.size() - std::string_view{"data: [DONE]\n\n"}.size());
      for (size_t cut = 0; cut < whole_from(bytes); ++cut) {
        const auto part = std::string_view{bytes}.substr(0, cut);
        // Cut off, and cut in such a way that it looks like a proper end.
        for (const bool at_end : {false, true}) {
          const auto reply = decoded(name, events_of(part, at_end));
          if (succeeds(reply) || reply.usage.state != usage_state::unknown) {
            CAPTURE(cut);
            CAPTURE(at_end);
            CHECK_FALSE(succeeds(reply));
            CHECK(reply.usage.state == usage_state::unknown);
          }
        }
      }
    }
  }
}

TEST_CASE("a random answer is read whole, and cut at any event or byte it is a failure") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    dice rolls{seed};
    const auto pieces = random_pieces(rolls);
    for (const auto& name : known_dialects()) {
      CAPTURE(name);
      const auto bytes = stream_of(name, pieces);
      const auto whole = decoded_bytes(name, bytes);
      CHECK(succeeds(whole));
      CHECK(whole.finish == finish_kind::stop);
      CHECK(whole.text == joined(pieces));
      CHECK(whole.usage == llm_usage{usage_state::exact, 11, 0, 0, 22, 0});

      const auto events = events_of(bytes);
      for (size_t count = 0; count < events.size(); ++count) {
        const auto reply =
          decoded(name, {events.begin(), events.begin() + static_cast<long>(count)});
        CHECK_FALSE(succeeds(reply));
        CHECK(joined(pieces).starts_with(reply.text));
      }
      for (int i = 0; i < 40; ++i) {
        const auto cut = rolls.below(whole_from(bytes));
        CAPTURE(cut);
        CHECK_FALSE(succeeds(
          decoded(name, events_of(std::string_view{bytes}.substr(0, cut), rolls.below(2) == 0))));
      }
    }
  }
}

TEST_CASE(
  "a random answer with an event lost in its middle never claims a usage that it was not told") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    dice rolls{seed};
    for (const auto& name : known_dialects()) {
      auto events = events_of(stream_of(name, random_pieces(rolls)));
      events.erase(events.begin() + static_cast<long>(rolls.below(events.size())));
      const auto usage = decoded(name, events).usage;
      CHECK((usage.state == usage_state::unknown
        || usage == llm_usage{usage_state::exact, 11, 0, 0, 22, 0}));
    }
  }
}
