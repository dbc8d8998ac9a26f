#include "protocol/strict_json.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

/// A key as it stands in a path: as it is when it is a plain word, as most are.
std::string key_text(std::string_view key) {
  const bool plain =
    !key.empty() && key.size() <= 64 && std::all_of(key.begin(), key.end(), [](unsigned char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
  return plain ? std::string(key) : excerpt(key);
}

} // namespace

strict_object::strict_object(
  const ordered_json& value, std::string path, std::optional<failure>& sink)
  : value_(value), path_(std::move(path)), sink_(sink) {
  if (!value_.is_object() && !sink_)
    sink_ = failure{errc::invalid_input,
      fmt::format("{}: expected an object, found {}", path_, kind_text(value_))};
}

strict_object::~strict_object() {
  if (sink_ || !value_.is_object())
    return;
  for (const auto& [key, unused] : value_.items())
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) {
      complain(key, "unknown key");
      return;
    }
}

bool strict_object::has(std::string_view key) const {
  return value_.is_object() && value_.contains(key);
}

bool strict_object::is_null(std::string_view key) {
  if (!has(key) || !value_.find(key)->is_null())
    return false;
  asked_.emplace_back(key);
  return true;
}

void strict_object::complain(std::string_view key, std::string_view what) {
  if (!sink_)
    sink_ =
      failure{errc::invalid_input, fmt::format("{}: {}", join_path(path_, key_text(key)), what)};
}

const ordered_json* strict_object::find(std::string_view key) {
  if (sink_)
    return nullptr;
  asked_.emplace_back(key);
  auto found = value_.find(key);
  if (found == value_.end()) {
    complain(key, "missing");
    return nullptr;
  }
  return &*found;
}

std::string strict_object::text(std::string_view key, size_t bytes_max) {
  const auto* value = find(key);
  if (!value)
    return {};
  if (!value->is_string()) {
    complain(key, fmt::format("expected a string, found {}", kind_text(*value)));
    return {};
  }
  auto read = value->get<std::string>();
  if (read.size() > bytes_max) {
    complain(key, fmt::format("{} bytes, but at most {} are allowed", read.size(), bytes_max));
    return {};
  }
  return read;
}

bool strict_object::boolean(std::string_view key) {
  const auto* value = find(key);
  if (!value)
    return false;
  if (!value->is_boolean()) {
    complain(key, fmt::format("expected true or false, found {}", kind_text(*value)));
    return false;
  }
  return value->get<bool>();
}

uint64_t strict_object::natural(std::string_view key, uint64_t max) {
  const auto* value = find(key);
  if (!value)
    return 0;
  if (!value->is_number_unsigned()) {
    complain(key, fmt::format("expected an integer of 0 or more, found {}", kind_text(*value)));
    return 0;
  }
  const auto read = value->get<uint64_t>();
  if (read > max) {
    complain(key, fmt::format("{} is more than the {} allowed", read, max));
    return 0;
  }
  return read;
}

uint32_t strict_object::natural32(std::string_view key, uint32_t max) {
  return static_cast<uint32_t>(natural(key, max));
}

int64_t strict_object::integer(std::string_view key, int64_t min, int64_t max) {
  const auto* value = find(key);
  if (!value)
    return 0;
  const bool beyond = value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX};
  if (!value->is_number_integer() || beyond) {
    complain(key, fmt::format("expected an integer, found {}", kind_text(*value)));
    return 0;
  }
  const auto read = value->get<int64_t>();
  if (read < min || read > max) {
    complain(key, fmt::format("{} lies outside {} to {}", read, min, max));
    return 0;
  }
  return read;
}

double strict_object::number(std::string_view key) {
  const auto* value = find(key);
  if (!value)
    return 0;
  if (value->is_number())
    return value->get<double>();
  if (value->is_string()) {
    const auto read = value->get<std::string>();
    if (read == "inf")
      return std::numeric_limits<double>::infinity();
    if (read == "-inf")
      return -std::numeric_limits<double>::infinity();
    if (read == "nan")
      return std::numeric_limits<double>::quiet_NaN();
  }
  complain(key, fmt::format("expected a number, found {}", kind_text(*value)));
  return 0;
}

size_t strict_object::choice(std::string_view key, const std::vector<std::string>& choices) {
  const auto read = text(key, 256);
  if (sink_)
    return 0;
  const auto found = std::find(choices.begin(), choices.end(), read);
  if (found == choices.end()) {
    complain(key, fmt::format("{} is none of {}", excerpt(read), fmt::join(choices, ", ")));
    return 0;
  }
  return static_cast<size_t>(found - choices.begin());
}

std::vector<uint8_t> strict_object::hex(std::string_view key, size_t bytes_max) {
  const auto read = text(key, 2 * bytes_max);
  auto digit = [](char c) {
    if (c >= '0' && c <= '9')
      return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < read.size(); i += 2) {
    const int high = digit(read[i]), low = digit(read[i + 1]);
    if (high < 0 || low < 0)
      break;
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  if (bytes.size() * 2 != read.size()) {
    complain(key, "expected pairs of hexadecimal digits in lower case");
    return {};
  }
  return bytes;
}

void strict_object::each(std::string_view key, size_t count_max,
  const std::function<void(const ordered_json&, std::string)>& read) {
  const auto* value = find(key);
  if (!value)
    return;
  if (!value->is_array()) {
    complain(key, fmt::format("expected an array, found {}", kind_text(*value)));
    return;
  }
  if (value->size() > count_max) {
    complain(key, fmt::format("{} elements, but at most {} are allowed", value->size(), count_max));
    return;
  }
  for (size_t i = 0; i < value->size() && !sink_; ++i)
    read((*value)[i], fmt::format("{}[{}]", join_path(path_, key), i));
}

void strict_object::each_member(std::string_view key, size_t count_max,
  const std::function<void(const std::string&, const ordered_json&, std::string)>& read) {
  const auto* value = find(key);
  if (!value)
    return;
  if (!value->is_object()) {
    complain(key, fmt::format("expected an object, found {}", kind_text(*value)));
    return;
  }
  if (value->size() > count_max) {
    complain(key, fmt::format("{} keys, but at most {} are allowed", value->size(), count_max));
    return;
  }
  for (const auto& [name, member] : value->items()) {
    if (sink_)
      return;
    read(name, member, join_path(join_path(path_, key), key_text(name)));
  }
}

void strict_object::object(std::string_view key, const std::function<void(strict_object&)>& read) {
  const auto* value = find(key);
  if (!value)
    return;
  strict_object inner{*value, join_path(path_, key), sink_};
  read(inner);
}

std::vector<int64_t> strict_object::integers(std::string_view key, size_t count_max) {
  std::vector<int64_t> all;
  each(key, count_max, [&](const ordered_json& element, const std::string& where) {
    const bool beyond =
      element.is_number_unsigned() && element.get<uint64_t>() > uint64_t{INT64_MAX};
    if (!element.is_number_integer() || beyond) {
      if (!sink_)
        sink_ = failure{errc::invalid_input,
          fmt::format("{}: expected an integer, found {}", where, kind_text(element))};
      return;
    }
    all.push_back(element.get<int64_t>());
  });
  return all;
}

ordered_json number_to_json(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  return value;
}

std::string hex_text(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (uint8_t byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

} // namespace gristmill
