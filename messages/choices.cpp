#include "messages/choices.hpp"

#include <algorithm>
#include <charconv>

namespace gristmill {

namespace {

// How many single letters have to be put in, taken out or changed (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

} // namespace

std::string known_choices(std::string_view given, const std::vector<std::string>& known) {
  if (known.empty())
    return "; there is none";
  auto bounded = given.substr(0, 64);
  auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(a, bounded) < edit_distance(b, bounded);
  });
  auto out = "; did you mean '" + *nearest + "'? Known: ";
  for (const auto& each : known)
    out += (&each == &known.front() ? "" : ", ") + each;
  return out;
}

std::string shown(std::string_view text) {
  std::string out{text.substr(0, 80)};
  for (auto& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      c = '?';
  return text.size() > 80 ? out + "…" : out;
}

result<uint64_t> parse_fixed_point(std::string_view text, size_t places) {
  auto point = text.find('.');
  auto whole = text.substr(0, point);
  auto fraction = point == std::string_view::npos ? std::string_view{} : text.substr(point + 1);
  auto wrong = [&] {
    return fail(errc::invalid_input,
      "'" + shown(text) + "' is not a decimal with at most " + std::to_string(places) + " places");
  };
  if (whole.empty() || whole.size() + places > 18 || fraction.size() > places
    || (point != std::string_view::npos && fraction.empty()))
    return wrong();
  auto digits = std::string{whole} + std::string{fraction};
  digits.append(places - fraction.size(), '0');
  uint64_t out = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc{} || end != digits.data() + digits.size())
    return wrong();
  return out;
}

} // namespace gristmill
