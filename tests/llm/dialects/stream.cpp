#include "tests/llm/dialects/stream.hpp"

#include "llm/transport/sse_parser.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>

namespace gristmill::test {

namespace {

std::filesystem::path corpus() {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  REQUIRE_MESSAGE(source != nullptr, "run by ctest, or set GRISTMILL_SOURCE to the checkout");
  return std::filesystem::path{source} / "tests/corpus/llm";
}

} // namespace

std::string corpus_text(const std::string& name) {
  auto read = read_text_file(corpus() / name, size_t{1} << 20);
  REQUIRE_MESSAGE(read, name);
  return *read;
}

std::vector<std::string> corpus_streams(const std::string& dialect_name) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(corpus() / dialect_name))
    names.push_back(dialect_name + "/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  REQUIRE_FALSE(names.empty());
  return names;
}

std::vector<sse_event> events_of(std::string_view bytes, bool at_end) {
  sse_parser parser;
  std::vector<sse_event> events;
  REQUIRE(parser.take(bytes, events));
  if (at_end)
    parser.finish(events);
  return events;
}

const dialect& spoken(const std::string& dialect_name) {
  const auto found = find_dialect(dialect_name);
  REQUIRE_MESSAGE(found, dialect_name);
  return **found;
}

decoded_reply decoded(
  const std::string& dialect_name, const std::vector<sse_event>& events, uint32_t cap) {
  const auto decoder = spoken(dialect_name).decoder();
  for (const auto& event : events)
    decoder->take(event);
  return decoder->result(cap);
}

decoded_reply decoded_bytes(const std::string& dialect_name, std::string_view bytes, uint32_t cap) {
  return decoded(dialect_name, events_of(bytes), cap);
}

decoded_reply decoded_file(const std::string& name, uint32_t cap) {
  return decoded_bytes(name.substr(0, name.find('/')), corpus_text(name), cap);
}

std::chrono::sys_seconds now() {
  return std::chrono::sys_days{std::chrono::year{2026} / 11 / 30} + std::chrono::hours{12};
}

trouble judged(uint32_t status, const std::string& body, http_headers headers) {
  http_report ended;
  ended.status = status;
  ended.headers = std::move(headers);
  ended.body = body;
  ended.ended = true;
  // The three have one table: a gateway may put any server's error into any dialect.
  const auto first = spoken("openai-chat").judge_failure(ended, now());
  for (const auto& name : known_dialects()) {
    const auto other = spoken(name).judge_failure(ended, now());
    CHECK(other.kind == first.kind);
    CHECK(other.wait == first.wait);
    CHECK(other.what == first.what);
  }
  return first;
}

trouble judged_file(uint32_t status, const std::string& name, http_headers headers) {
  return judged(status, corpus_text("errors/" + name), std::move(headers));
}

} // namespace gristmill::test
