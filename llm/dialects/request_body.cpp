#include "llm/dialects/request_body.hpp"

#include "llm/dialects/plain_words.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr json_limits extra_limits{size_t{1} << 20, 32, 1024, true, false};

// The decoders read one answer of text.
constexpr std::array<std::string_view, 8> refused_fields{"tools", "tool_choice", "functions",
  "function_call", "n", "best_of", "background", "parallel_tool_calls"};

} // namespace

result<std::string> request_url(
  const std::string& base, std::string_view path, std::string_view root) {
  const auto refuse = [](std::string_view why) {
    return fail(errc::invalid_input, fmt::format("endpoint (--model-endpoint): {}", why));
  };
  const auto scheme = base.starts_with("https://") ? 8U : base.starts_with("http://") ? 7U : 0U;
  if (scheme == 0)
    return refuse("must begin with http:// or https://");
  if (std::any_of(base.begin(), base.end(), [](char c) { return c <= ' ' || c >= 127; }))
    return refuse("holds a blank or a character that is not ASCII");
  if (base.find('#') != std::string::npos)
    return refuse("must not hold a #");
  std::string_view place = base;
  std::string_view query;
  if (const auto mark = place.find('?'); mark != std::string_view::npos) {
    query = place.substr(mark);
    place = place.substr(0, mark);
  }
  while (place.size() > scheme && place.ends_with('/'))
    place.remove_suffix(1);
  const auto slash = place.find('/', scheme);
  const auto host = place.substr(scheme, slash == std::string_view::npos ? slash : slash - scheme);
  if (host.empty())
    return refuse("names no host");
  // Not shown: what stands before the @ is a secret.
  if (host.find('@') != std::string_view::npos)
    return refuse("must not hold a user or a password; name an environment variable by key_env "
                  "(--model-key-env) instead");
  if (place.ends_with(path))
    return refuse(fmt::format("must not end with {}, which the dialect adds", path));
  std::string url{place};
  if (slash == std::string_view::npos)
    url += "/v1";
  else if (!root.empty() && !place.ends_with(root))
    url += root;
  url += path;
  return url += query;
}

std::string host_of(const std::string& base) {
  const auto scheme = base.find("://");
  auto host = scheme == std::string::npos ? base : base.substr(scheme + 3);
  host = host.substr(0, host.find_first_of("/?:"));
  for (char& c : host)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return host;
}

result<void> check_choice(
  std::string_view setting, std::string_view word, const std::vector<std::string>& choices) {
  if (word.empty() || std::find(choices.begin(), choices.end(), word) != choices.end())
    return {};
  return fail(errc::invalid_input,
    fmt::format("{}: unknown value {}{}", setting, excerpt(word), suggestion(word, choices)));
}

result<void> check_request(const llm_request& request, const dialect_options& how) {
  if (how.model.empty())
    return fail(errc::invalid_input, "model (--model): a call needs the name of a model");
  if (!is_utf8(how.model))
    return fail(errc::invalid_input, "model (--model): not valid UTF-8");
  if (request.output_tokens_max == 0)
    return fail(errc::invalid_input, "a call needs an output cap of at least 1 token");
  if (request.messages.empty())
    return fail(errc::invalid_input, "a call needs at least one message");
  for (size_t i = 0; i < request.messages.size(); ++i)
    if (request.messages[i].text.empty())
      return fail(errc::invalid_input, fmt::format("message {} of a call is empty", i + 1));
  if (request.temperature) {
    const double temperature = *request.temperature;
    if (!std::isfinite(temperature) || temperature < 0)
      return fail(errc::invalid_input,
        fmt::format("the temperature of a call must be 0 or more, not {}", temperature));
  }
  return {};
}

bool sends_temperature(const llm_request& request, const dialect_options& how) {
  return request.temperature && (how.reasoning_effort.empty() || how.reasoning_effort == "none");
}

result<void> merge_extra_body(
  sorted_json& body, const std::string& extra, std::span<const std::string_view> ours) {
  if (extra.empty())
    return {};
  const auto read = parse_json_object(extra, "extra_body", extra_limits);
  if (!read)
    return pass(read);
  std::vector<std::string> clashes;
  std::vector<std::string> refused;
  for (const auto& [key, unused] : read->items()) {
    if (body.contains(key) || std::find(ours.begin(), ours.end(), key) != ours.end())
      clashes.push_back(excerpt(key));
    else if (std::find(refused_fields.begin(), refused_fields.end(), key) != refused_fields.end())
      refused.push_back(excerpt(key));
  }
  if (!clashes.empty())
    return fail(errc::invalid_input,
      fmt::format("extra_body: {} {} set by the program itself; leave {} out",
        fmt::join(clashes, ", "), clashes.size() == 1 ? "is" : "are",
        clashes.size() == 1 ? "it" : "them"));
  if (!refused.empty())
    return fail(errc::invalid_input,
      fmt::format("extra_body: {} cannot be used: answers are read as one text, without tools",
        fmt::join(refused, ", ")));
  // It has been read within limits by now; this time into sorted objects.
  const auto sorted = sorted_json::parse(extra, nullptr, false);
  for (const auto& [key, value] : sorted.items())
    body[key] = value;
  return {};
}

std::string cache_key(const llm_request& request) {
  // FNV-1a: the key only has to be the same for the same beginning, in every build.
  uint64_t hash = 14695981039346656037ULL;
  for (const std::string_view text : {std::string_view{request.problem}, std::string_view{"\0", 1},
         std::string_view{request.instructions}})
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("gristmill-{:016x}", hash);
}

result<http_call> make_call(const dialect_options& how, std::string url, http_headers headers,
  std::string_view key_header, std::string_view key_prefix, const sorted_json& body) {
  http_call call;
  call.url = std::move(url);
  call.headers = {{"content-type", "application/json"}, {"accept", "text/event-stream"}};
  for (auto& each : headers)
    call.headers.push_back(std::move(each));
  if (!how.key_environment.empty()) {
    call.key_header = key_header;
    call.key_prefix = key_prefix;
    call.key_environment = how.key_environment;
  }
  call.body = body.dump();
  call.deadlines = how.deadlines;
  return call;
}

} // namespace gristmill
