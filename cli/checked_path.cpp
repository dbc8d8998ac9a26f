#include "cli/checked_path.hpp"

#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// A folder with more entries than this is not searched for a misspelling.
constexpr size_t neighbours_max = 4096;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes ":12" off the front; 0 when there is no number.
size_t take_number(std::string_view& text) {
  if (text.size() < 2 || text[0] != ':' || !is_digit(text[1]))
    return 0;
  size_t value = 0;
  size_t i = 1;
  for (; i < text.size() && is_digit(text[i]) && i < 12; ++i)
    value = value * 10 + static_cast<size_t>(text[i] - '0');
  text.remove_prefix(i);
  return value;
}

reader_message split_message(std::string_view text, const std::string& file) {
  reader_message out;
  out.file = file;
  if (!text.starts_with(file)) {
    out.rule = text;
    return out;
  }
  auto rest = text.substr(file.size());
  out.line = take_number(rest);
  take_number(rest); // The column, which is for people.
  if (!rest.starts_with(": ")) {
    out.line = 0;
    out.rule = text;
    return out;
  }
  rest.remove_prefix(2);
  // A field is one word, such as `inputs.x.dtype`.
  if (const size_t colon = rest.find(": "); colon != std::string_view::npos && colon > 0) {
    const auto word = rest.substr(0, colon);
    if (word.find_first_of(" \t`\"") == std::string_view::npos) {
      out.field = word;
      rest.remove_prefix(colon + 2);
    }
  }
  out.rule = rest;
  return out;
}

nlohmann::ordered_json messages_to_json(const std::vector<reader_message>& messages) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& each : messages) {
    nlohmann::ordered_json row{{"file", each.file}};
    row["line"] = each.line == 0 ? nlohmann::ordered_json{} : nlohmann::ordered_json(each.line);
    row["field"] =
      each.field.empty() ? nlohmann::ordered_json{} : nlohmann::ordered_json(each.field);
    row["rule"] = each.rule;
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, code), end;
       !code && at != end && names.size() < neighbours_max; at.increment(code))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace

std::string reader_message::text() const {
  std::string out = file;
  if (line != 0)
    out += fmt::format(":{}", line);
  if (!field.empty())
    out += fmt::format(": {}", field);
  if (rule.starts_with(file))
    return rule;
  return out + ": " + rule;
}

std::vector<reader_message> split_messages(std::string_view text, const std::string& file) {
  std::vector<reader_message> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0)
      out.push_back(split_message(text.substr(0, end), file));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void checked_path::refuse(const failure& why, const std::string& file) {
  for (auto& each : split_messages(why.what, file))
    errors.push_back(std::move(each));
}

void checked_path::warn(const std::vector<std::string>& texts, const std::string& file) {
  for (const auto& text : texts)
    for (auto& each : split_messages(text, file))
      warnings.push_back(std::move(each));
}

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c != '\n' && (byte < 0x20 || byte == 0x7f))
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

void print_json(const nlohmann::ordered_json& document) {
  const auto text =
    document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  std::fputs(text.c_str(), stdout);
}

nlohmann::ordered_json checked_to_json(const checked_path& checked) {
  nlohmann::ordered_json row{
    {"path", checked.path}, {"kind", checked.kind}, {"ok", checked.errors.empty()}};
  row.update(checked.facts);
  row["errors"] = messages_to_json(checked.errors);
  row["warnings"] = messages_to_json(checked.warnings);
  return row;
}

exit_code print_checked(const std::vector<checked_path>& all, bool json) {
  const bool fine =
    std::all_of(all.begin(), all.end(), [](const auto& each) { return each.errors.empty(); });
  if (json) {
    auto rows = nlohmann::ordered_json::array();
    for (const auto& each : all)
      rows.push_back(checked_to_json(each));
    print_json({{"ok", fine}, {"files", std::move(rows)}});
    return fine ? exit_code::ok : exit_code::usage;
  }
  for (const auto& each : all) {
    for (const auto& warning : each.warnings)
      std::fprintf(stderr, "gristmill: warning: %s\n", printable(warning.text()).c_str());
    for (const auto& error : each.errors)
      std::fprintf(stderr, "gristmill: %s\n", printable(error.text()).c_str());
    const auto line =
      fmt::format("{:<8} {}  {}{}\n", each.errors.empty() ? "ok" : "refused", printable(each.path),
        printable(each.kind), each.summary.empty() ? "" : ", " + printable(each.summary));
    std::fputs(line.c_str(), stdout);
  }
  return fine ? exit_code::ok : exit_code::usage;
}

void hint_other_kind(std::string_view text, document_kind expected, checked_path& refused) {
  const auto articled = [](document_kind kind) {
    return kind == document_kind::workloads ? std::string(name(kind))
                                            : "a " + std::string(name(kind));
  };
  const auto found = recognise_document(text);
  if (!found || *found == expected)
    return;
  refused.warnings.clear();
  refused.errors = {{refused.path, 0, "",
    fmt::format("by its keys this is {}, not {}; see `gristmill {} check`", articled(*found),
      articled(expected), *found == document_kind::solution ? "solution" : "problem")}};
}

failure missing_path(const fs::path& path) {
  std::error_code code;
  // Up to the first component that is not there.
  fs::path wrong = path;
  if (!wrong.has_filename())
    wrong = wrong.parent_path();
  while (wrong.has_parent_path() && wrong.parent_path() != wrong
    && !fs::exists(wrong.parent_path(), code))
    wrong = wrong.parent_path();
  std::string near;
  const auto folder = wrong.parent_path();
  if (const auto found = nearest(wrong.filename().string(), names_in(folder)))
    near = fmt::format("; did you mean `{}`?", (folder / *found).string());
  if (wrong == path || wrong / "" == path)
    return {errc::not_found, fmt::format("{}: no such file or folder{}", path.string(), near)};
  return {errc::not_found,
    fmt::format(
      "{}: no such file or folder: there is no {}{}", path.string(), wrong.string(), near)};
}

std::optional<failure> unreadable(const fs::path& path, std::string_view ending) {
  std::error_code code;
  const auto status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found)
    return missing_path(path);
  if (status.type() == fs::file_type::none || status.type() == fs::file_type::unknown)
    return failure{errc::io_failed, fmt::format("{}: {}", path.string(), code.message())};
  if (fs::is_directory(status)) {
    std::string would_do;
    for (const auto& each : names_in(path))
      if (each.ends_with(ending))
        would_do += (would_do.empty() ? "; did you mean `" : "`, `") + (path / each).string();
    if (!would_do.empty())
      would_do += "`?";
    return failure{errc::invalid_input,
      fmt::format("{}: a folder, where a file is expected{}", path.string(), would_do)};
  }
  if (!fs::is_regular_file(status))
    return failure{errc::invalid_input, fmt::format("{}: not a regular file", path.string())};
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return failure{errc::io_failed, fmt::format("{}: cannot be opened", path.string())};
  std::array<char, 4096> head{};
  in.read(head.data(), head.size());
  const auto end = head.begin() + in.gcount();
  if (const auto zero = std::find(head.begin(), end, '\0'); zero != end)
    return failure{errc::invalid_input,
      fmt::format("{}: a binary file (a zero byte at offset {}), where JSON text is expected",
        path.string(), zero - head.begin())};
  return std::nullopt;
}

} // namespace gristmill
