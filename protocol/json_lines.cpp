#include "protocol/json_lines.hpp"

#include "protocol/json_document.hpp"

#include <unordered_map>

namespace gristmill {

namespace {

class line_walker {
public:
  line_walker(std::string_view text, std::unordered_map<std::string, size_t>& wanted)
    : text_(text), wanted_(wanted) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      switch (c) {
      case '\n':
        ++line_;
        break;
      case '{':
      case '[':
        begin_value();
        open_.push_back({path_.size(), c == '{', 0});
        expects_key_ = c == '{';
        break;
      case '}':
      case ']':
        if (open_.empty())
          return;
        path_.resize(open_.back().base);
        open_.pop_back();
        expects_key_ = false;
        break;
      case ',':
        if (open_.empty())
          return;
        expects_key_ = open_.back().is_object;
        if (!open_.back().is_object)
          ++open_.back().index;
        break;
      case '"':
        read_string();
        continue;
      case ' ':
      case '\t':
      case '\r':
      case ':':
        break;
      default:
        begin_value();
        skip_word();
        continue;
      }
      ++at_;
    }
  }

private:
  struct level {
    /// Length of the path of the object or list itself.
    size_t base;
    bool is_object;
    size_t index;
  };

  void note() {
    if (const auto found = wanted_.find(path_); found != wanted_.end())
      found->second = line_;
  }

  void append(std::string_view part) {
    path_.resize(open_.back().base);
    if (!path_.empty())
      path_ += '.';
    path_ += part;
    note();
  }

  /// The path of a member is set by its key, that of an element here.
  void begin_value() {
    if (open_.empty())
      note();
    else if (!open_.back().is_object)
      append(std::to_string(open_.back().index));
  }

  void read_string() {
    const size_t begin = at_++;
    bool escaped = false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        escaped = true;
        ++at_;
      }
      ++at_;
    }
    at_ = at_ < text_.size() ? at_ + 1 : text_.size();
    if (!expects_key_ || open_.empty())
      return begin_value();
    expects_key_ = false;
    const auto quoted = text_.substr(begin, at_ - begin);
    if (!escaped)
      return append(quoted.size() < 2 ? quoted : quoted.substr(1, quoted.size() - 2));
    const auto key = ordered_json::parse(quoted.begin(), quoted.end(), nullptr, false);
    append(key.is_string() ? key.get_ref<const std::string&>() : std::string{});
  }

  void skip_word() {
    while (at_ < text_.size()
      && std::string_view{" \t\r\n,]}"}.find(text_[at_]) == std::string_view::npos)
      ++at_;
  }

  std::string_view text_;
  std::unordered_map<std::string, size_t>& wanted_;
  size_t at_ = 0;
  size_t line_ = 1;
  std::string path_;
  std::vector<level> open_;
  bool expects_key_ = false;
};

/// A key may be written with any number of dots in it.
constexpr size_t parents_max = 70;

/// Without its last part; empty for a path of one part.
std::string_view parent_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

} // namespace

std::vector<size_t> lines_of_fields(std::string_view text, const std::vector<std::string>& paths) {
  std::unordered_map<std::string, size_t> wanted{{"", 0}};
  for (std::string_view path : paths)
    for (size_t i = 0; i < parents_max && !path.empty(); ++i, path = parent_of(path))
      wanted.emplace(path, 0);
  line_walker{text, wanted}.run();
  std::vector<size_t> lines;
  for (std::string_view path : paths) {
    size_t line = wanted[std::string{path}];
    for (size_t i = 1; i < parents_max && line == 0 && !path.empty(); ++i) {
      path = parent_of(path);
      line = wanted[std::string{path}];
    }
    lines.push_back(line == 0 ? 1 : line);
  }
  return lines;
}

} // namespace gristmill
