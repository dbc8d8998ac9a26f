#include "kernels/search/search_key.hpp"

#include <fmt/format.h>
#include <utility>

namespace gristmill {

search_key read_key(std::string_view key) {
  if (key.starts_with(probe_prefix))
    return {search_key_kind::probe, key.substr(probe_prefix.size())};
  if (key.starts_with(confirm_prefix))
    return {search_key_kind::confirm, key.substr(confirm_prefix.size())};
  if (key.starts_with(groups_prefix))
    return {search_key_kind::groups, key};
  return {search_key_kind::point, key};
}

std::vector<std::string_view> stage_keys(std::string_view point_key) {
  // A partition other than 0 stands before a colon, and no stage key has one before its first '/'.
  const size_t colon = point_key.find(':');
  if (colon != std::string_view::npos && colon < point_key.find('/'))
    point_key.remove_prefix(colon + 1);
  std::vector<std::string_view> out;
  for (;;) {
    const size_t plus = point_key.find('+');
    out.push_back(point_key.substr(0, plus));
    if (plus == std::string_view::npos)
      return out;
    point_key.remove_prefix(plus + 1);
  }
}

std::string_view family_of(std::string_view stage_key) {
  return stage_key.substr(0, stage_key.find('/'));
}

std::string groups_key(const std::vector<std::pair<std::string, std::string>>& groups) {
  constexpr size_t readable_bytes_max = 200;
  std::string text;
  for (const auto& [condition, point] : groups) {
    if (!text.empty())
      text += ';';
    text += condition == "true" ? point : condition + "?" + point;
  }
  if (text.size() <= readable_bytes_max)
    return std::string(groups_prefix) + text;
  // FNV-1a, 64 bits: names a few candidates of one problem, guards nothing.
  uint64_t hash = 0xcbf29ce484222325U;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{}{}x{:016x}", groups_prefix, groups.size(), hash);
}

std::vector<std::pair<std::string, std::string>> parts_of_groups_key(std::string_view key) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!key.starts_with(groups_prefix))
    return out;
  key.remove_prefix(groups_prefix.size());
  for (;;) {
    const size_t end = key.find(';');
    const std::string_view part = key.substr(0, end);
    const size_t question = part.find('?');
    if (question != std::string_view::npos)
      out.emplace_back(part.substr(0, question), part.substr(question + 1));
    else if (end == std::string_view::npos && !out.empty())
      out.emplace_back("true", part); // The last one has no condition.
    else
      return {};
    if (end == std::string_view::npos)
      return out;
    key.remove_prefix(end + 1);
  }
}

} // namespace gristmill
