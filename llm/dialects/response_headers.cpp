#include "llm/dialects/response_headers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

/// Longer waits are told as this one: a hundred days, beyond every run.
constexpr double seconds_max = 8'640'000.0;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A decimal number of 0 or more without sign and exponent.
std::optional<double> read_decimal(std::string_view text) {
  if (text.empty() || text.size() > 32 || !is_digit(text.front()) || !is_digit(text.back())
    || text.find_first_not_of("0123456789.") != std::string_view::npos)
    return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

nanoseconds from_seconds(double seconds) {
  return nanoseconds{static_cast<int64_t>(std::llround(std::min(seconds, seconds_max) * 1e9))};
}

nanoseconds until(std::chrono::sys_time<nanoseconds> when, std::chrono::sys_seconds now_utc) {
  const nanoseconds left = when - std::chrono::sys_time<nanoseconds>{now_utc};
  return std::clamp(left, nanoseconds{0}, from_seconds(seconds_max));
}

/// Exactly `size` digits at the front, which are taken away.
std::optional<int> take_digits(std::string_view& text, size_t size) {
  if (text.size() < size)
    return std::nullopt;
  int value = 0;
  for (size_t i = 0; i < size; ++i) {
    if (!is_digit(text[i]))
      return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(size);
  return value;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c)
    return false;
  text.remove_prefix(1);
  return true;
}

struct clock_time {
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
};

/// "08:49:37"; 60 is a leap second.
std::optional<clock_time> take_clock(std::string_view& text) {
  const auto hours = take_digits(text, 2);
  if (!hours || !take_char(text, ':'))
    return std::nullopt;
  const auto minutes = take_digits(text, 2);
  if (!minutes || !take_char(text, ':'))
    return std::nullopt;
  const auto seconds = take_digits(text, 2);
  if (!seconds || *hours > 23 || *minutes > 59 || *seconds > 60)
    return std::nullopt;
  return clock_time{*hours, *minutes, *seconds};
}

std::optional<std::chrono::sys_time<nanoseconds>> instant(
  int year, int month, int day, const clock_time& at) {
  // Outside of these, 64 bits of nanoseconds would not do.
  if (year < 1700 || year > 2200)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year},
    std::chrono::month{static_cast<unsigned>(month)}, std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok())
    return std::nullopt;
  return std::chrono::sys_days{date} + std::chrono::hours{at.hours}
  + std::chrono::minutes{at.minutes} + std::chrono::seconds{at.seconds};
}

std::optional<int64_t> whole_header(const http_headers& headers, std::string_view name) {
  const auto text = header(headers, name);
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

struct one_limit {
  std::optional<int64_t> remaining;
  std::optional<nanoseconds> reset;
};

one_limit checked(std::optional<int64_t> limit, one_limit read) {
  if (limit && *limit <= 0)
    return {};
  if (read.remaining && *read.remaining < 0)
    read.remaining.reset();
  // Nothing left and no word on when there will be: said by proxies that count nothing.
  if (read.remaining && *read.remaining == 0 && (!read.reset || *read.reset == nanoseconds{0}))
    return {};
  return read;
}

one_limit openai_limit(const http_headers& headers, const std::string& of) {
  return checked(whole_header(headers, "x-ratelimit-limit-" + of),
    {whole_header(headers, "x-ratelimit-remaining-" + of),
      parse_reset_duration(header(headers, "x-ratelimit-reset-" + of))});
}

one_limit anthropic_limit(
  const http_headers& headers, const std::string& of, std::chrono::sys_seconds now_utc) {
  const auto start = "anthropic-ratelimit-" + of;
  return checked(whole_header(headers, start + "-limit"),
    {whole_header(headers, start + "-remaining"),
      time_until_rfc3339(header(headers, start + "-reset"), now_utc)});
}

/// The tighter of both.
void tighten(one_limit& kept, const one_limit& other) {
  if (other.remaining && (!kept.remaining || *other.remaining < *kept.remaining))
    kept = other;
}

} // namespace

std::string_view header(const http_headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (key == name)
      return trimmed(value);
  return {};
}

std::string request_id_of(const http_headers& headers) {
  for (const auto* name : {"x-request-id", "request-id"})
    if (const auto value = header(headers, name); !value.empty())
      return std::string{value.substr(0, 200)};
  return {};
}

std::optional<nanoseconds> parse_reset_duration(std::string_view text) {
  text = trimmed(text);
  if (const auto seconds = read_decimal(text))
    return from_seconds(*seconds);
  double total = 0;
  bool any = false;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto number = read_decimal(text.substr(0, digits));
    if (!number)
      return std::nullopt;
    text.remove_prefix(digits);
    double unit = 0;
    size_t letters = 1;
    if (text.starts_with("ms")) {
      unit = 1e-3;
      letters = 2;
    } else if (text.starts_with("us")) {
      unit = 1e-6;
      letters = 2;
    } else if (text.starts_with("ns")) {
      unit = 1e-9;
      letters = 2;
    } else if (text.starts_with('s')) {
      unit = 1;
    } else if (text.starts_with('m')) {
      unit = 60;
    } else if (text.starts_with('h')) {
      unit = 3600;
    } else if (text.starts_with('d')) {
      unit = 86400;
    } else {
      return std::nullopt;
    }
    text.remove_prefix(letters);
    total += *number * unit;
    any = true;
  }
  if (!any)
    return std::nullopt;
  return from_seconds(total);
}

std::optional<nanoseconds> time_until_rfc3339(
  std::string_view text, std::chrono::sys_seconds now_utc) {
  text = trimmed(text);
  const auto year = take_digits(text, 4);
  if (!year || !take_char(text, '-'))
    return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take_char(text, '-'))
    return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day || (!take_char(text, 'T') && !take_char(text, 't') && !take_char(text, ' ')))
    return std::nullopt;
  const auto clock = take_clock(text);
  if (!clock)
    return std::nullopt;
  nanoseconds fraction{0};
  if (take_char(text, '.')) {
    int64_t unit = 100'000'000;
    if (text.empty() || !is_digit(text.front()))
      return std::nullopt;
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), unit /= 10)
      fraction += nanoseconds{(text.front() - '0') * unit};
  }
  nanoseconds offset{0};
  if (!take_char(text, 'Z') && !take_char(text, 'z')) {
    const bool behind = take_char(text, '-');
    if (!behind && !take_char(text, '+'))
      return std::nullopt;
    const auto hours = take_digits(text, 2);
    if (!hours || !take_char(text, ':'))
      return std::nullopt;
    const auto minutes = take_digits(text, 2);
    if (!minutes || *hours > 23 || *minutes > 59)
      return std::nullopt;
    offset = std::chrono::hours{*hours} + std::chrono::minutes{*minutes};
    if (behind)
      offset = -offset;
  }
  const auto when = instant(*year, *month, *day, *clock);
  if (!text.empty() || !when)
    return std::nullopt;
  return until(*when + fraction - offset, now_utc);
}

std::optional<nanoseconds> time_until_http_date(
  std::string_view text, std::chrono::sys_seconds now_utc) {
  constexpr std::array<std::string_view, 12> months{
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  text = trimmed(text);
  // The name of the day follows from the date.
  const auto comma = text.find(", ");
  if (comma == std::string_view::npos)
    return std::nullopt;
  text.remove_prefix(comma + 2);
  const auto day = take_digits(text, 2);
  if (!day || !take_char(text, ' '))
    return std::nullopt;
  const auto month = std::find(months.begin(), months.end(), text.substr(0, 3));
  if (month == months.end())
    return std::nullopt;
  text.remove_prefix(3);
  if (!take_char(text, ' '))
    return std::nullopt;
  const auto year = take_digits(text, 4);
  if (!year || !take_char(text, ' '))
    return std::nullopt;
  const auto clock = take_clock(text);
  if (!clock || (text != " GMT" && text != " UTC"))
    return std::nullopt;
  const auto when = instant(*year, static_cast<int>(month - months.begin()) + 1, *day, *clock);
  if (!when)
    return std::nullopt;
  return until(*when, now_utc);
}

std::optional<nanoseconds> retry_after(
  const http_headers& headers, std::chrono::sys_seconds now_utc) {
  if (const auto milliseconds = read_decimal(header(headers, "retry-after-ms")))
    return from_seconds(*milliseconds / 1000);
  const auto text = header(headers, "retry-after");
  if (const auto seconds = read_decimal(text))
    return from_seconds(*seconds);
  return time_until_http_date(text, now_utc);
}

rate_limits limits_in(const http_headers& headers, std::chrono::sys_seconds now_utc) {
  auto requests = openai_limit(headers, "requests");
  tighten(requests, anthropic_limit(headers, "requests", now_utc));
  auto tokens = openai_limit(headers, "tokens");
  for (const auto* of : {"tokens", "input-tokens", "output-tokens"})
    tighten(tokens, anthropic_limit(headers, of, now_utc));
  return {requests.remaining.value_or(-1), tokens.remaining.value_or(-1),
    requests.reset.value_or(nanoseconds{-1}), tokens.reset.value_or(nanoseconds{-1})};
}

} // namespace gristmill
