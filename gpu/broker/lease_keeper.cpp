#include "gpu/broker/client.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds back_off_first{20};
constexpr milliseconds back_off_max{1000};
/// A broker that is being restarted is back within this; then a waiting client gives up.
constexpr seconds restart_limit{60};

nanoseconds longer(nanoseconds back_off) {
  return std::clamp<nanoseconds>(back_off * 2, back_off_first, back_off_max);
}

} // namespace

// --- lease_keeper ----------------------------------------------------------------------------

lease_keeper::lease_keeper(
  broker_client client, std::string socket, std::string as, broker_line granted, bool guarded)
  : client_(std::move(client)), socket_(std::move(socket)), as_(std::move(as)),
    granted_(std::move(granted)), guarded_(guarded), granted_at_(broker_now()),
    deadline_(granted_at_ + granted_.term), renew_at_(granted_at_ + granted_.ttl / 3) {}

client_line lease_keeper::line(client_verb verb) const {
  client_line out;
  out.verb = verb;
  out.request = granted_.request;
  out.gpu = granted_.gpu;
  out.token = granted_.token;
  out.lease = granted_.lease;
  out.session = session_;
  return out;
}

void lease_keeper::send(const client_line& what) {
  // One that fails closes the connection; the next step finds another.
  if (client_.connected())
    (void)client_.send(what);
}

void lease_keeper::started(int64_t session) {
  session_ = session;
  started_ = true;
  send(line(client_verb::started));
}

void lease_keeper::ended(lease_outcome outcome, const std::string& reason) {
  over_ = true;
  if (!client_.connected())
    reconnect(broker_now());
  auto what = line(client_verb::ended);
  what.outcome = outcome;
  what.reason = reason;
  send(what);
}

void lease_keeper::reconnect(nanoseconds now) {
  auto fresh = broker_client::connect(socket_, as_);
  if (!fresh) {
    back_off_ = longer(back_off_);
    retry_at_ = now + back_off_;
    return;
  }
  client_ = std::move(*fresh);
  auto claim = line(client_verb::adopt);
  claim.held = now - granted_at_;
  send(claim);
  if (started_)
    send(line(client_verb::started));
  renew_at_ = now + granted_.ttl / 3;
}

lease_keeper::news lease_keeper::step(nanoseconds now) {
  news out;
  if (!client_.connected() && now >= retry_at_)
    reconnect(now);
  while (client_.connected()) {
    auto got = client_.next(nanoseconds{0});
    if (!got) {
      back_off_ = nanoseconds{0};
      retry_at_ = now + back_off_first;
      break;
    }
    if (!*got)
      break;
    const auto& said = **got;
    switch (said.say) {
    case broker_say::adopted:
      back_off_ = nanoseconds{0};
      break;
    case broker_say::revoke:
      if (said.token >= granted_.token && said.gpu == granted_.gpu)
        out.revoked = said.reason;
      break;
    case broker_say::over:
      if (said.request == granted_.request)
        out.revoked = said.reason;
      break;
    case broker_say::ack:
      // Of a renewal.
      if (!said.applied && !over_)
        out.revoked = said.note;
      break;
    case broker_say::closed:
      if (said.token == granted_.token)
        out.closed = said;
      break;
    case broker_say::error:
      out.revoked = said.what;
      break;
    case broker_say::hello:
    case broker_say::ticket:
    case broker_say::position:
    case broker_say::granted:
    case broker_say::status:
      break;
    }
  }
  if (out.revoked)
    over_ = true;
  if (guarded_ && !over_ && client_.connected() && now >= renew_at_) {
    send(line(client_verb::renew));
    renew_at_ = now + granted_.ttl / 3;
  }
  return out;
}

nanoseconds lease_keeper::next_step(nanoseconds now) const {
  if (!client_.connected())
    return std::max(retry_at_, now);
  return guarded_ && !over_ ? renew_at_ : nanoseconds::max();
}

// --- lease_waiter ----------------------------------------------------------------------------

lease_waiter::lease_waiter(
  lease_wish wish, std::string socket, bool guarded, nanoseconds watch, nanoseconds now)
  : wish_(std::move(wish)), socket_(socket.empty() ? default_broker_socket() : std::move(socket)),
    guarded_(guarded), watch_(watch),
    give_up_at_(wish_.patience > nanoseconds{0} ? now + wish_.patience : nanoseconds::max()) {}

std::optional<failure> lease_waiter::connect(nanoseconds now) {
  auto fresh = broker_client::connect(socket_, wish_.as);
  if (!fresh) {
    if (!connected_before_ && fresh.error().code != errc::io_failed)
      return fresh.error();
    if (!lost_until_)
      lost_until_ = now + restart_limit;
    if (now >= *lost_until_)
      return fresh.error();
    back_off_ = longer(back_off_);
    retry_at_ = now + back_off_;
    return std::nullopt;
  }
  client_ = std::move(*fresh);
  connected_before_ = true;
  lost_until_.reset();
  client_line ask;
  ask.verb = client_verb::request;
  ask.request = 1;
  ask.what = wish_.what;
  ask.need = wish_.need;
  ask.candidate = wish_.candidate;
  ask.command = wish_.command.substr(0, 256);
  ask.estimate = wish_.estimate;
  ask.patience =
    wish_.patience > nanoseconds{0} ? std::max(give_up_at_ - now, nanoseconds{1}) : nanoseconds{0};
  ask.term = wish_.cap;
  ask.watch = watch_;
  ask.guarded = guarded_;
  (void)client_.send(ask);
  return std::nullopt;
}

lease_waiter::news lease_waiter::step(nanoseconds now) {
  news out;
  if (!client_.connected() && now >= retry_at_) {
    out.failed = connect(now);
    if (out.failed)
      return out;
  }
  if (client_.connected())
    out = read();
  if (!client_.connected() && !out.failed && !out.granted) {
    retry_at_ = std::max(retry_at_, now + back_off_first);
    if (now >= give_up_at_)
      out.failed = failure{errc::timed_out, "no turn in time, and the broker has gone"};
  }
  return out;
}

lease_waiter::news lease_waiter::read() {
  news out;
  while (client_.connected()) {
    auto got = client_.next(nanoseconds{0});
    if (!got || !*got)
      break;
    auto& said = **got;
    switch (said.say) {
    case broker_say::ticket:
      if (!first_estimate_)
        first_estimate_ = said.estimated_wait;
      [[fallthrough]];
    case broker_say::position:
      out.place = std::move(said);
      break;
    case broker_say::granted:
      granted_ = std::move(said);
      out.granted = true;
      return out;
    case broker_say::over:
      out.failed = failure{errc::timed_out, said.reason};
      return out;
    case broker_say::error:
      out.failed = failure{said.code, said.what};
      return out;
    case broker_say::hello:
    case broker_say::adopted:
    case broker_say::ack:
    case broker_say::closed:
    case broker_say::revoke:
    case broker_say::status:
      break;
    }
  }
  return out;
}

nanoseconds lease_waiter::next_step(nanoseconds now) const {
  if (!client_.connected())
    return std::max(retry_at_, now);
  return nanoseconds::max();
}

lease_keeper lease_waiter::take() {
  return lease_keeper(std::move(client_), socket_, wish_.as, std::move(*granted_), guarded_);
}

void lease_waiter::cancel() {
  client_line what;
  what.verb = client_verb::cancel;
  what.request = 1;
  if (client_.connected())
    (void)client_.send(what);
}

} // namespace gristmill
