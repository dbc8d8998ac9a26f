#include "llm/transport/answer_head.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace gristmill {

namespace {

constexpr size_t kept_bytes_max = size_t{32} << 10;

constexpr std::array<std::string_view, 6> passed_names{
  "content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id"};
constexpr std::array<std::string_view, 2> passed_starts{"x-ratelimit-", "anthropic-ratelimit-"};

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
    [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

bool says_event_stream(const http_headers& headers) {
  return std::any_of(headers.begin(), headers.end(), [](const auto& header) {
    return header.first == "content-type"
      && lower_case(trimmed(std::string_view(header.second).substr(0, header.second.find(';'))))
      == "text/event-stream";
  });
}

} // namespace

bool passes_on_header(std::string_view name) {
  return std::find(passed_names.begin(), passed_names.end(), name) != passed_names.end()
    || std::any_of(passed_starts.begin(), passed_starts.end(),
      [&](std::string_view start) { return name.starts_with(start); });
}

bool answer_head::take_line(std::string_view line) {
  // What comes after the body is a trailer: nobody needs one.
  if (complete_)
    return true;
  if (line.starts_with("HTTP/")) {
    const auto blank = std::min(line.find(' '), line.size());
    const auto digits = trimmed(line.substr(blank)).substr(0, 3);
    status_ = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), status_);
    headers_.clear();
    bytes_ = 0;
    return true;
  }
  if (trimmed(line).empty()) {
    complete_ = status_ >= 200;
    event_stream_ = status_ >= 200 && status_ < 300 && says_event_stream(headers_);
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos)
    return true;
  auto name = lower_case(trimmed(line.substr(0, colon)));
  if (!passes_on_header(name))
    return true;
  bytes_ += line.size();
  if (bytes_ > kept_bytes_max)
    return false;
  headers_.emplace_back(std::move(name), std::string(trimmed(line.substr(colon + 1))));
  return true;
}

} // namespace gristmill
