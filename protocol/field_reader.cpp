#include "protocol/field_reader.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// A hostile file may be wrong in a million places.
constexpr size_t errors_max = 100;

} // namespace

void field_reader::error(std::string_view path, const std::string& why) {
  if (errors_.size() < errors_max)
    errors_.push_back(path.empty() ? why : fmt::format("{}: {}", path, why));
}

failure field_reader::collected(const std::string& where) const {
  std::string all;
  for (const auto& each : errors_)
    all += fmt::format("{}{}: {}", all.empty() ? "" : "\n", where, each);
  return {errc::invalid_input, all};
}

void field_reader::ignore_others(
  const ordered_json& object, std::string_view path, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end())
      continue;
    const auto near = nearest(key, known);
    warn(fmt::format("ignored key {}{}", excerpt(join_path(path, key)),
      near ? fmt::format("; did you mean `{}`?", *near) : ""));
  }
}

std::string field_reader::text(
  const ordered_json& object, std::string_view path, const char* key, need kind) {
  const auto at = join_path(path, key);
  const auto found = object.find(key);
  if (found == object.end() || (found->is_null() && kind != need::required)) {
    if (kind == need::required)
      error(at, "a string is required");
    return {};
  }
  if (!found->is_string()) {
    error(at, fmt::format("must be a string, not {}", kind_text(*found)));
    return {};
  }
  auto value = found->get<std::string>();
  if (value.empty() && kind != need::free)
    error(at, "must not be empty");
  return value;
}

const ordered_json* field_reader::object(
  const ordered_json& parent, std::string_view path, const char* key) {
  const auto found = parent.find(key);
  if (found != parent.end() && found->is_object())
    return &*found;
  error(join_path(path, key),
    found == parent.end() ? std::string{"an object is required"}
                          : fmt::format("must be an object, not {}", kind_text(*found)));
  return nullptr;
}

} // namespace gristmill
