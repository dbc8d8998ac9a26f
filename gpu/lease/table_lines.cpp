#include "gpu/lease/table_lines.hpp"

#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

} // namespace

lease_line& lease_line::add(const std::string& key, const std::string& text) {
  fields_[key] = json_text(text);
  return *this;
}

lease_line& lease_line::add(const std::string& key, uint64_t number) {
  fields_[key] = fmt::format("{}", number);
  return *this;
}

lease_line& lease_line::add(const std::string& key, nanoseconds time) {
  fields_[key] = fmt::format("{}", time.count());
  return *this;
}

lease_line& lease_line::add_if(const std::string& key, const std::string& text) {
  return text.empty() ? *this : add(key, text);
}

std::string lease_line::text() const {
  std::string out = "{";
  for (const auto& [key, value] : fields_)
    out += fmt::format("{}{}:{}", out.size() == 1 ? "" : ",", json_text(key), value);
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
