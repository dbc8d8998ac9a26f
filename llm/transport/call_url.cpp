#include "llm/transport/call_url.hpp"

#include "llm/transport/redactor.hpp"

#include <algorithm>
#include <curl/curl.h>
#include <fmt/format.h>
#include <memory>
#include <string_view>

namespace gristmill {

namespace {

struct free_url {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK || text == nullptr)
    return {};
  std::string out = text;
  curl_free(text);
  return out;
}

/// libcurl has made numbers of unusual ways to write an address (127.1, 0x7f000001) already.
bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "localhost." || host.ends_with(".localhost")
    || host == "[::1]"
    || (host.starts_with("127.")
      && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

std::string shown_url(const std::string& url) {
  return redactor{}.redact_url(std::string_view(url).substr(0, url.find_first_of("?#")));
}

} // namespace

result<call_url> read_call_url(const std::string& text, bool allow_plain_http) {
  const std::unique_ptr<CURLU, free_url> url(curl_url());
  const auto wrong = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (wrong != CURLUE_OK)
    return fail(errc::invalid_input,
      fmt::format(
        "'{}' is no URL that can be called: {}", shown_url(text), curl_url_strerror(wrong)));
  if (!part_of(url.get(), CURLUPART_USER).empty()
    || !part_of(url.get(), CURLUPART_PASSWORD).empty())
    return fail(errc::invalid_input,
      fmt::format("{}: a user's name or password in a URL ends up in logs; name an environment "
                  "variable that holds the key instead",
        shown_url(text)));
  call_url out;
  const auto scheme = part_of(url.get(), CURLUPART_SCHEME);
  out.https = scheme == "https";
  if (!out.https && scheme != "http")
    return fail(errc::invalid_input,
      fmt::format("{}: '{}' is neither https nor http", shown_url(text), scheme));
  auto host = part_of(url.get(), CURLUPART_HOST);
  std::transform(host.begin(), host.end(), host.begin(),
    [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  out.loopback = is_loopback(host);
  if (!out.https && !out.loopback && !allow_plain_http)
    return fail(errc::invalid_input,
      fmt::format(
        "{}: http to another machine would send the key and the prompts in the clear; use "
        "https",
        shown_url(text)));
  out.server =
    fmt::format("{}://{}:{}", scheme, host, part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  return out;
}

} // namespace gristmill
