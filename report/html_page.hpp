#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// One self-contained HTML file: own style, no script, nothing from outside, readable in print and
/// on a dark screen. The parts are HTML already.
std::string html_page(std::string_view title, const std::vector<std::string>& parts);

/// A table; cells are texts and are escaped. Columns whose head begins with '#' hold numbers and
/// are set to the right (the sign is not shown).
std::string html_table(
  const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

/// Text as it is, with its line breaks, in a fixed font.
std::string html_code(std::string_view text);

/// A part that opens on a click; `body` is HTML.
std::string html_details(std::string_view summary, const std::string& body);

std::string html_heading(std::string_view text);
std::string html_paragraph(std::string_view text);

} // namespace gristmill
