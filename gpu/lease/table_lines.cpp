#include "gpu/lease/table_lines.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

void add_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  out += '"';
}

} // namespace

lease_line& lease_line::add(std::string_view key, const std::string& text) {
  auto begin = values_.size();
  add_json_text(values_, text);
  fields_.at(count_++) = {key, begin, values_.size()};
  return *this;
}

template <class Number>
lease_line& lease_line::add_number(std::string_view key, Number number) {
  auto begin = values_.size();
  values_ += fmt::format_int(number).c_str();
  fields_.at(count_++) = {key, begin, values_.size()};
  return *this;
}

lease_line& lease_line::add(std::string_view key, uint64_t number) {
  return add_number(key, number);
}

lease_line& lease_line::add(std::string_view key, nanoseconds time) {
  return add_number(key, time.count());
}

lease_line& lease_line::add_if(std::string_view key, const std::string& text) {
  return text.empty() ? *this : add(key, text);
}

std::string lease_line::text() const {
  auto sorted = fields_;
  std::sort(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(count_),
    [](const field& a, const field& b) { return a.key < b.key; });
  std::string out = "{";
  out.reserve(values_.size() + 24 * count_ + 2);
  for (size_t i = 0; i < count_; ++i) {
    if (i != 0)
      out += ',';
    add_json_text(out, sorted[i].key);
    out += ':';
    out.append(values_, sorted[i].begin, sorted[i].end - sorted[i].begin);
  }
  return out + "}";
}

lease_line describe(const waiter& who, uint64_t request) {
  return lease_line{}
    .add("agent", who.flow.agent)
    .add("class", to_string(who.what))
    .add("request", request)
    .add("ticket", who.ticket);
}

double in_seconds(nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

} // namespace gristmill
