#include "gpu/mock/ptx/printed_text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace gristmill::ptx {
namespace {

constexpr size_t call_bytes_max = 4096;
constexpr size_t string_bytes_max = 1024;
constexpr int width_max = 256;

std::string string_at(memory_reader& memory, uint64_t address) {
  std::string text;
  char c = 0;
  while (text.size() < string_bytes_max && memory.read(address + text.size(), &c, 1) && c != 0)
    text += c;
  return text;
}

/// Walks through the buffer of arguments.
class arguments {
public:
  arguments(memory_reader& memory, uint64_t address) : memory_(memory), next_(address) {}

  template <class T>
  T take() {
    next_ = (next_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (!memory_.read(next_, &value, sizeof(T)))
      value = T{};
    next_ += sizeof(T);
    return value;
  }

private:
  memory_reader& memory_;
  uint64_t next_;
};

/// One conversion, taken apart; `text` is the specification without its length.
struct conversion {
  std::string flags;
  int width = -1;
  int precision = -1;
  int longs = 0;
  char letter = 0;
};

/// From behind the percent sign; where it ends.
size_t read_conversion(const std::string& format, size_t at, arguments& given, conversion& out) {
  const auto here = [&] { return at < format.size() ? format[at] : char{0}; };
  while (std::string_view("-+ #0").find(here()) != std::string_view::npos && here() != 0)
    out.flags += format[at++];
  const auto number = [&](int& value) {
    if (here() == '*') {
      value = std::clamp(given.take<int32_t>(), -width_max, width_max);
      ++at;
      return;
    }
    while (here() >= '0' && here() <= '9')
      value = std::min(width_max, std::max(value, 0) * 10 + (format[at++] - '0'));
  };
  number(out.width);
  if (here() == '.') {
    ++at;
    out.precision = 0;
    number(out.precision);
  }
  while (here() == 'h' || here() == 'l' || here() == 'z' || here() == 'j' || here() == 't')
    out.longs += format[at++] == 'h' ? 0 : 1;
  out.letter = here();
  return out.letter == 0 ? at : at + 1;
}

template <class T>
std::string print_one(const conversion& c, const char* length, T value) {
  std::string specification = "%" + c.flags;
  if (c.width >= 0)
    specification += std::to_string(c.width);
  if (c.precision >= 0)
    specification += "." + std::to_string(c.precision);
  specification += length;
  specification += c.letter;
  std::array<char, 1024> buffer{};
// The specification is put together from parts that are known to be right.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  const int size = std::snprintf(buffer.data(), buffer.size(), specification.c_str(), value);
#pragma GCC diagnostic pop
  return std::string(
    buffer.data(), static_cast<size_t>(std::clamp<int>(size, 0, buffer.size() - 1)));
}

std::string converted(memory_reader& memory, const conversion& c, arguments& given) {
  switch (c.letter) {
  case 'd':
  case 'i':
    return print_one(c, "ll",
      c.longs > 0 ? static_cast<long long>(given.take<int64_t>())
                  : static_cast<long long>(given.take<int32_t>()));
  case 'u':
  case 'o':
  case 'x':
  case 'X':
    return print_one(c, "ll",
      c.longs > 0 ? static_cast<unsigned long long>(given.take<uint64_t>())
                  : static_cast<unsigned long long>(given.take<uint32_t>()));
  case 'c':
    return print_one(c, "", static_cast<int>(given.take<int32_t>()));
  case 's': {
    const std::string text = string_at(memory, given.take<uint64_t>());
    return print_one(c, "", text.c_str());
  }
  case 'p':
    return print_one(c, "", reinterpret_cast<void*>(given.take<uint64_t>()));
  case 'e':
  case 'E':
  case 'f':
  case 'F':
  case 'g':
  case 'G':
  case 'a':
  case 'A':
    return print_one(c, "", given.take<double>());
  default:
    return std::string("%") + c.letter;
  }
}

} // namespace

void printed_text::add(std::string_view text) {
  const uint64_t room = bytes_max_ - std::min<uint64_t>(bytes_max_, text_.size());
  text_ += text.substr(0, room);
  left_out_ += text.size() - std::min<uint64_t>(room, text.size());
}

std::string format_printed(memory_reader& memory, uint64_t format_address, uint64_t at) {
  const std::string format = string_at(memory, format_address);
  arguments given(memory, at);
  std::string out;
  for (size_t i = 0; i < format.size() && out.size() < call_bytes_max;) {
    if (format[i] != '%') {
      out += format[i++];
    } else if (i + 1 < format.size() && format[i + 1] == '%') {
      out += '%';
      i += 2;
    } else {
      conversion c;
      i = read_conversion(format, i + 1, given, c);
      if (c.letter == 0)
        break;
      out += converted(memory, c, given);
    }
  }
  out.resize(std::min(out.size(), call_bytes_max));
  return out;
}

} // namespace gristmill::ptx
