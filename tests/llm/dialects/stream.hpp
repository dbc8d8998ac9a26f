#pragma once

#include "llm/dialects/dialect.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill::test {

/// A file below tests/corpus/llm.
std::string corpus_text(const std::string& name);
/// The names of all streams of a dialect there, such as "openai-chat/plain.sse".
std::vector<std::string> corpus_streams(const std::string& dialect_name);

/// Events as the transport reads them from these bytes. `at_end`: the stream came to its proper
/// end, which also ends its last event.
std::vector<sse_event> events_of(std::string_view bytes, bool at_end = true);

const dialect& spoken(const std::string& dialect_name);
decoded_reply decoded(
  const std::string& dialect_name, const std::vector<sse_event>& events, uint32_t cap = 100'000);
/// Of a stream of the corpus, whose folder is its dialect.
decoded_reply decoded_file(const std::string& name, uint32_t cap = 100'000);
/// Of bytes that came over the wire.
decoded_reply decoded_bytes(
  const std::string& dialect_name, std::string_view bytes, uint32_t cap = 100'000);

/// A whole answer with status and body, and how it is judged. `now` is 2026-11-30 12:00:00 UTC.
std::chrono::sys_seconds now();
trouble judged(uint32_t status, const std::string& body, http_headers headers = {});
/// The same with a body of tests/corpus/llm/errors.
trouble judged_file(uint32_t status, const std::string& name, http_headers headers = {});

} // namespace gristmill::test
