#include "protocol/endpoint.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace gristmill {

namespace {

tl::unexpected<failure> wrong(const std::string& why) {
  return fail(errc::invalid_input, why);
}

/// Four numbers of 0 to 255, the first of which is 127.
bool is_loopback_v4(std::string_view host) {
  int parts = 0;
  while (true) {
    const auto dot = host.find('.');
    const auto part = host.substr(0, dot);
    int value = -1;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (part.empty() || part.size() > 3 || code != std::errc{} || end != part.data() + part.size()
      || value < 0 || value > 255 || (parts == 0 && value != 127))
      return false;
    ++parts;
    if (dot == std::string_view::npos)
      return parts == 4;
    host.remove_prefix(dot + 1);
  }
}

bool is_host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

} // namespace

result<endpoint> parse_endpoint(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '\\')
      return wrong("holds a blank or a control character");
  endpoint out;
  std::string_view rest;
  if (text.starts_with("https://")) {
    out.https = true;
    rest = text.substr(8);
  } else if (text.starts_with("http://")) {
    rest = text.substr(7);
  } else {
    return wrong("must start with https:// or http://");
  }
  if (rest.find_first_of("?#") != std::string_view::npos)
    return wrong("must have no query and no fragment: the dialect adds its own path");
  auto authority = rest.substr(0, rest.find('/'));
  if (authority.find('@') != std::string_view::npos)
    return wrong("must hold no user or password; name the environment variable of the key instead");
  std::string_view port;
  bool has_port = false;
  std::string_view host = authority;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos)
      return wrong("the bracket of its IPv6 address is not closed");
    host = authority.substr(1, close - 1);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos)
      return wrong("its IPv6 address is not one");
    auto after = authority.substr(close + 1);
    if (!after.empty() && after.front() != ':')
      return wrong("has something between its IPv6 address and its path");
    has_port = !after.empty();
    port = has_port ? after.substr(1) : after;
  } else if (const auto colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    has_port = true;
  }
  if (host.empty())
    return wrong("names no host");
  if (!authority.starts_with('[') && !std::all_of(host.begin(), host.end(), is_host_character))
    return wrong("its host holds a character that no host name has");
  if (has_port) {
    unsigned number = 0;
    const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (code != std::errc{} || end != port.data() + port.size() || number == 0 || number > 65535)
      return wrong("its port must be a number from 1 to 65535");
  }
  for (const char c : host)
    out.host += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  out.loopback = out.host == "localhost" || out.host == "::1" || is_loopback_v4(out.host);
  out.url = text;
  while (out.url.ends_with('/'))
    out.url.pop_back();
  return out;
}

} // namespace gristmill
