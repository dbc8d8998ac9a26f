#include "llm/transport/redactor.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_hexadecimal(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f');
}

bool is_token(char c) {
  return is_alphanumeric(c) || std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

bool is_word(char c) {
  return is_alphanumeric(c) || c == '-' || c == '_';
}

/// How the keys of a provider begin, and how much must follow before it is taken for one.
struct key_form {
  std::string_view start;
  size_t rest_min;
};

constexpr std::array<key_form, 8> key_forms{{{"sk-", 16}, {"AIza", 20}, {"hf_", 16}, {"gsk_", 16},
  {"xai-", 16}, {"ghp_", 20}, {"github_pat_", 20}, {"AKIA", 16}}};

constexpr std::array<std::string_view, 12> telling_parameters{"key", "api_key", "apikey", "api-key",
  "token", "access_token", "auth", "secret", "client_secret", "password", "sig", "signature"};

/// Whether a word may begin at `at`: "disk-…" holds no key. The letters of an escape before it
/// ("\n", "\u000a", "%20") belong to no word.
bool word_begins(std::string_view text, size_t at) {
  if (at == 0 || !is_alphanumeric(text[at - 1]))
    return true;
  if (at >= 2 && text[at - 2] == '\\')
    return true;
  if (at >= 3 && text[at - 3] == '%' && is_hexadecimal(text[at - 2])
    && is_hexadecimal(text[at - 1]))
    return true;
  return at >= 6 && text.substr(at - 6, 2) == "\\u"
    && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at) - 4,
      text.begin() + static_cast<std::ptrdiff_t>(at), is_hexadecimal);
}

struct span {
  size_t begin;
  size_t end;
};

void find_key_forms(std::string_view text, std::vector<span>& spans) {
  for (const auto& form : key_forms) {
    for (auto at = text.find(form.start); at != std::string_view::npos;
         at = text.find(form.start, at + 1)) {
      const auto rest = at + form.start.size();
      auto end = rest;
      while (end < text.size() && is_word(text[end]))
        ++end;
      if (end - rest >= form.rest_min && word_begins(text, at))
        spans.push_back({at, end});
    }
  }
}

void find_bearers(std::string_view text, std::vector<span>& spans) {
  constexpr std::string_view word = "bearer";
  constexpr size_t token_min = 8;
  const auto same = [](char a, char b) { return lower(a) == b; };
  for (auto at = text.begin();; ++at) {
    at = std::search(at, text.end(), word.begin(), word.end(), same);
    if (at == text.end())
      return;
    auto begin = static_cast<size_t>(at - text.begin()) + word.size();
    const auto after_word = begin;
    while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\t'))
      ++begin;
    // In a URL the blank is escaped.
    if (begin == after_word && (text.substr(begin, 3) == "%20" || text.substr(begin, 1) == "+"))
      begin += text[begin] == '+' ? 1 : 3;
    auto end = begin;
    while (end < text.size() && is_token(text[end]))
      ++end;
    if (begin > after_word && end - begin >= token_min)
      spans.push_back({begin, end});
  }
}

void find_all(std::string_view text, std::string_view what, std::vector<span>& spans) {
  for (auto at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + what.size()))
    spans.push_back({at, at + what.size()});
}

/// As JSON writes it, with the slash escaped or not, and as URLs do.
std::vector<std::string> escaped_forms(std::string_view secret) {
  std::string json;
  std::string json_slash;
  std::string url;
  for (const char c : secret) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json_slash += '\\';
    } else if (c == '/') {
      json_slash += '\\';
    }
    json += c;
    json_slash += c;
    if (is_alphanumeric(c) || std::string_view("-._~").find(c) != std::string_view::npos)
      url += c;
    else
      url += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return {json, json_slash, url};
}

std::string blacked_out(std::string_view text, std::vector<span> spans) {
  std::sort(
    spans.begin(), spans.end(), [](const span& a, const span& b) { return a.begin < b.begin; });
  std::string out;
  size_t done = 0;
  for (size_t i = 0; i < spans.size();) {
    auto end = spans[i].end;
    const auto begin = spans[i].begin;
    for (++i; i < spans.size() && spans[i].begin < end; ++i)
      end = std::max(end, spans[i].end);
    out += text.substr(done, begin - done);
    out += redactor::mark;
    done = end;
  }
  out += text.substr(done);
  return out;
}

} // namespace

void redactor::know(std::string_view secret) {
  if (secret.size() < known_size_min)
    return;
  std::vector<std::string> forms = escaped_forms(secret);
  forms.emplace_back(secret);
  for (auto& form : forms) {
    const bool is_new = std::none_of(
      known_.begin(), known_.end(), [&](const secret_text& known) { return known.view() == form; });
    if (is_new)
      known_.emplace_back(form);
    wipe_memory(form.data(), form.size());
  }
}

std::string redactor::redact(std::string_view text, redaction_count* count) const {
  std::vector<span> spans;
  for (const auto& secret : known_)
    find_all(text, secret.view(), spans);
  const auto known = spans.size();
  find_key_forms(text, spans);
  find_bearers(text, spans);
  if (count) {
    count->known += known;
    count->by_form += spans.size() - known;
  }
  if (spans.empty())
    return std::string(text);
  return blacked_out(text, std::move(spans));
}

std::string redactor::redact_url(std::string_view url, redaction_count* count) const {
  std::vector<span> spans;
  const auto scheme = url.find("://");
  const auto host = scheme == std::string_view::npos ? 0 : scheme + 3;
  const auto host_end = std::min(url.find_first_of("/?#", host), url.size());
  if (const auto at = url.substr(host, host_end - host).rfind('@'); at != std::string_view::npos)
    spans.push_back({host, host + at});
  const auto question = url.find('?');
  for (auto begin = question; begin != std::string_view::npos && begin < url.size();) {
    ++begin;
    const auto end = std::min(url.find_first_of("&#", begin), url.size());
    const auto equals = url.substr(begin, end - begin).find('=');
    std::string name(url.substr(begin, equals));
    std::transform(name.begin(), name.end(), name.begin(), lower);
    const bool telling = std::find(telling_parameters.begin(), telling_parameters.end(), name)
      != telling_parameters.end();
    if (equals != std::string_view::npos && telling && begin + equals + 1 < end)
      spans.push_back({begin + equals + 1, end});
    begin = end;
  }
  if (count)
    count->by_form += spans.size();
  return redact(spans.empty() ? std::string(url) : blacked_out(url, std::move(spans)), count);
}

} // namespace gristmill
