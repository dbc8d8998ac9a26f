#pragma once

#include "messages/errc.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gristmill {

// What is said on a new connection, in lines of text, before the actor library hears of it (and
// after TLS, where there is TLS):
//
//     gristmill-join PROTOCOL VERSION PROCESS        who connects
//     challenge PROTOCOL VERSION NONCE               the coordinator
//     answer NONCE                                   who connects
//     welcome                                        the coordinator
//     refused REASON                                 ... or this, instead of any line of it
//
// So a wrong version is told in words whatever the versions of the actor library say to each other,
// a stranger's bytes never reach it, and the bytes of a recorded session do not fit the next nonce.

/// What both sides say of themselves.
struct join_identity {
  uint32_t protocol = 0;
  std::string version;
  /// Names the process among those of the cluster: its node id of the actor library.
  std::string process;
};

struct talk_step {
  enum class next {
    /// Read on.
    more,
    /// Write `text`, then read on.
    say,
    /// Write `text`; the connection is good.
    admit,
    /// Write `text` (it may be empty) and close; `reason` is for a person.
    refuse,
  };
  next what = next::more;
  std::string text;
  std::string reason;
  /// `refused` when another try gives the same.
  errc code = errc::refused;
};

/// The coordinator's side. Fed one byte after the other, so that nothing behind a line is taken.
class door_talk {
public:
  /// `nonce`: 32 hexadecimal digits that nobody has seen before.
  door_talk(join_identity ours, std::string nonce);

  talk_step feed(char byte);
  /// Known once the first `say` is out.
  const join_identity& theirs() const { return theirs_; }

private:
  talk_step read_line();

  join_identity ours_, theirs_;
  std::string nonce_, line_;
  bool challenged_ = false;
};

/// The side of whoever connects: says `first`, then is fed.
class guest_talk {
public:
  explicit guest_talk(join_identity ours) : ours_(std::move(ours)) {}

  std::string first() const;
  talk_step feed(char byte);

private:
  talk_step read_line();

  join_identity ours_, theirs_;
  std::string line_;
};

/// The line that turns somebody away.
std::string refusal_line(std::string_view reason);

/// Names both versions, the coordinator's first. Their `process` plays no part.
std::string version_mismatch(const join_identity& coordinator, const join_identity& guest);

} // namespace gristmill
