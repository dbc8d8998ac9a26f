#include "report/svg/markup.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// Length of the UTF-8 character that begins the text; 0 when none does.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80 ? 1
    : lead < 0xC2                   ? 0
    : lead < 0xE0                   ? 2
    : lead < 0xF0                   ? 3
    : lead < 0xF5                   ? 4
                                    : 0;
  if (length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  }
  // Overlong forms, surrogates and what lies above the last code point.
  if (length == 3 && ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)))
    return 0;
  if (length == 4 && ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)))
    return 0;
  return length;
}

std::string tag(std::string_view name, const attributes& with, std::string_view end) {
  std::string out = "<" + std::string(name);
  for (const auto& [key, value] : with)
    out += fmt::format(" {}=\"{}\"", key, escaped(value));
  return out.append(end);
}

} // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_length(text);
    const char first = text.front();
    if (length == 0
      || (length == 1 && static_cast<unsigned char>(first) < 0x20 && first != '\n' && first != '\t')
      || first == 0x7F) {
      out += replacement;
      text.remove_prefix(1);
      continue;
    }
    switch (first) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string coordinate(double value) {
  if (!std::isfinite(value))
    return "0";
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0')
    text.pop_back();
  if (text.back() == '.')
    text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string open_tag(std::string_view name, const attributes& with) {
  return tag(name, with, ">");
}

std::string empty_tag(std::string_view name, const attributes& with) {
  return tag(name, with, "/>");
}

std::string text_tag(std::string_view name, std::string_view text, const attributes& with) {
  return tag(name, with, ">") + escaped(text) + fmt::format("</{}>", name);
}

std::string_view chart_colour(size_t i) {
  static constexpr std::array<std::string_view, 8> colours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#6b6b6b"};
  return colours[i % colours.size()];
}

} // namespace gristmill
