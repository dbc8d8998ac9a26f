#include "report/svg/charts.hpp"
#include "report/svg/markup.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace gristmill;

namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// Every tag that is opened is closed, in order; true for well-formed markup without comments.
bool is_balanced(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const size_t end = text.find('>', at);
    if (end == std::string::npos)
      return false;
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(
      tag.starts_with('/') ? 1 : 0, tag.find_first_of(" /", 1) - (tag.starts_with('/') ? 1 : 0));
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1))
        return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
  }
  return open.empty();
}

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

chart_frame titled(const std::string& title) {
  chart_frame frame;
  frame.title = title;
  return frame;
}

} // namespace

TEST_CASE("text cannot become markup") {
  CHECK(escaped("a<b & \"c\">") == "a&lt;b &amp; &quot;c&quot;&gt;");
  CHECK(text_tag("text", "</svg><script>") == "<text>&lt;/svg&gt;&lt;script&gt;</text>");
  CHECK(open_tag("g", {{"id", "\"><x"}}) == "<g id=\"&quot;&gt;&lt;x\">");
}

TEST_CASE("what XML cannot hold is replaced, and UTF-8 stays") {
  CHECK(escaped(std::string("a\x01"
                            "b\x7F"))
    == "a\xEF\xBF\xBD"
       "b\xEF\xBF\xBD");
  CHECK(escaped("\xFF\xC0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(
    escaped("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80") == "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(escaped("\xED\xA0\x80").find('\xED') == std::string::npos); // A surrogate.
  CHECK(escaped("\xE2\x82") == "\xEF\xBF\xBD\xEF\xBF\xBD");         // Cut off.
}

TEST_CASE("coordinates are short and never NaN") {
  CHECK(coordinate(1.5) == "1.5");
  CHECK(coordinate(2) == "2");
  CHECK(coordinate(-0.001) == "0");
  CHECK(coordinate(no_number) == "0");
  CHECK(coordinate(100) == "100");
}

TEST_CASE("a scale has round ticks that cover its data") {
  for (auto [low, high] : {std::pair{0.0, 1.0}, {0.97, 1.38}, {-3.0, 17.0}, {5.0, 5.0}, {0.0, 0.0},
         {1e-9, 3e-9}, {0.0, 13608.0}}) {
    const auto s = scale::over(scale_kind::linear, low, high, 0, 100);
    CAPTURE(low);
    CAPTURE(high);
    CHECK(s.low() <= low + 1e-12);
    CHECK(s.high() >= high - 1e-12);
    CHECK(s.ticks().size() >= 2);
    CHECK(s.ticks().size() <= 12);
    CHECK(s.at(s.low()) == doctest::Approx(0));
    CHECK(s.at(s.high()) == doctest::Approx(100));
  }
  CHECK(scale::over(scale_kind::linear, 0, 0.5, 0, 1).ticks()[3].label == "0.3");
}

TEST_CASE("a logarithmic scale shows whole decades and takes no zero") {
  const auto s = scale::over(scale_kind::logarithmic, 0, 250, 0, 100);
  CHECK(s.high() == doctest::Approx(1000));
  CHECK(s.at(0) == 0);
  CHECK(s.at(1000) == doctest::Approx(100));
  const auto all_zero = scale::over(scale_kind::logarithmic, 0, 0, 0, 1);
  CHECK(all_zero.low() == doctest::Approx(0.1));
}

TEST_CASE("what lies outside of a scale is drawn at its end") {
  const auto s = scale::over(scale_kind::linear, 0, 10, 0, 100);
  CHECK(s.at(-5) == 0);
  CHECK(s.at(1e300) == 100);
  CHECK(s.at(no_number) == 0);
}

TEST_CASE("numbers for people are short") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(1500) == "1500");
  CHECK(short_number(13608) == "13.6k");
  CHECK(short_number(2.04e6) == "2.04M");
  CHECK(short_number(0.0012) == "0.0012");
  CHECK(short_number(no_number) == "-");
}

TEST_CASE("a chart without data says so and is whole") {
  const auto chart = line_chart(titled("t"), {});
  CHECK(chart.find("no data") != std::string::npos);
  CHECK(is_balanced(chart));
  chart_line holes;
  holes.x = {1, 2};
  holes.y = {no_number, no_number};
  CHECK(line_chart(titled("t"), {holes}).find("no data") != std::string::npos);
  CHECK(gantt_chart({}).find("no data") != std::string::npos);
  CHECK(is_balanced(share_chart("t", {"a"}, {{"row", {0}}})));
}

TEST_CASE("a line chart has a path for each line and one for each band") {
  chart_line line{"one", {0, 1, 2}, {1, 2, 4}, {0.5, 1, 3}, {1.5, 3, 5}, false};
  chart_line steps{"two", {0, 1, 2}, {1, 1, 3}, {}, {}, true};
  auto with_line = titled("t");
  with_line.y_include = 0;
  with_line.y_line = 1;
  const auto chart = line_chart(with_line, {line, steps});
  CHECK(is_balanced(chart));
  CHECK(count_of(chart, "stroke-width=\"1.8\"") == 2);
  CHECK(count_of(chart, "fill-opacity") == 1);
  CHECK(chart.find("class=\"mark\"") != std::string::npos);
  CHECK(chart.find("nan") == std::string::npos);
}

TEST_CASE("long lines are thinned, and keep their ends") {
  chart_line line;
  for (int i = 0; i < 100'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i % 7);
  }
  CHECK(line_chart(titled("t"), {line}).size() < 100'000);
}

TEST_CASE("cumulative shares end at 1 and jump at equal samples") {
  const auto line = cumulative("w", {3, 1, no_number, 1, 2});
  CHECK(line.x == std::vector<double>{1, 2, 3});
  CHECK(line.y == std::vector<double>{0.5, 0.75, 1});
  CHECK(cumulative("w", {}).x.empty());
}

TEST_CASE("a Gantt chart draws one bar a span and joins what no eye can part") {
  gantt_rows what{"t", "s", {"gpu0", "gpu1"}, {"busy", "check"}, {}};
  what.spans = {
    {0, 0, 10, 0, "a"}, {0, 10, 12, 1, "b"}, {1, 5, 9, 0, "c"}, {7, 0, 1, 0, "no such row"}};
  const auto chart = gantt_chart(what);
  CHECK(is_balanced(chart));
  CHECK(count_of(chart, "<title>") == 3);
  CHECK(chart.find("no such row") == std::string::npos);
  what.spans.clear();
  for (int i = 0; i < 50'000; ++i)
    what.spans.push_back({0, i * 1.0, i * 1.0 + 0.9, 0, "x"});
  CHECK(gantt_chart(what).size() < 500'000);
}

TEST_CASE("more rows than fit are counted") {
  gantt_rows what{"t", "s", std::vector<std::string>(100, "gpu"), {"busy"}, {{0, 0, 1, 0, ""}}};
  CHECK(gantt_chart(what).find("not drawn: 36 rows, 0 pieces") != std::string::npos);
}

TEST_CASE("shares are of each row's own sum") {
  const auto chart = share_chart("t", {"a", "b"}, {{"row", {1, 3}}, {"odd", {no_number, 2}}});
  CHECK(is_balanced(chart));
  CHECK(chart.find(">25 %<") != std::string::npos);
  CHECK(chart.find(">75 %<") != std::string::npos);
  CHECK(chart.find(">100 %<") != std::string::npos);
}
