#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// Text for between the tags of HTML and SVG, and for attributes in double quotes. Control
/// characters other than tab and line feed, which XML has no way to write, become U+FFFD, and so
/// does every byte that is no UTF-8.
std::string escaped(std::string_view text);

/// A coordinate with two decimals at most and no trailing zeros; the same on every machine.
std::string coordinate(double value);

using attributes = std::vector<std::pair<std::string_view, std::string>>;

/// `<name a="…">`, with the values escaped.
std::string open_tag(std::string_view name, const attributes& with = {});
/// `<name a="…"/>`.
std::string empty_tag(std::string_view name, const attributes& with);
/// `<name a="…">text</name>`, with the text escaped.
std::string text_tag(std::string_view name, std::string_view text, const attributes& with = {});

/// Colour of the i-th thing on a chart: eight that people with any colour vision tell apart, then
/// from the start again.
std::string_view chart_colour(size_t i);

} // namespace gristmill
