#include "fuzz/mutate.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

namespace gristmill::fuzz {

namespace {

const char* const numbers[] = {"0", "-0", "1", "-1", "2147483647", "2147483648", "-2147483649",
  "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808",
  "-9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e18", "1e19", "1e308",
  "1e309", "-1e309", "1e-320", "0.5", "1e999999999", "0x7fffffffffffffff", "1_000", "007",
  "9**9**9", "111111111111111111111111111111111111111111111111111111111111111111111111"};

const char* const values[] = {"null", "true", "false", "{}", "[]", "\"\"", "\" \"", "NaN",
  "Infinity", "-Infinity", "\"nan\"", "\"inf\"", "\"..\"", "\"/\"", "\"\\u0000\"", "\"\\ud800\"",
  "[null]", "{\"\":null}", "\"1e308\"", "\"-1\""};

size_t piece_of(const std::string& text, dice& rolls, size_t most) {
  return 1 + rolls.below(std::min(text.size(), most));
}

/// Begin and length of a run of the characters that `belongs` takes, around a place drawn at
/// random; the length is 0 when there is none there.
template <class Belongs>
std::pair<size_t, size_t> run_of(const std::string& text, dice& rolls, Belongs belongs) {
  if (text.empty())
    return {0, 0};
  size_t begin = rolls.below(text.size());
  for (size_t i = 0; i < text.size() && !belongs(text[begin]); ++i)
    begin = (begin + 1) % text.size();
  if (!belongs(text[begin]))
    return {0, 0};
  while (begin > 0 && belongs(text[begin - 1]))
    --begin;
  size_t end = begin;
  while (end < text.size() && belongs(text[end]))
    ++end;
  return {begin, end - begin};
}

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The value that begins after a colon or a comma, up to the next delimiter.
std::pair<size_t, size_t> value_in(const std::string& text, dice& rolls) {
  return run_of(text, rolls,
    [](char c) { return std::string_view{",:{}[]\n"}.find(c) == std::string_view::npos; });
}

void change(std::string& text, const std::vector<std::string>& seeds, dice& rolls) {
  const size_t at = rolls.below(text.size() + 1);
  const size_t inside = rolls.below(text.size());
  switch (rolls.below(12)) {
  case 0:
    if (!text.empty())
      text[inside] = static_cast<char>(text[inside] ^ (1 << rolls.below(8)));
    break;
  case 1:
    if (!text.empty())
      text[inside] = static_cast<char>(rolls.next());
    break;
  case 2:
    text.insert(at, 1, static_cast<char>(rolls.next()));
    break;
  case 3:
    text.resize(at);
    break;
  case 4:
    if (!text.empty())
      text.erase(inside, piece_of(text, rolls, 64));
    break;
  case 5: {
    const auto piece = text.substr(at, piece_of(text, rolls, 256));
    for (size_t times = 1 + rolls.below(40); times > 0 && text.size() < 1 << 16; --times)
      text.insert(at, piece);
    break;
  }
  case 6: {
    const auto& other = seeds[rolls.below(seeds.size())];
    const size_t from = rolls.below(other.size() + 1);
    text.insert(at, other.substr(from, rolls.below(other.size() + 1)));
    break;
  }
  case 7: {
    const auto [begin, length] = run_of(text, rolls, is_digit);
    text.replace(begin, length, numbers[rolls.below(std::size(numbers))]);
    break;
  }
  case 8: {
    const auto [begin, length] = value_in(text, rolls);
    text.replace(begin, length, values[rolls.below(std::size(values))]);
    break;
  }
  case 9: {
    // A value where another one was: the same words in the wrong places.
    const auto [from, count] = value_in(text, rolls);
    const auto word = text.substr(from, count);
    const auto [begin, length] = value_in(text, rolls);
    text.replace(begin, length, word);
    break;
  }
  case 10: {
    const char* const openers[] = {"[", "{\"a\":", "(", "-", "\"", "1+"};
    const char* opener = openers[rolls.below(std::size(openers))];
    std::string many;
    for (size_t times = 50 + rolls.below(2000); times > 0; --times)
      many += opener;
    text.insert(at, many);
    break;
  }
  default: {
    const auto& other = seeds[rolls.below(seeds.size())];
    text = text.substr(0, at) + other.substr(rolls.below(other.size() + 1));
    break;
  }
  }
}

} // namespace

uint64_t dice::next() {
  // SplitMix64: a counter, well mixed.
  state_ += 0x9e3779b97f4a7c15ULL;
  uint64_t word = state_;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

std::string mutated(
  std::string text, const std::vector<std::string>& seeds, dice& rolls, size_t bytes_max) {
  for (size_t changes = 1 + rolls.below(4); changes > 0; --changes)
    change(text, seeds, rolls);
  if (text.size() > bytes_max)
    text.resize(bytes_max);
  return text;
}

} // namespace gristmill::fuzz
