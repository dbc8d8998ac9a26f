#include "gpu/mock/ptx/numbers.hpp"

#include "gpu/mock/ptx/error.hpp"

#include <bit>
#include <charconv>
#include <string>

namespace gristmill::ptx {
namespace {

[[noreturn]] void bad_number(std::string_view text, int line) {
  refuse(line, "'" + std::string(text.substr(0, 40)) + "' is not a number that PTX has");
}

uint64_t whole(std::string_view digits, int base, std::string_view text, int line) {
  uint64_t value = 0;
  const auto [end, error] =
    std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
    bad_number(text, line);
  return value;
}

} // namespace

literal read_literal(std::string_view text, int line) {
  literal result;
  const char mark = text.size() > 1 && text[0] == '0' ? text[1] : ' ';
  if (mark == 'f' || mark == 'F' || mark == 'd' || mark == 'D') {
    const bool is_double = mark == 'd' || mark == 'D';
    if (text.size() != (is_double ? 18U : 10U))
      bad_number(text, line);
    result.is_float = true;
    result.float_bits = is_double ? 64 : 32;
    result.bits = whole(text.substr(2), 16, text, line);
    result.value = is_double
      ? std::bit_cast<double>(result.bits)
      : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(result.bits)));
    return result;
  }
  if (text.find_first_of(".eE") != std::string_view::npos && mark != 'x' && mark != 'X') {
    result.is_float = true;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.value);
    if (error != std::errc{} || end != text.data() + text.size())
      bad_number(text, line);
    return result;
  }
  std::string_view digits = text;
  if (!digits.empty() && digits.back() == 'U')
    digits.remove_suffix(1);
  if (mark == 'x' || mark == 'X')
    result.bits = whole(digits.substr(2), 16, text, line);
  else if (mark == 'b' || mark == 'B')
    result.bits = whole(digits.substr(2), 2, text, line);
  else if (digits.size() > 1 && digits[0] == '0')
    result.bits = whole(digits.substr(1), 8, text, line);
  else
    result.bits = whole(digits, 10, text, line);
  result.value = static_cast<double>(result.bits);
  return result;
}

uint64_t read_integer(std::string_view text, uint64_t max, int line) {
  const literal number = read_literal(text, line);
  if (number.is_float)
    bad_number(text, line);
  if (number.bits > max)
    refuse(line, std::string(text) + " is more than " + std::to_string(max));
  return number.bits;
}

} // namespace gristmill::ptx
