#include "protocol/docs_search.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

constexpr size_t left_out_max = 100;
constexpr size_t question_bytes_max = 400;
constexpr size_t word_bytes_max = 64;
/// A word of a heading says more than one of the text.
constexpr uint32_t heading_weight = 3;

enum class file_kind : uint8_t { none, markdown, rst, html, code, plain };

file_kind kind_of(const fs::path& file) {
  auto ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
    [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending == ".md")
    return file_kind::markdown;
  if (ending == ".rst")
    return file_kind::rst;
  if (ending == ".html" || ending == ".htm")
    return file_kind::html;
  if (ending == ".txt")
    return file_kind::plain;
  for (const char* code : {".py", ".h", ".hpp", ".cu", ".cuh"})
    if (ending == code)
      return file_kind::code;
  return file_kind::none;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    out.push_back(std::move(line));
  }
  return out;
}

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t") == std::string::npos;
}

std::string trimmed(const std::string& text) {
  auto begin = text.find_first_not_of(" \t");
  auto end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? std::string{} : text.substr(begin, end - begin + 1);
}

/// "create_tiled_copy" gives itself, create, tiled and copy; "TiledMma" gives tiledmma, tiled and
/// mma. An s at the end of a longer word is dropped: one tile is what many tiles are.
void add_word(std::vector<std::string>& out, std::string_view word) {
  if (word.empty() || word.size() > word_bytes_max)
    return;
  auto keep = [&](std::string_view part) {
    std::string lower;
    for (char c : part)
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower.size() > 3 && lower.back() == 's' && lower[lower.size() - 2] != 's')
      lower.pop_back();
    if (lower.size() >= 2)
      out.push_back(std::move(lower));
  };
  keep(word);
  size_t begin = 0;
  size_t parts = 0;
  auto cut = [&](size_t end) {
    auto part = word.substr(begin, end - begin);
    if (part.size() >= 2 && part.size() < word.size()) {
      keep(part);
      ++parts;
    }
  };
  for (size_t i = 1; i < word.size(); ++i) {
    auto c = static_cast<unsigned char>(word[i]);
    auto before = static_cast<unsigned char>(word[i - 1]);
    if (c == '_') {
      cut(i);
      begin = i + 1;
    } else if (std::isupper(c) && std::islower(before)) {
      cut(i);
      begin = i;
    }
  }
  if (begin > 0 && begin < word.size())
    cut(word.size());
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    bool inside =
      i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
    if (inside)
      continue;
    add_word(out, text.substr(begin, i - begin));
    begin = i + 1;
  }
  return out;
}

/// What stands between the tags; tags become nothing, their line ends stay, so that lines count on.
/// A heading becomes a line of Markdown.
std::string without_tags(const std::string& html) {
  std::string out;
  static constexpr std::array<std::pair<std::string_view, char>, 6> entities{{{"&lt;", '<'},
    {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&nbsp;", ' '}}};
  std::string skip_until;
  for (size_t i = 0; i < html.size(); ++i) {
    if (html[i] == '<') {
      auto end = html.find('>', i);
      if (end == std::string::npos)
        end = html.size() - 1;
      std::string tag;
      for (size_t k = i + 1; k < end && tag.size() < 12; ++k)
        tag += static_cast<char>(std::tolower(static_cast<unsigned char>(html[k])));
      auto is = [&](std::string_view name) {
        return tag.starts_with(name)
          && (tag.size() == name.size()
            || !std::isalnum(static_cast<unsigned char>(tag[name.size()])));
      };
      for (const char* hidden : {"script", "style"})
        if (skip_until.empty() && is(hidden))
          skip_until = std::string("/") + hidden;
      if (!skip_until.empty() && is(skip_until))
        skip_until.clear();
      if (tag.size() >= 2 && tag[0] == 'h' && tag[1] >= '1' && tag[1] <= '6'
        && is(tag.substr(0, 2)))
        out += std::string(static_cast<size_t>(tag[1] - '0'), '#') + ' ';
      out.append(static_cast<size_t>(std::count(html.begin() + static_cast<std::ptrdiff_t>(i),
                   html.begin() + static_cast<std::ptrdiff_t>(end) + 1, '\n')),
        '\n');
      i = end;
      continue;
    }
    if (!skip_until.empty()) {
      if (html[i] == '\n')
        out += '\n';
      continue;
    }
    if (html[i] == '&') {
      auto entity = std::find_if(entities.begin(), entities.end(),
        [&](const auto& e) { return html.compare(i, e.first.size(), e.first) == 0; });
      if (entity != entities.end()) {
        out += entity->second;
        i += entity->first.size() - 1;
        continue;
      }
    }
    out += html[i];
  }
  return out;
}

/// Level and text of a Markdown heading; level 0 for none.
std::pair<size_t, std::string> markdown_heading(const std::string& line) {
  auto level = line.find_first_not_of('#');
  if (level == 0 || level == std::string::npos || level > 6 || line[level] != ' ')
    return {0, {}};
  return {level, trimmed(line.substr(level))};
}

bool is_underline(const std::string& line) {
  return line.size() >= 3 && line.find_first_not_of(line[0]) == std::string::npos
    && std::ispunct(static_cast<unsigned char>(line[0]));
}

bool declares(const std::string& line) {
  for (const char* word : {"def ", "class ", "struct ", "async def ", "namespace ", "enum "})
    if (line.starts_with(word))
      return true;
  return false;
}

/// Which heading a passage stands under.
class heading_path {
public:
  void set(size_t level, std::string text) {
    while (!path_.empty() && path_.back().first >= level)
      path_.pop_back();
    path_.emplace_back(level, std::move(text));
  }
  std::string text() const {
    std::string out;
    for (const auto& [level, name] : path_)
      out += (out.empty() ? "" : " > ") + name;
    return out;
  }

private:
  std::vector<std::pair<size_t, std::string>> path_;
};

bool lies_in(const fs::path& file, const fs::path& folder) {
  auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end();
}

} // namespace

result<docs_index> docs_index::read(const fs::path& folder, docs_limits limits) {
  std::error_code error;
  auto root = fs::canonical(folder, error);
  if (error || !fs::is_directory(root, error))
    return fail(errc::not_found, folder.string() + ": no such folder");
  docs_index out;
  auto leave_out = [&](const std::string& name, const std::string& why) {
    if (out.left_out_.size() < left_out_max)
      out.left_out_.push_back(name + ": " + why);
  };
  std::vector<fs::path> files;
  for (auto it = fs::recursive_directory_iterator(
         root, fs::directory_options::skip_permission_denied, error);
       it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (error)
      return fail(errc::io_failed, folder.string() + ": " + error.message());
    const auto& path = it->path();
    if (path.filename().string().starts_with(".")) {
      it.disable_recursion_pending();
      continue;
    }
    auto name = path.lexically_relative(root).string();
    std::error_code ignored;
    if (it->is_symlink(ignored)) {
      auto target = fs::canonical(path, ignored);
      if (ignored || !lies_in(target, root)) {
        leave_out(name, "leads out of the folder");
        continue;
      }
      if (fs::is_directory(target, ignored))
        continue; // What it leads to is read where it lies.
    }
    if (fs::is_regular_file(path, ignored) && kind_of(path) != file_kind::none)
      files.push_back(path);
    if (files.size() > limits.files)
      return fail(errc::invalid_input,
        fmt::format("{}: more than {} files to search in", folder.string(), limits.files));
  }
  if (error)
    return fail(errc::io_failed, folder.string() + ": " + error.message());
  std::sort(files.begin(), files.end());
  size_t total = 0;
  for (const auto& file : files) {
    auto name = file.lexically_relative(root).string();
    std::ifstream in(file, std::ios::binary);
    std::string text(limits.file_bytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    if (text.size() > limits.file_bytes) {
      leave_out(name, fmt::format("larger than {} bytes", limits.file_bytes));
      continue;
    }
    total += text.size();
    if (total > limits.total_bytes || out.passages_.size() > limits.passages)
      return fail(errc::invalid_input,
        fmt::format("{}: more than {} bytes or {} passages to search in", folder.string(),
          limits.total_bytes, limits.passages));
    out.add_file(name, text, limits);
    ++out.files_;
  }
  if (out.passages_.empty())
    return fail(errc::invalid_input,
      folder.string() + ": holds no text to search in (.md, .txt, .rst, .html, .py, .h, .cu)");
  return out;
}

void docs_index::add_file(
  const std::string& name, const std::string& text, const docs_limits& limits) {
  auto kind = kind_of(name);
  auto lines = lines_of(kind == file_kind::html ? without_tags(text) : text);
  heading_path headings;
  std::string body;
  size_t first = 0;
  bool fenced = false;
  auto flush = [&] {
    if (!is_blank(body))
      add_passage(name, first, headings.text(), std::move(body), limits);
    body.clear();
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto& line = lines[i];
    if (kind == file_kind::markdown && trimmed(line).starts_with("```"))
      fenced = !fenced;
    bool headed = kind == file_kind::markdown || kind == file_kind::html;
    if (auto [level, title] = markdown_heading(line); headed && !fenced && level > 0) {
      flush();
      headings.set(level, title);
      body = title + "\n";
      first = i + 1;
      continue;
    }
    if (kind == file_kind::rst && i + 1 < lines.size() && !is_blank(line) && !is_underline(line)
      && is_underline(lines[i + 1]) && lines[i + 1].size() + 2 >= line.size()) {
      flush();
      // Levels are told by the sign; their order is the author's.
      headings.set(1 + std::string_view("#*=-^\"~").find(lines[i + 1][0]) % 8, trimmed(line));
      body = trimmed(line) + "\n";
      first = i + 1;
      ++i;
      continue;
    }
    if (kind == file_kind::code && declares(line)) {
      flush();
      headings.set(1, trimmed(line));
    }
    // A short paragraph keeps the next one: an API and its sentence belong together.
    if (is_blank(line) && !fenced && body.size() > limits.passage_bytes / 4) {
      flush();
      continue;
    }
    if (body.size() + line.size() > limits.passage_bytes)
      flush();
    if (body.empty()) {
      if (is_blank(line))
        continue;
      first = i + 1;
    }
    body += line.substr(0, limits.passage_bytes) + "\n";
  }
  flush();
}

void docs_index::add_passage(const std::string& file, size_t line, const std::string& heading,
  std::string text, const docs_limits& limits) {
  if (passages_.size() > limits.passages)
    return;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.pop_back();
  std::map<std::string, uint32_t> counts;
  for (auto& word : words_of(text))
    ++counts[std::move(word)];
  for (auto& word : words_of(heading))
    counts[std::move(word)] += heading_weight;
  auto index = static_cast<uint32_t>(passages_.size());
  size_t words = 0;
  for (const auto& [word, count] : counts) {
    words_[word].push_back({index, count});
    words += count;
  }
  words_total_ += words;
  passages_.push_back({file, line, heading, std::move(text), words});
}

std::vector<docs_hit> docs_index::search(std::string_view question, size_t hits_max) const {
  // Okapi BM25 with its usual constants.
  constexpr double k1 = 1.2;
  constexpr double b = 0.75;
  auto asked = words_of(question.substr(0, question_bytes_max));
  const std::set<std::string> unique(asked.begin(), asked.end());
  const auto count = static_cast<double>(passages_.size());
  const double mean = std::max(1.0, static_cast<double>(words_total_) / std::max(1.0, count));
  std::map<uint32_t, double> scores;
  for (const auto& word : unique) {
    auto found = words_.find(word);
    if (found == words_.end())
      continue;
    const auto in = static_cast<double>(found->second.size());
    const double rare = std::log(1 + (count - in + 0.5) / (in + 0.5));
    for (const auto& p : found->second) {
      const double length = static_cast<double>(passages_[p.passage].words) / mean;
      scores[p.passage] += rare * p.count * (k1 + 1) / (p.count + k1 * (1 - b + b * length));
    }
  }
  std::vector<std::pair<double, uint32_t>> order;
  for (const auto& [index, score] : scores)
    order.emplace_back(-score, index);
  std::sort(order.begin(), order.end());
  std::vector<docs_hit> out;
  for (size_t i = 0; i < order.size() && i < hits_max; ++i) {
    const auto& p = passages_[order[i].second];
    out.push_back({p.file, p.line, p.heading, p.text, -order[i].first});
  }
  return out;
}

std::string to_text(const std::vector<docs_hit>& hits, size_t bytes_max) {
  if (hits.empty())
    return "nothing in the documentation matches; use words that it may use itself\n";
  std::string out;
  for (const auto& hit : hits) {
    auto entry = fmt::format("== {}:{}{}\n{}\n", hit.file, hit.line,
      hit.heading.empty() ? "" : " (" + hit.heading + ")", hit.text);
    if (out.size() + entry.size() > bytes_max)
      return out.empty() ? entry.substr(0, entry.rfind('\n', bytes_max)) + "\n[cut]\n"
                         : out + "[more passages match; ask more narrowly]\n";
    out += entry;
  }
  return out;
}

} // namespace gristmill
