#include "simulation/import/import_fields.hpp"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t name_bytes_max = 120;
constexpr double number_max = 1e15;

std::string shown(std::string_view text) {
  return name_field(text.substr(0, 40));
}

} // namespace

std::optional<std::vector<std::string_view>> split_fields(
  std::string_view line, char between, size_t max) {
  std::vector<std::string_view> out;
  for (;;) {
    auto end = line.find(between);
    if (out.size() == max)
      return std::nullopt;
    out.push_back(line.substr(0, end));
    if (end == std::string_view::npos)
      return out;
    line.remove_prefix(end + 1);
  }
}

std::optional<std::vector<std::string_view>> split_blanks(std::string_view line, size_t max) {
  std::vector<std::string_view> out;
  for (;;) {
    auto begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos)
      return out;
    if (out.size() == max)
      return std::nullopt;
    line.remove_prefix(begin);
    auto end = line.find_first_of(" \t");
    out.push_back(line.substr(0, end));
    if (end == std::string_view::npos)
      return out;
    line.remove_prefix(end);
  }
}

result<double> number_field(std::string_view text, const char* name) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()
    || !std::isfinite(value) || std::abs(value) > number_max)
    return fail(errc::invalid_input,
      fmt::format("field {}: '{}' is not a number within 1e15", name, shown(text)));
  return value;
}

std::string name_field(std::string_view text) {
  std::string out(text.substr(0, name_bytes_max));
  for (auto& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      c = '_';
  return out;
}

} // namespace gristmill
