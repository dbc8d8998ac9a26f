#include "gpu/lease/policy.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace gristmill {

namespace {

using factory = std::unique_ptr<lease_policy> (*)();

const std::map<std::string, factory, std::less<>>& factories() {
  static const std::map<std::string, factory, std::less<>> all = {
    {"fifo", make_fifo_policy}, {"stride", make_stride_policy}};
  return all;
}

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

std::vector<std::string> policy_names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : factories())
    out.push_back(name);
  return out;
}

result<std::unique_ptr<lease_policy>> policy_by_name(std::string_view name) {
  if (auto it = factories().find(name); it != factories().end())
    return it->second();
  auto names = policy_names();
  // The name comes from a command line: its length is bounded before anything is done with it.
  auto shown = name.substr(0, 64);
  auto nearest = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return edit_distance(a, shown) < edit_distance(b, shown);
  });
  return fail(errc::invalid_input,
    fmt::format("there is no lease policy '{}'; did you mean '{}'? Known: {}", shown, *nearest,
      fmt::join(names, ", ")));
}

} // namespace gristmill
