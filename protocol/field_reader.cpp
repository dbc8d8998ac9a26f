#include "protocol/field_reader.hpp"

#include "protocol/json_lines.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// A hostile file may be wrong in a million places, with names of a million letters.
constexpr size_t remarks_max = 100;
constexpr size_t path_shown_max = 200;

/// A path as a terminal may show it.
std::string shown(const std::string& path) {
  const bool odd = std::any_of(path.begin(), path.end(),
    [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  return odd || path.size() > path_shown_max ? excerpt(path, path_shown_max) : path;
}

std::vector<size_t> lines_of(const auto& remarks, std::string_view document_text) {
  std::vector<std::string> paths;
  for (const auto& each : remarks)
    paths.push_back(each.path);
  return lines_of_fields(document_text, paths);
}

std::string error_text(const std::string& where, const auto& error) {
  return error.path.empty() ? fmt::format("{}: {}", where, error.text)
                            : fmt::format("{}: {}: {}", where, shown(error.path), error.text);
}

} // namespace

void field_reader::keep(std::vector<remark>& list, std::string_view path, std::string text) {
  if (list.size() < remarks_max)
    list.push_back({std::string{path}, std::move(text)});
}

void field_reader::error(std::string_view path, std::string why) {
  ++error_count_;
  keep(errors_, path, std::move(why));
}

void field_reader::warn(std::string_view path, std::string text) {
  keep(warnings_, path, std::move(text));
}

failure field_reader::collected(const std::string& where) const {
  std::string all;
  for (const auto& each : errors_)
    all += (all.empty() ? "" : "\n") + error_text(where, each);
  return {errc::invalid_input, all};
}

failure field_reader::collected(const std::string& file, std::string_view document_text) const {
  const auto lines = lines_of(errors_, document_text);
  std::string all;
  for (size_t i = 0; i < errors_.size(); ++i)
    all += (all.empty() ? "" : "\n") + error_text(fmt::format("{}:{}", file, lines[i]), errors_[i]);
  return {errc::invalid_input, all};
}

std::vector<std::string> field_reader::warnings() const {
  std::vector<std::string> out;
  for (const auto& each : warnings_)
    out.push_back(each.text);
  return out;
}

void field_reader::give_warnings(const std::string& file, std::string_view document_text,
  std::vector<std::string>* warnings) const {
  if (warnings == nullptr || warnings_.empty())
    return;
  const auto lines = lines_of(warnings_, document_text);
  for (size_t i = 0; i < warnings_.size(); ++i)
    warnings->push_back(fmt::format("{}:{}: {}", file, lines[i], warnings_[i].text));
}

void field_reader::ignore_others(const ordered_json& object, std::string_view path,
  std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end())
      continue;
    const auto near = nearest(key, std::vector<std::string>(known.begin(), known.end()));
    const auto at = join_path(path, key);
    warn(at,
      fmt::format("ignored key {}{}", excerpt(at, path_shown_max),
        near ? fmt::format("; did you mean `{}`?", *near) : ""));
  }
}

std::string field_reader::text(
  const ordered_json& object, std::string_view path, const char* key, need kind) {
  const bool must_be_there = kind == need::required || kind == need::present;
  const bool may_be_null = kind == need::optional || kind == need::free;
  const auto found = object.find(key);
  if (found == object.end()) {
    if (must_be_there)
      error(join_path(path, key), "a string is required");
    return {};
  }
  if (found->is_null() && may_be_null)
    return {};
  if (!found->is_string()) {
    error(join_path(path, key), fmt::format("must be a string, not {}", kind_text(*found)));
    return {};
  }
  const auto& value = found->get_ref<const std::string&>();
  if (value.empty() && (kind == need::required || kind == need::optional))
    error(join_path(path, key), "must not be empty");
  return value;
}

std::vector<std::string> field_reader::texts(
  const ordered_json& object, std::string_view path, const char* key, bool required, need entries) {
  const auto found = object.find(key);
  if (found == object.end() && !required)
    return {};
  const auto at = join_path(path, key);
  if (found == object.end()) {
    error(at, "a list is required");
    return {};
  }
  if (!found->is_array()) {
    error(at, fmt::format("must be a list, not {}", kind_text(*found)));
    return {};
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < found->size(); ++i) {
    const auto& each = (*found)[i];
    // Wrong ones stand as empty texts, so that the others keep their places.
    out.push_back(each.is_string() ? each.get<std::string>() : std::string{});
    if (!each.is_string())
      error(fmt::format("{}.{}", at, i), fmt::format("must be a string, not {}", kind_text(each)));
    else if (out.back().empty() && entries == need::required)
      error(fmt::format("{}.{}", at, i), "must not be empty");
  }
  return out;
}

bool field_reader::boolean(
  const ordered_json& object, std::string_view path, const char* key, bool fallback) {
  const auto found = object.find(key);
  if (found == object.end())
    return fallback;
  if (const auto value = lenient_bool(*found))
    return *value;
  error(join_path(path, key), fmt::format("must be a bool, not {}", kind_text(*found)));
  return fallback;
}

int64_t field_reader::integer(
  const ordered_json& object, std::string_view path, const char* key, int64_t fallback) {
  const auto found = object.find(key);
  if (found == object.end())
    return fallback;
  if (const auto value = lenient_int(*found))
    return *value;
  error(join_path(path, key), fmt::format("must be an integer, not {}", kind_text(*found)));
  return fallback;
}

double field_reader::number(
  const ordered_json& object, std::string_view path, const char* key, double fallback) {
  const auto found = object.find(key);
  if (found == object.end())
    return fallback;
  const auto value = lenient_float(*found);
  // A NaN is a number for the format, but it compares as nothing: no limit would ever be exceeded.
  if (value && !std::isnan(*value))
    return *value;
  error(join_path(path, key),
    fmt::format("must be a number, not {}", value ? std::string_view{"NaN"} : kind_text(*found)));
  return fallback;
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
