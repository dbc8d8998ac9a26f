#include "actors/transport/dial.hpp"

#include "actors/transport/loopback_owner.hpp"
#include "actors/transport/tls_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gristmill {

namespace {

using clock = std::chrono::steady_clock;

struct limits {
  clock::time_point end;
  std::string where;

  tl::unexpected<failure> timed_out(const char* what) const {
    return fail(errc::timed_out, where + ": " + what);
  }
};

/// False when the time is over.
bool wait_for(int socket, short events, clock::time_point end) {
  pollfd one{socket, events, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
    if (left <= 0)
      return false;
    if (poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 60'000))) > 0)
      return true;
  }
}

tl::unexpected<failure> connect_failure(const std::string& where, int why) {
  switch (why) {
  case ECONNREFUSED:
    return fail(errc::node_lost,
      where + ": nobody listens there; start the coordinator with `--listen`, or look at the port");
  case EHOSTUNREACH:
  case ENETUNREACH:
  case ENETDOWN:
    return fail(errc::node_lost, where + ": there is no way to that machine; look at the network");
  case ETIMEDOUT:
    return fail(errc::timed_out, where + ": the machine does not answer");
  default:
    return fail(errc::node_lost, where + ": " + std::strerror(why));
  }
}

result<wire_ptr> connect_one(const addrinfo& to, const limits& within) {
  const int made = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol);
  if (made < 0)
    return fail(errc::io_failed, std::string("socket: ") + std::strerror(errno));
  auto line = std::make_shared<wire>(made);
  if (connect(made, to.ai_addr, to.ai_addrlen) == 0)
    return line;
  if (errno != EINPROGRESS)
    return connect_failure(within.where, errno);
  if (!wait_for(made, POLLOUT, within.end))
    return within.timed_out("the machine does not answer in time");
  int why = 0;
  socklen_t size = sizeof(why);
  getsockopt(made, SOL_SOCKET, SO_ERROR, &why, &size);
  if (why != 0)
    return connect_failure(within.where, why);
  return line;
}

result<wire_ptr> connect_any(const cluster_address& address, const limits& within) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int looked =
    getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (looked != 0)
    return fail(errc::not_found, within.where + ": " + gai_strerror(looked));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> hold{found, &freeaddrinfo};
  result<wire_ptr> out = fail(errc::not_found, within.where + ": no address");
  for (const auto* each = found; each && !out; each = each->ai_next)
    out = connect_one(*each, within);
  return out;
}

tl::unexpected<failure> broken(const wire& line, const wire::progress& how, const limits& within) {
  if (line.tls_refused())
    return fail(errc::refused, within.where + ": TLS was refused: " + line.failure_text());
  if (how.what == wire::state::ended)
    return fail(errc::node_lost,
      within.where + ": the connection was closed before the coordinator had let us in");
  return fail(errc::node_lost, within.where + ": " + line.failure_text());
}

/// Again and again, until it is done.
template <class Step>
result<size_t> until_done(wire& line, const limits& within, const char* late, Step step) {
  while (true) {
    const auto how = step();
    if (how.what == wire::state::done)
      return how.bytes;
    const bool reads = how.what == wire::state::want_read;
    if (!reads && how.what != wire::state::want_write)
      return broken(line, how, within);
    if (!wait_for(line.socket(), reads ? POLLIN : POLLOUT, within.end))
      return within.timed_out(late);
  }
}

constexpr const char* late_talk =
  "something listens there and does not answer in time; if it speaks "
  "TLS, give --tls FOLDER";

result<void> write_all(wire& line, std::string text, const limits& within) {
  while (!text.empty()) {
    auto sent =
      until_done(line, within, late_talk, [&] { return line.write(text.data(), text.size()); });
    if (!sent)
      return pass(sent);
    text.erase(0, *sent);
  }
  return {};
}

result<void> talk(wire& line, const join_identity& ours, bool tls, const limits& within) {
  guest_talk talk{ours};
  auto said = write_all(line, talk.first(), within);
  if (!said)
    return said;
  while (true) {
    char byte = 0;
    auto got = until_done(line, within, late_talk, [&] { return line.read(&byte, 1); });
    if (!got)
      return pass(got);
    auto step = talk.feed(byte);
    if (step.what == talk_step::next::refuse)
      return fail(step.code, within.where + ": " + step.reason);
    if (step.what == talk_step::next::admit)
      return {};
    if (step.what != talk_step::next::say)
      continue;
    // It has answered, so a process holds that end.
    const auto user = tls ? std::optional<uint32_t>(geteuid()) : peer_user(line.socket());
    if (!user || !is_trusted_user(*user))
      return fail(errc::refused,
        within.where
          + ": without TLS only a coordinator of the same user is joined, and a process of another "
            "user listens there; use --tls FOLDER on both sides");
    said = write_all(line, step.text, within);
    if (!said)
      return said;
  }
}

} // namespace

result<wire_ptr> dial(const dial_settings& settings, std::chrono::nanoseconds deadline) {
  const limits within{clock::now() + deadline, to_string(settings.address)};
  if (settings.tls.empty() && !is_loopback(settings.address))
    return fail(errc::invalid_input, within.where + ": needs --tls FOLDER beyond loopback");
  // Read anew each time, so that a renewed certificate holds from the next connection on.
  tls_identity identity;
  if (!settings.tls.empty()) {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
    auto loaded = load_tls_folder(settings.tls, tls_role::node, now.count());
    if (!loaded)
      return pass(loaded);
    identity = std::move(*loaded);
  }
  auto line = connect_any(settings.address, within);
  if (!line)
    return line;
  if (identity.context) {
    if (!(*line)->start_tls(identity.context.get(), false, coordinator_name))
      return fail(errc::io_failed, "OpenSSL: no memory");
    auto made = until_done(**line, within,
      "something listens there and does not answer to TLS in time; if it listens without, leave "
      "--tls away",
      [&] { return (*line)->handshake(); });
    if (!made)
      return pass(made);
  }
  auto talked = talk(**line, settings.ours, identity.context != nullptr, within);
  if (!talked)
    return pass(talked);
  // The actor library reckons silence from the handing over: only when there is something to read.
  if ((*line)->waiting() == 0 && !wait_for((*line)->socket(), POLLIN, within.end))
    return within.timed_out("the coordinator let us in and then said nothing in time");
  return line;
}

} // namespace gristmill
