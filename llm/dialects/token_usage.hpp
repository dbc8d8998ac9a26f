#pragma once

#include "llm/dialects/json_reading.hpp"
#include "messages/llm.hpp"

#include <cstdint>
#include <optional>

namespace gristmill {

/// Counts as a server writes them, before we know what includes what.
struct counted_tokens {
  std::optional<uint64_t> input;
  std::optional<uint64_t> output;
  std::optional<uint64_t> total;
  std::optional<uint64_t> cache_read;
  std::optional<uint64_t> cache_write;
  std::optional<uint64_t> reasoning;
};

/// Usage of Chat Completions and of Responses, whose counts have different names and equal
/// meanings; DeepSeek's `prompt_cache_hit_tokens` is read as well.
counted_tokens read_openai_usage(const ordered_json* usage);

/// The five kinds of `llm_usage` from counts in which input includes what came from the cache and
/// output includes reasoning, as with OpenAI:
/// - without a count of input or of output (and without a total to find it by) usage is unknown;
/// - reasoning that does not fit into output is taken to stand beside it; the total, where there is
///   one, says whether that is exact;
/// - cache counts that do not fit into input, or an overflow, are taken to stand beside it: more
///   tokens rather than fewer, and `estimated`.
llm_usage normalised_inclusive(const counted_tokens& counted);

/// The same from counts in which input excludes what came from the cache, as with Anthropic.
llm_usage normalised_exclusive(const counted_tokens& counted);

/// A server that counts nothing writes zeros: no input at all, or no output for a text. Unknown
/// then, because unknown is not zero.
llm_usage believed(llm_usage usage, size_t text_bytes);

} // namespace gristmill
