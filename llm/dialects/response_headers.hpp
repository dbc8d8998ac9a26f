#pragma once

#include "llm/dialects/dialect.hpp"

#include <chrono>
#include <optional>
#include <string_view>

namespace gristmill {

/// The first header of this name (given in lower case), without blanks around it; empty for none.
std::string_view header(const http_headers& headers, std::string_view name);

/// What the server asks to wait: `retry-after-ms`, else `Retry-After` in seconds or as an HTTP date
/// (past ones are 0). Nothing when there is none, or one that is no such thing.
std::optional<std::chrono::nanoseconds> retry_after(
  const http_headers& headers, std::chrono::sys_seconds now_utc);

/// Both families of headers, whichever are there: `x-ratelimit-*` (durations such as "6m0s") and
/// `anthropic-ratelimit-*` (instants of RFC 3339). Of several counts of tokens the smallest one.
/// Values that cannot be, such as Azure's -1 and its 0 without a reset, count as absent.
rate_limits limits_in(const http_headers& headers, std::chrono::sys_seconds now_utc);

/// "1s", "6m0s", "1h2m3.5s", "120ms", and a number alone, which is seconds.
std::optional<std::chrono::nanoseconds> parse_reset_duration(std::string_view text);
/// "2026-11-30T12:00:00Z", with a fraction or an offset, as the time left from `now_utc`; past ones
/// are 0.
std::optional<std::chrono::nanoseconds> time_until_rfc3339(
  std::string_view text, std::chrono::sys_seconds now_utc);
/// "Sun, 06 Nov 1994 08:49:37 GMT", the same way.
std::optional<std::chrono::nanoseconds> time_until_http_date(
  std::string_view text, std::chrono::sys_seconds now_utc);

} // namespace gristmill
