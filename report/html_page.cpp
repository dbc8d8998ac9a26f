#include "report/html_page.hpp"

#include "report/svg/markup.hpp"

namespace gristmill {

namespace {

constexpr std::string_view style = R"css(
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 0.92em; }
th, td { padding: 0.25em 0.6em; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th.number, td.number { text-align: right; }
pre { background: var(--soft); padding: 0.8em; overflow-x: auto; font-size: 0.85em; line-height: 1.35; }
details { border-bottom: 1px solid var(--line); padding: 0.3em 0; } summary { cursor: pointer; }
svg.chart { width: 100%; height: auto; margin: 0.6em 0; }
svg.chart text { fill: currentColor; font: 12px system-ui, sans-serif; }
svg.chart text.title { font-size: 14px; font-weight: 600; } svg.chart text.inside { fill: #fff; font-size: 11px; }
svg.chart .grid { stroke: var(--line); stroke-width: 0.6; }
svg.chart .axis { stroke: currentColor; fill: none; } svg.chart .mark { stroke: currentColor; stroke-dasharray: 4 3; }
@media print { details > * { display: block; } }
)css";

} // namespace

std::string html_page(std::string_view title, const std::vector<std::string>& parts) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    // Nothing is loaded and nothing runs, whatever a candidate's text contains.
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'\">\n";
  out +=
    text_tag("title", title) + "\n<style>" + std::string(style) + "</style>\n</head>\n<body>\n";
  out += text_tag("h1", title) + "\n";
  for (const auto& part : parts)
    out += part + "\n";
  return out + "</body>\n</html>\n";
}

std::string html_table(
  const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  const auto is_number = [&](size_t column) {
    return column < head.size() && head[column].starts_with('#');
  };
  const auto with = [&](size_t column) {
    return is_number(column) ? attributes{{"class", "number"}} : attributes{};
  };
  std::string out = "<table>\n<thead><tr>";
  for (size_t i = 0; i < head.size(); ++i)
    out += text_tag("th", std::string_view(head[i]).substr(is_number(i) ? 1 : 0), with(i));
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += text_tag("td", row[i], with(i));
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>";
}

std::string html_code(std::string_view text) {
  return "<pre>" + escaped(text) + "</pre>";
}

std::string html_details(std::string_view summary, const std::string& body) {
  return "<details>" + text_tag("summary", summary) + "\n" + body + "</details>";
}

std::string html_heading(std::string_view text) {
  return text_tag("h2", text);
}

std::string html_paragraph(std::string_view text) {
  return text_tag("p", text);
}

} // namespace gristmill
