#include "llm/dialects/plain_words.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace gristmill {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr std::string_view redacted = "[redacted]";

/// How many bytes the character at the front has; 0 when it is no character (overlong forms,
/// halves of surrogates and what lies beyond Unicode included).
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80)
    return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size)
    return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  const auto second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)
    || (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
    return 0;
  return size;
}

/// Control characters of both ranges, and the marks that change the direction of what follows.
bool is_hidden(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return first < 0x20 || first == 0x7F;
  const auto second = static_cast<unsigned char>(character[1]);
  if (character.size() == 2)
    return first == 0xC2 && second < 0xA0;
  if (character.size() == 3 && first == 0xE2) {
    const auto third = static_cast<unsigned char>(character[2]);
    // U+200B to U+200F, U+2028 to U+202E, U+2060 to U+2069.
    return (second == 0x80
             && ((third >= 0x8B && third <= 0x8F) || (third >= 0xA8 && third <= 0xAE)))
      || (second == 0x81 && third >= 0xA0 && third <= 0xA9);
  }
  return character == "\xEF\xBB\xBF";
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '+' || c == '*'
    || c == '~';
}

std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// What ends with one of these is followed by a secret.
constexpr std::array<std::string_view, 8> announcements{
  "bearer ", "key=", "key: ", "key:", "token=", "token: ", "provided: ", "authorization: "};
constexpr std::array<std::string_view, 13> key_beginnings{"sk-", "sk_", "pk-", "rk-", "gsk_",
  "xai-", "hf_", "ghp_", "AIza", "ya29.", "eyJ", "nvapi-", "or-"};

bool looks_like_key(std::string_view word, std::string_view before) {
  if (word.size() < 6)
    return false;
  for (const auto& start : key_beginnings)
    if (word.starts_with(start))
      return true;
  const auto end = lower(before.substr(before.size() - std::min<size_t>(before.size(), 16)));
  for (const auto& announced : announcements)
    // A word of letters alone, such as "provided: invalid", is a word.
    if (end.ends_with(announced) && !std::all_of(word.begin(), word.end(), is_letter))
      return true;
  if (word.find("****") != std::string_view::npos)
    return true;
  // Names of models and dates have short pieces; keys have a long one of both letters and digits.
  for (size_t at = 0; at < word.size();) {
    size_t stop = at;
    bool letters = false;
    bool digits = false;
    while (stop < word.size() && (is_letter(word[stop]) || is_digit(word[stop]))) {
      letters |= is_letter(word[stop]);
      digits |= is_digit(word[stop]);
      ++stop;
    }
    if (stop - at >= 20 && letters && digits)
      return true;
    at = stop + 1;
  }
  return false;
}

std::string without_keys(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && is_word(text[end]))
      ++end;
    const std::string_view word = std::string_view{text}.substr(at, end - at);
    if (looks_like_key(word, std::string_view{text}.substr(0, at)))
      out += redacted;
    else
      out += word;
    at = end;
  }
  return out;
}

} // namespace

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = character_size(text.substr(at));
    if (size == 0)
      return false;
    at += size;
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t size = character_size(text.substr(at));
    if (size == 0)
      out += replacement;
    else
      out += text.substr(at, size);
    at += std::max<size_t>(size, 1);
  }
  return out;
}

std::string plain_words(std::string_view text, size_t bytes_max) {
  // A key at the cut would be too short to be seen as one, so keys go first; no more is looked at
  // than can matter.
  const auto looked_at = text.substr(0, 4 * bytes_max + 4096);
  std::string line;
  for (size_t at = 0; at < looked_at.size();) {
    const size_t size = character_size(looked_at.substr(at));
    const auto character = looked_at.substr(at, std::max<size_t>(size, 1));
    if (size == 0)
      line += '?';
    else if (is_hidden(character) || character == " ")
      line += line.empty() || line.back() == ' ' ? "" : " ";
    else
      line += character;
    at += character.size();
  }
  line = without_keys(line);
  while (!line.empty() && line.back() == ' ')
    line.pop_back();
  if (line.size() <= bytes_max && looked_at.size() == text.size())
    return line;
  size_t end = std::min(line.size(), bytes_max);
  while (end > 0 && end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
    --end;
  line.resize(end);
  return line + "…";
}

} // namespace gristmill
