#include "gpu/broker/lease_cleaner.hpp"

#include <csignal>
#include <fmt/format.h>
#include <unistd.h>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds look_interval{10};
constexpr seconds kill_limit{30};

} // namespace

lease_cleaner::lease_cleaner(
  lease_record record, bool holder_too, nanoseconds polite, nanoseconds now)
  : record_(std::move(record)), holder_too_(holder_too), kill_at_(now + polite),
    give_up_at_(kill_at_ + kill_limit), due_(now) {}

std::optional<lease_cleaner::outcome> lease_cleaner::step(nanoseconds now) {
  if (now < due_)
    return std::nullopt;
  // A session number that belongs to a later process is nobody's of ours. The leader may be dead
  // while its session goes on, so only another life under its number counts against it.
  auto session = record_.session;
  if (session != 0)
    if (auto leader = process_of(session);
        leader && record_.session_started != 0 && leader->started != record_.session_started)
      session = 0;
  auto left = members_of(record_.lease, session, record_.user);
  if (holder_too_ && lives(record_.pid, record_.started) && record_.pid != getpid())
    left.found.push_back({record_.pid, 0, 0, record_.started, false});
  outcome out;
  if (left.found.empty()) {
    out.ended = static_cast<uint32_t>(terminated_.size());
    if (left.hidden > 0 && geteuid() != 0 && geteuid() != record_.user)
      out.found = {probe_outcome::could_not,
        fmt::format("{} processes of user {} could not be looked at", left.hidden, record_.user)};
    return out;
  }
  if (now >= give_up_at_) {
    out.ended = static_cast<uint32_t>(terminated_.size());
    out.found = {
      probe_outcome::failed, fmt::format("process {} does not end", left.found.front().pid)};
    return out;
  }
  const bool kill_now = now >= kill_at_;
  for (const auto& p : left.found) {
    const bool fresh = terminated_.insert({p.pid, p.started}).second;
    if (kill_now) {
      signal_process(p, SIGKILL);
    } else if (fresh) {
      signal_process(p, SIGTERM);
      signal_process(p, SIGCONT);
    }
  }
  due_ = now + look_interval * (kill_now ? 1 : 5);
  if (!kill_now && due_ > kill_at_)
    due_ = kill_at_;
  return std::nullopt;
}

} // namespace gristmill
