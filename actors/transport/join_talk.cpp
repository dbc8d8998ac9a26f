#include "actors/transport/join_talk.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace gristmill {

namespace {

/// No line is longer.
constexpr size_t line_max = 512;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (!line.empty()) {
    const auto end = std::min(line.find(' '), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return out;
}

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// "KEYWORD PROTOCOL VERSION THIRD".
bool read_words(
  std::string_view line, std::string_view keyword, join_identity& out, std::string& third) {
  const auto words = words_of(line);
  if (words.size() != 4 || words[0] != keyword || !printable(line))
    return false;
  const auto* end = words[1].data() + words[1].size();
  const auto read = std::from_chars(words[1].data(), end, out.protocol);
  if (read.ec != std::errc{} || read.ptr != end || words[2].empty() || words[3].empty())
    return false;
  out.version = words[2];
  third = words[3];
  return true;
}

talk_step refuse(std::string reason, bool tell, errc code = errc::refused) {
  auto text = tell ? refusal_line(reason) : std::string();
  return {talk_step::next::refuse, std::move(text), std::move(reason), code};
}

} // namespace

std::string refusal_line(std::string_view reason) {
  std::string text = "refused " + std::string(reason.substr(0, line_max - 16));
  std::replace_if(
    text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text + "\n";
}

std::string version_mismatch(const join_identity& coordinator, const join_identity& guest) {
  const auto name = [](const join_identity& who) {
    return "gristmill " + who.version + " (cluster protocol " + std::to_string(who.protocol) + ")";
  };
  return "the coordinator is " + name(coordinator) + " and the process that wants to join is "
    + name(guest) + ": use the same version on all machines";
}

door_talk::door_talk(join_identity ours, std::string nonce)
  : ours_(std::move(ours)), nonce_(std::move(nonce)) {}

talk_step door_talk::feed(char byte) {
  if (byte != '\n') {
    line_ += byte;
    // A TLS client takes any answer as a sign that there is no TLS.
    if (line_ == "\x16")
      return refuse("it speaks TLS, and this coordinator was started without --tls", true);
    // Whoever begins otherwise is no process of ours and is told nothing.
    constexpr std::string_view join = "gristmill-join ";
    const auto begun = std::min(line_.size(), join.size());
    if (!challenged_ && line_.compare(0, begun, join.substr(0, begun)) != 0)
      return refuse("it does not speak our protocol", false);
    if (line_.size() > line_max)
      return refuse("its line has no end", false);
    return {};
  }
  return read_line();
}

talk_step door_talk::read_line() {
  const auto line = std::exchange(line_, {});
  if (challenged_)
    return line == "answer " + nonce_
      ? talk_step{talk_step::next::admit, "welcome\n", {}, errc::refused}
      : refuse("the answer does not fit the challenge", true);
  if (!read_words(line, "gristmill-join", theirs_, theirs_.process))
    return refuse("its first line is not complete", true);
  if (theirs_.protocol != ours_.protocol || theirs_.version != ours_.version)
    return refuse(version_mismatch(ours_, theirs_), true);
  challenged_ = true;
  return {talk_step::next::say,
    "challenge " + std::to_string(ours_.protocol) + " " + ours_.version + " " + nonce_ + "\n", {},
    errc::refused};
}

std::string guest_talk::first() const {
  return "gristmill-join " + std::to_string(ours_.protocol) + " " + ours_.version + " "
    + ours_.process + "\n";
}

talk_step guest_talk::feed(char byte) {
  if (byte != '\n') {
    line_ += byte;
    // A TLS record of an alert, or of a handshake.
    if (line_.size() == 2 && (line_[0] == 0x15 || line_[0] == 0x16) && line_[1] == 0x03)
      return refuse("the coordinator speaks TLS; give --tls FOLDER", false);
    if (line_.size() > line_max)
      return refuse("what listens there is no gristmill coordinator", false);
    return {};
  }
  return read_line();
}

talk_step guest_talk::read_line() {
  const auto line = std::exchange(line_, {});
  constexpr std::string_view refused = "refused ";
  if (line.starts_with(refused) && printable(line))
    return refuse(line.substr(refused.size()), false);
  if (line == "welcome" && !theirs_.version.empty())
    return {talk_step::next::admit, {}, {}, errc::refused};
  std::string nonce;
  if (!theirs_.version.empty() || !read_words(line, "challenge", theirs_, nonce))
    return refuse("what listens there is no gristmill coordinator", false);
  if (theirs_.protocol != ours_.protocol || theirs_.version != ours_.version)
    return refuse(version_mismatch(theirs_, ours_), false);
  return {talk_step::next::say, "answer " + nonce + "\n", {}, errc::refused};
}

} // namespace gristmill
