#pragma once

#include "messages/llm.hpp"

#include <cstdint>

namespace gristmill {

// How many tokens a text will be, without the model's own tokeniser. Both figures are estimates of
// ours: what a server counted always goes before them.

/// No text has more tokens than this, for every tokeniser that works on bytes (byte-level BPE, as
/// of GPT, Llama, Qwen, DeepSeek and Claude; a token is at least one byte). English has about a
/// quarter of it and CUDA source about a third.
constexpr uint64_t tokens_at_most(uint64_t bytes) {
  return bytes;
}

/// What a text likely is, rounded up: three bytes a token, as for source code, which is more tokens
/// than English prose of the same length. For rates and progress; never for money.
constexpr uint64_t tokens_likely(uint64_t bytes) {
  return bytes / 3 + (bytes % 3 == 0 ? 0 : 1);
}

/// Marks of a chat template around one message: role, begin, end, line feeds.
constexpr uint64_t tokens_of_message_marks = 16;
/// What a template may put before everything, such as a date or a default instruction.
constexpr uint64_t tokens_of_template = 128;

/// What to reserve for the input of a request: more than a server will count, so that a
/// reservation that fits is a call that fits.
inline uint64_t input_tokens_at_most(const llm_request& request) {
  uint64_t tokens =
    tokens_of_template + tokens_of_message_marks + tokens_at_most(request.instructions.size());
  for (const auto& message : request.messages)
    tokens += tokens_of_message_marks + tokens_at_most(message.text.size());
  return tokens;
}

/// The same as a figure to pace by (tokens a minute).
inline uint64_t input_tokens_likely(const llm_request& request) {
  uint64_t tokens = tokens_of_message_marks + tokens_likely(request.instructions.size());
  for (const auto& message : request.messages)
    tokens += tokens_of_message_marks + tokens_likely(message.text.size());
  return tokens;
}

} // namespace gristmill
