#pragma once

#include "llm/dialects/dialect.hpp"
#include "llm/dialects/json_reading.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// What an error body says, whichever of the known shapes it has; empty where it says nothing.
struct provider_error {
  std::string type;
  std::string code;
  std::string message;
  /// The field of our request that is complained about.
  std::string param;
  /// Gemini's, such as RESOURCE_EXHAUSTED.
  std::string status;
  /// OpenRouter's: which of its limits was met.
  std::string limit_source;
  /// Anthropic's `details.error_code`.
  std::string detail_code;
  /// Gemini's RetryInfo.
  std::optional<std::chrono::nanoseconds> retry_delay;
  /// Gemini: a quota of a whole day, or one that is 0.
  bool quota_is_gone = false;
  /// OpenRouter's code, which is a status of HTTP; 0 for none.
  uint32_t numeric_code = 0;
};

/// The error in a body or in an event: `{"error":{…}}`, `{"error":"…"}`, an array of one such
/// (Gemini),
/// `{"type":"error","code":…}` (Responses), `{"object":"error",…}` (older vLLM), `{"detail":…}`.
/// Nothing when the document is no error.
std::optional<provider_error> read_provider_error(const ordered_json& document);

/// The decision table on status, error and headers. `status` 0 stands for an error inside a stream
/// without a status of its own; everything that is only known to be temporary is then `ambiguous`.
trouble judge_error(uint32_t status, const provider_error& error, const http_headers& headers,
  std::chrono::sys_seconds now_utc);

/// An answer that is no event stream, or has a status other than 200, or never came.
trouble judge_answer(const http_report& ended, std::chrono::sys_seconds now_utc);

/// An error that came as an event of a stream with status 200. Once the answer has `begun` (text,
/// reasoning or counted tokens) it is `ambiguous` whatever it says, because that is billed; only
/// the end of the money stays what it is.
trouble judge_stream_error(const provider_error& error, bool begun);

} // namespace gristmill
