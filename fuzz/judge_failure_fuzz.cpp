// Answers that are no event streams: judged, whatever they hold. The first line of an input is a
// status, headers follow up to an empty line, the rest is the body.

#include "fuzz/dialect_stream.hpp"

#include <charconv>

using namespace gristmill;

namespace {

std::string_view take_line(std::string_view& rest) {
  const auto end = std::min(rest.find('\n'), rest.size());
  const auto line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto rest = fuzz::text_of(data, size);
  http_report ended;
  ended.ended = true;
  const auto status = take_line(rest);
  std::from_chars(status.data(), status.data() + status.size(), ended.status);
  while (!rest.empty() && ended.headers.size() < 20) {
    const auto line = take_line(rest);
    if (line.empty())
      break;
    const auto colon = std::min(line.find(": "), line.size());
    ended.headers.emplace_back(
      line.substr(0, colon), line.substr(std::min(colon + 2, line.size())));
  }
  ended.body = rest;
  const std::chrono::sys_seconds now = std::chrono::sys_days{std::chrono::year{2026} / 11 / 30};
  const auto& dialect = **find_dialect("openai-chat");
  const auto judged = dialect.judge_failure(ended, now);
  fuzz::require(judged.kind != trouble_kind::none, "a failure is judged");
  fuzz::require(!judged.what.empty() && judged.what.size() < 1000, "and told in a few words");
  fuzz::require(fuzz::is_one_plain_line(judged.what), "on one line of plain text");
  constexpr std::chrono::hours wait_max{2400};
  fuzz::require(judged.wait >= std::chrono::seconds{0} && judged.wait <= wait_max,
    "a wait lies between nothing and a hundred days");
  fuzz::require(judged.wait == std::chrono::seconds{0} || judged.kind == trouble_kind::transient
      || judged.kind == trouble_kind::throttle || judged.kind == trouble_kind::overload,
    "only what is tried again has a wait");
  const auto limits = dialect.limits_of(ended.headers, now);
  fuzz::require(limits.requests_remaining >= -1 && limits.tokens_remaining >= -1
      && limits.requests_reset >= std::chrono::nanoseconds{-1} && limits.requests_reset <= wait_max
      && limits.tokens_reset <= wait_max,
    "limits are counts and times, or -1");
  return 0;
}
