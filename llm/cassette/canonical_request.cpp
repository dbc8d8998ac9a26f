#include "llm/cassette/canonical_request.hpp"

#include "journal/hash.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace gristmill {

namespace {

ordered_json without_secrets(
  const ordered_json& from, const redactor& secrets, redaction_count* count) {
  if (from.is_string())
    return secrets.redact(from.get_ref<const std::string&>(), count);
  if (from.is_array()) {
    auto out = ordered_json::array();
    for (const auto& each : from)
      out.push_back(without_secrets(each, secrets, count));
    return out;
  }
  if (from.is_object()) {
    auto out = ordered_json::object();
    for (const auto& [key, value] : from.items())
      out[secrets.redact(key, count)] = without_secrets(value, secrets, count);
    return out;
  }
  return from;
}

/// Through the kind of object that sorts its keys.
ordered_json sorted(const ordered_json& from) {
  return ordered_json(nlohmann::json(from));
}

void add_lines(const std::string& path, std::string_view text, std::vector<std::string>& lines) {
  const auto first = text.find('\n');
  lines.push_back(fmt::format("{}: {}", path, text.substr(0, first)));
  while (text.find('\n') != std::string_view::npos) {
    text.remove_prefix(text.find('\n') + 1);
    lines.emplace_back(text.substr(0, text.find('\n')));
  }
}

void add_lines(
  const std::string& path, const ordered_json& value, std::vector<std::string>& lines) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items())
      add_lines(join_path(path, key), member, lines);
  } else if (value.is_array() && !value.empty()) {
    for (size_t i = 0; i < value.size(); ++i)
      add_lines(join_path(path, std::to_string(i)), value[i], lines);
  } else if (value.is_string()) {
    add_lines(path, std::string_view(value.get_ref<const std::string&>()), lines);
  } else {
    lines.push_back(fmt::format("{}: {}", path, value.dump()));
  }
}

/// At most `width` bytes of the line from a little before `from`, whole characters, on one line.
std::string cut(std::string_view line, size_t from, size_t width) {
  constexpr size_t lead = 24;
  auto begin = from > lead && line.size() > width ? from - lead : 0;
  const auto inside_character = [&](size_t at) {
    return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80;
  };
  while (inside_character(begin))
    --begin;
  auto end = std::min(line.size(), begin + width);
  while (end > begin && inside_character(end))
    --end;
  // Control characters made visible; without the quotes around.
  const auto quoted = excerpt(line.substr(begin, end - begin), width);
  const auto out = quoted.substr(1, quoted.size() - 2);
  return (begin > 0 ? "…" : "") + out + (end < line.size() ? "…" : "");
}

size_t first_difference(std::string_view a, std::string_view b) {
  return static_cast<size_t>(
    std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

struct changed_lines {
  std::vector<std::string> gone;
  std::vector<std::string> come;
};

/// The lines outside a longest common subsequence, in groups that stand in one place.
std::vector<changed_lines> changes(std::span<const std::string> a, std::span<const std::string> b) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    a = a.subspan(1);
    b = b.subspan(1);
  }
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a = a.first(a.size() - 1);
    b = b.first(b.size() - 1);
  }
  // The table below has as many places as the product. Two requests that differ in so much are
  // shown from their first difference on.
  constexpr size_t lines_max = 1500;
  a = a.first(std::min(a.size(), lines_max));
  b = b.first(std::min(b.size(), lines_max));
  const auto width = b.size() + 1;
  std::vector<uint16_t> common((a.size() + 1) * width, 0);
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i * width + j] = a[i] == b[j]
        ? static_cast<uint16_t>(common[(i + 1) * width + j + 1] + 1)
        : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  std::vector<changed_lines> out;
  bool fresh = true;
  const auto group = [&]() -> changed_lines& {
    if (std::exchange(fresh, false))
      out.emplace_back();
    return out.back();
  };
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i;
      ++j;
      fresh = true;
    } else if (j == b.size()
      || (i < a.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      group().gone.push_back(a[i++]);
    } else {
      group().come.push_back(b[j++]);
    }
  }
  return out;
}

} // namespace

canonical_request canonical(const http_call& call, std::span<const std::string> volatile_fields,
  const redactor& secrets, redaction_count* count) {
  canonical_request out;
  out.url = secrets.redact_url(call.url, count);
  if (auto body = parse_json(call.body, "body"); body && !body->is_null()) {
    if (body->is_object())
      for (const auto& field : volatile_fields)
        body->erase(field);
    out.json = sorted(without_secrets(*body, secrets, count));
    out.hash = sha256_hex(fmt::format("{}\njson\n{}", out.url, out.json.dump()));
  } else {
    out.text = secrets.redact(call.body, count);
    out.hash = sha256_hex(fmt::format("{}\ntext\n{}", out.url, out.text));
  }
  return out;
}

std::vector<std::string> lines_of(const canonical_request& request) {
  std::vector<std::string> out{"url: " + request.url};
  if (request.json.is_null())
    add_lines("body", std::string_view(request.text), out);
  else
    add_lines("", request.json, out);
  return out;
}

size_t likeness(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string_view> left(a.begin(), a.end());
  std::vector<std::string_view> right(b.begin(), b.end());
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  std::vector<std::string_view> both;
  std::set_intersection(
    left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
  size_t bytes = 0;
  for (const auto line : both)
    bytes += line.size() + 1;
  return bytes;
}

std::string short_diff(
  const std::vector<std::string>& recorded, const std::vector<std::string>& wanted, size_t most) {
  constexpr size_t width = 120;
  std::string out;
  size_t shown = 0;
  size_t left_out = 0;
  const auto show = [&](char sign, const std::string& line, size_t from) {
    if (shown++ < most)
      out += fmt::format("{} {}\n", sign, cut(line, from, width));
    else
      ++left_out;
  };
  for (const auto& [gone, come] : changes(recorded, wanted)) {
    const auto pairs = std::min(gone.size(), come.size());
    for (size_t i = 0; i < std::max(gone.size(), come.size()); ++i) {
      const auto from = i < pairs ? first_difference(gone[i], come[i]) : 0;
      if (i < gone.size())
        show('-', gone[i], from);
      if (i < come.size())
        show('+', come[i], from);
    }
  }
  if (left_out > 0)
    out += fmt::format("({} more lines differ)\n", left_out);
  return out;
}

} // namespace gristmill
