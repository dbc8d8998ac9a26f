#include "protocol/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace gristmill {

namespace {

/// Longer names are not compared: the table is quadratic, and both sides may be hostile.
constexpr size_t name_max = 64;

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

/// In half edits: a difference of case and a swap of neighbours are half of a real one, and a name
/// that is right but for its case is as near as can be.
size_t distance(std::string_view a, std::string_view b) {
  if (a != b && std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return lower(x) == lower(y);
      }))
    return 1;
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    table[i][0] = 2 * i;
  for (size_t j = 0; j <= b.size(); ++j)
    table[0][j] = 2 * j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = a[i - 1];
      const char y = b[j - 1];
      const size_t replace = x == y ? 0 : lower(x) == lower(y) ? 1 : 2;
      size_t best =
        std::min({table[i - 1][j] + 2, table[i][j - 1] + 2, table[i - 1][j - 1] + replace});
      if (i > 1 && j > 1 && x == b[j - 2] && a[i - 2] == y)
        best = std::min(best, table[i - 2][j - 2] + 1);
      table[i][j] = best;
    }
  }
  return table[a.size()][b.size()];
}

} // namespace

std::optional<std::string> nearest(
  std::string_view name, const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > name_max)
    return std::nullopt;
  const std::string* best = nullptr;
  // A third of the letters may be wrong, one at least.
  size_t limit = 2 * std::max<size_t>(1, name.size() / 3) + 1;
  for (const auto& each : candidates) {
    if (each.empty() || each.size() > name_max)
      continue;
    // Nothing in common is not a misspelling, however short both are.
    const size_t edits = distance(name, each);
    if (edits < limit && edits < 2 * std::max(name.size(), each.size())) {
      limit = edits;
      best = &each;
    }
  }
  return best == nullptr ? std::nullopt : std::optional{*best};
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty())
    return {};
  if (const auto near = nearest(name, candidates))
    return "; did you mean `" + *near + "`?";
  constexpr size_t listed_max = 12;
  std::string out = "; known: ";
  for (size_t i = 0; i < candidates.size() && i < listed_max; ++i)
    out += (i == 0 ? "" : ", ") + candidates[i].substr(0, name_max);
  return candidates.size() > listed_max ? out + ", …" : out;
}

} // namespace gristmill
