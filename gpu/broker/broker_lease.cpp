#include "gpu/broker/client.hpp"

#include <algorithm>
#include <poll.h>
#include <unistd.h>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

/// Until the descriptor is readable or the time has come, at most a second.
void wait_for(int descriptor, nanoseconds until) {
  auto left = std::clamp<nanoseconds>(until - broker_now(), nanoseconds{0}, seconds{1});
  pollfd readable{descriptor, POLLIN, 0};
  poll(&readable, descriptor >= 0 ? 1 : 0,
    static_cast<int>(std::chrono::ceil<milliseconds>(left).count()));
}

} // namespace

result<broker_lease> broker_lease::acquire(const lease_wish& wish, const std::string& socket,
  const std::function<void(const broker_line&)>& on_wait) {
  lease_waiter waiter(
    wish, socket, false, on_wait ? nanoseconds{seconds{1}} : nanoseconds{0}, broker_now());
  while (true) {
    auto news = waiter.step(broker_now());
    if (news.failed)
      return tl::unexpected<failure>(*news.failed);
    if (news.granted)
      return broker_lease(waiter.take());
    if (news.place && on_wait)
      on_wait(*news.place);
    wait_for(waiter.descriptor(), waiter.next_step(broker_now()));
  }
}

broker_lease::broker_lease(lease_keeper keeper)
  : keeper_(std::make_unique<lease_keeper>(std::move(keeper))), owner_(getpid()) {}

broker_lease::~broker_lease() {
  if (keeper_ && !released_ && getpid() == owner_)
    keeper_->ended(lease_outcome::fine, "the handle was dropped");
}

nanoseconds broker_lease::left() const {
  return std::max(keeper_->deadline() - broker_now(), nanoseconds{0});
}

bool broker_lease::valid() {
  if (!released_)
    keeper_->step(broker_now());
  return !released_ && !keeper_->over() && left() > nanoseconds{0};
}

result<broker_line> broker_lease::release(
  lease_outcome outcome, const std::string& reason, nanoseconds wait) {
  if (released_)
    return fail(errc::lease_expired, "the lease was given back before");
  released_ = true;
  keeper_->ended(outcome, reason);
  const auto end = broker_now() + wait;
  while (broker_now() < end) {
    auto news = keeper_->step(broker_now());
    if (news.closed)
      return std::move(*news.closed);
    if (keeper_->descriptor() < 0)
      return fail(errc::io_failed, "the broker has gone; it takes the GPU back by itself");
    wait_for(keeper_->descriptor(), end);
  }
  return fail(errc::timed_out, "the GPU is given back, but has not been looked at yet");
}

} // namespace gristmill
