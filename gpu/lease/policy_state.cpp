#include "gpu/lease/policy_state.hpp"

#include <charconv>
#include <fmt/format.h>

namespace gristmill {

std::string state_hex(std::string_view text) {
  std::string out;
  for (char c : text)
    out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out.empty() ? "-" : out;
}

std::string state_number(wide value) {
  return fmt::format("{}", value);
}

bool state_reader::next_line() {
  if (!line_.empty())
    return false;
  auto end = text_.find('\n');
  whole_line_ = text_.substr(0, end);
  if (end == std::string_view::npos) {
    text_ = {};
    return false;
  }
  line_ = whole_line_;
  text_.remove_prefix(end + 1);
  return true;
}

std::string_view state_reader::take_word() {
  auto space = line_.find(' ');
  auto out = line_.substr(0, space);
  line_ = space == std::string_view::npos ? std::string_view{} : line_.substr(space + 1);
  return out;
}

bool state_reader::word(std::string_view expected) {
  return take_word() == expected;
}

std::optional<std::string> state_reader::hex() {
  auto digits = take_word();
  if (digits == "-")
    return std::string{};
  if (digits.empty() || digits.size() % 2 != 0)
    return std::nullopt;
  std::string out;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    if (error != std::errc{} || end != digits.data() + i + 2)
      return std::nullopt;
    out += static_cast<char>(value);
  }
  return out;
}

std::optional<wide> state_reader::number() {
  auto digits = take_word();
  bool negative = digits.starts_with('-');
  if (negative)
    digits.remove_prefix(1);
  if (digits.empty() || digits.size() > 36)
    return std::nullopt;
  wide out = 0;
  for (char c : digits) {
    if (c < '0' || c > '9')
      return std::nullopt;
    out = out * 10 + (c - '0');
  }
  return negative ? -out : out;
}

std::optional<uint64_t> state_reader::natural(uint64_t max) {
  auto value = number();
  if (!value || *value < 0 || *value > wide{max})
    return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<std::string_view> state_reader::block(size_t bytes) {
  if (!line_.empty() || bytes >= text_.size() || text_[bytes] != '\n')
    return std::nullopt;
  auto out = text_.substr(0, bytes);
  text_.remove_prefix(bytes + 1);
  return out;
}

failure state_reader::damaged() const {
  return {errc::invalid_input,
    fmt::format("this is not the saved state of lease policy '{}': {}", policy_.substr(0, 80),
      whole_line_.empty() ? "it ends too early" : whole_line_.substr(0, 80))};
}

} // namespace gristmill
