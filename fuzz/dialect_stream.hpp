#pragma once

#include "fuzz/require.hpp"
#include "llm/dialects/dialect.hpp"
#include "llm/dialects/plain_words.hpp"
#include "llm/transport/sse_parser.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace gristmill::fuzz {

inline bool is_one_plain_line(std::string_view text) {
  return is_utf8(text)
    && std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < 0x20; });
}

/// Reads bytes as a stream of events and checks what holds for each answer.
inline void read_stream(std::string_view dialect_name, std::string_view bytes) {
  std::vector<sse_event> events;
  sse_parser parser;
  parser.take(bytes, events);
  parser.finish(events);
  const auto decoder = (*find_dialect(dialect_name))->decoder();
  bool finished = false;
  for (const auto& event : events) {
    decoder->take(event);
    require(decoder->finished() || !finished, "a finished stream stays finished");
    finished = decoder->finished();
  }
  const auto reply = decoder->result(100);
  const bool good = reply.failed.kind == trouble_kind::none;
  require(good || !reply.failed.what.empty(), "a failure says why");
  require(is_one_plain_line(reply.failed.what), "a failure is one line of plain text");
  require(is_one_plain_line(reply.note), "a note is one line of plain text");
  require(is_one_plain_line(reply.model), "a model's name is one line of plain text");
  require(is_utf8(reply.text), "an answer is UTF-8");
  require(!good || decoder->finished(), "what did not end is no answer");
  require(!good || reply.finish != finish_kind::unknown, "an unknown end is no answer");
  require(!good || reply.finish != finish_kind::stop
      || reply.text.find_first_not_of(" \t\r\n") != std::string::npos,
    "no text is no answer");
  require(good || reply.finish != finish_kind::stop
      || reply.text.find_first_not_of(" \t\r\n") == std::string::npos,
    "a plain stop fails only for want of text");
  constexpr uint64_t sum_max = uint64_t{1} << 50;
  require(reply.usage.input() < sum_max && reply.usage.output() < sum_max, "no count wraps");
}

} // namespace gristmill::fuzz
