#include "gpu/lease/table_lines.hpp"

#include "gpu/lease/class_word.hpp"

#include <cassert>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

void add_json_text(std::string& out, std::string_view text) {
  out += '"';
  size_t written = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\')
      continue;
    // What needs no escape goes in pieces: mostly the whole text at once.
    out.append(text, written, i - written);
    written = i + 1;
    if (c < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += '\\';
      out += static_cast<char>(c);
    }
  }
  out.append(text, written);
  out += '"';
}

template <class Number>
void add_number(std::string& out, Number number) {
  fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

} // namespace

lease_line& lease_line::add(
  std::string_view key, field_kind kind, const char* text, uint64_t value) {
  assert(count_ < fields_max);
  // Most come in order already.
  auto at = count_++;
  for (; at > 0 && key < std::string_view{fields_[at - 1].key, fields_[at - 1].key_bytes}; --at)
    fields_[at] = fields_[at - 1];
  fields_[at] = {key.data(), text, value, static_cast<uint32_t>(key.size()), kind};
  return *this;
}

lease_line& lease_line::add(std::string_view key, std::string_view text) {
  return add(key, field_kind::text, text.data(), text.size());
}

lease_line& lease_line::add(std::string_view key, uint64_t number) {
  return add(key, field_kind::natural, nullptr, number);
}

lease_line& lease_line::add(std::string_view key, nanoseconds time) {
  return add(key, field_kind::time, nullptr, static_cast<uint64_t>(time.count()));
}

lease_line& lease_line::add_if(std::string_view key, std::string_view text) {
  return text.empty() ? *this : add(key, text);
}

std::string lease_line::text() const {
  // Quotes, colon and comma, and the longest number.
  constexpr size_t around = 4;
  constexpr size_t number_bytes = 20;
  size_t bytes = 2;
  for (size_t i = 0; i < count_; ++i) {
    const auto& f = fields_[i];
    bytes += around + f.key_bytes;
    bytes += f.kind == field_kind::text ? f.value + 2 : number_bytes;
  }
  std::string out;
  out.reserve(bytes);
  out += '{';
  for (size_t i = 0; i < count_; ++i) {
    const auto& f = fields_[i];
    if (i != 0)
      out += ',';
    out += '"';
    out.append(f.key, f.key_bytes);
    out += "\":";
    switch (f.kind) { // no default: the compiler reports a missing case
    case field_kind::text:
      add_json_text(out, {f.text, f.value});
      break;
    case field_kind::natural:
      add_number(out, f.value);
      break;
    case field_kind::time:
      add_number(out, static_cast<int64_t>(f.value));
      break;
    }
  }
  out += '}';
  return out;
}

lease_line describe(const waiter& who, uint64_t request) {
  lease_line out;
  out.add("agent", std::string_view{who.flow.agent})
    .add("class", class_word(who.what))
    .add("request", request)
    .add("ticket", who.ticket);
  return out;
}

double in_seconds(nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

} // namespace gristmill
