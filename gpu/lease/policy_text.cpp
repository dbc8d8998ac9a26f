#include "gpu/lease/policy_text.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// Reads from the front of a text and knows how far it has come.
class policy_parser {
public:
  explicit policy_parser(std::string_view text) : text_(text) {}

  result<std::vector<policy_level_text>> parse() {
    std::vector<policy_level_text> out;
    do {
      if (out.size() == policy_levels_max)
        return fail(errc::invalid_input,
          fmt::format("lease policy '{}': more than {} levels", shown(text_), policy_levels_max));
      policy_level_text level;
      if (auto read = read_level(level); !read)
        return pass(read);
      out.push_back(std::move(level));
    } while (take('/'));
    if (at_ != text_.size())
      return wrong("'/' or the end");
    return out;
  }

private:
  result<void> read_level(policy_level_text& level) {
    level.name = word();
    if (level.name.empty())
      return wrong("the name of a policy");
    if (!take('('))
      return {};
    if (take(')'))
      return {};
    do {
      if (level.parameters.size() == policy_parameters_max)
        return fail(errc::invalid_input,
          fmt::format(
            "lease policy '{}': more than {} parameters", level.name, policy_parameters_max));
      auto name = word();
      if (name.empty())
        return wrong("the name of a parameter");
      if (!take('='))
        return wrong("'='");
      auto value = read_value();
      if (!value)
        return pass(value);
      for (const auto& [other, ignored] : level.parameters)
        if (other == name)
          return fail(errc::invalid_input,
            fmt::format("lease policy '{}': parameter '{}' is given twice", level.name, name));
      level.parameters.emplace_back(std::move(name), std::move(*value));
    } while (take(','));
    if (!take(')'))
      return wrong("',' or ')'");
    return {};
  }

  result<std::string> read_value() {
    skip_spaces();
    std::string out;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size())
          ++at_;
        out += text_[at_];
      }
      if (at_ == text_.size())
        return wrong("'\"'");
      ++at_;
      return out;
    }
    while (at_ < text_.size() && std::string_view{",()/\""}.find(text_[at_]) == std::string::npos)
      out += text_[at_++];
    while (!out.empty() && out.back() == ' ')
      out.pop_back();
    if (out.empty())
      return wrong("a value");
    return out;
  }

  std::string word() {
    skip_spaces();
    auto from = at_;
    // A hyphen counts, so that a name with one is unknown rather than a riddle.
    while (at_ < text_.size()
      && (std::string_view{"_-"}.find(text_[at_]) != std::string::npos
        || (text_[at_] >= 'a' && text_[at_] <= 'z') || (text_[at_] >= 'A' && text_[at_] <= 'Z')
        || (text_[at_] >= '0' && text_[at_] <= '9')))
      ++at_;
    auto out = std::string{text_.substr(from, at_ - from)};
    skip_spaces();
    return out;
  }

  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }

  tl::unexpected<failure> wrong(std::string_view expected) const {
    auto found = at_ == text_.size() ? "the end" : fmt::format("'{}'", shown(text_.substr(at_, 1)));
    return fail(errc::invalid_input,
      fmt::format("lease policy '{}': expected {} at character {}, found {}", shown(text_),
        expected, at_ + 1, found));
  }

  std::string_view text_;
  size_t at_ = 0;
};

} // namespace

result<std::vector<policy_level_text>> parse_policy_text(std::string_view text) {
  if (text.size() > policy_text_bytes_max)
    return fail(errc::invalid_input,
      fmt::format("lease policy '{}': longer than {} bytes", shown(text), policy_text_bytes_max));
  return policy_parser{text}.parse();
}

std::string quoted_policy_value(std::string_view value) {
  if (!value.empty() && value.find_first_of(",()/\"\\ ") == std::string_view::npos)
    return std::string{value};
  std::string out = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + '"';
}

std::optional<std::chrono::nanoseconds> parse_policy_time(std::string_view text) {
  static constexpr std::pair<std::string_view, uint64_t> units[] = {{"ns", 1}, {"us", 1'000},
    {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000},
    {"d", 86'400'000'000'000}};
  auto letters = text.find_first_not_of("0123456789.");
  if (letters == std::string_view::npos)
    return std::nullopt;
  auto number = parse_fixed_point(text.substr(0, letters), 6);
  if (!number)
    return std::nullopt;
  for (const auto& [unit, ns] : units)
    if (text.substr(letters) == unit) {
      auto value = static_cast<unsigned __int128>(*number) * ns;
      if (value % 1'000'000 != 0 || value / 1'000'000 > uint64_t{INT64_MAX})
        return std::nullopt;
      return std::chrono::nanoseconds{static_cast<int64_t>(value / 1'000'000)};
    }
  return std::nullopt;
}

std::optional<uint64_t> parse_thousandths(std::string_view text) {
  auto value = parse_fixed_point(text, 3);
  return value ? std::optional{*value} : std::nullopt;
}

} // namespace gristmill
