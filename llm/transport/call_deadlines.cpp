#include "llm/transport/call_deadlines.hpp"

#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

call_deadlines::call_deadlines(
  http_deadlines limits, nanoseconds waiting_max, nanoseconds finished_grace, nanoseconds now)
  : limits_(limits), waiting_max_(waiting_max), grace_(finished_grace), since_(now) {}

void call_deadlines::connecting(nanoseconds now) {
  if (phase_ != phase::waiting)
    return;
  phase_ = phase::connecting;
  since_ = now;
}

void call_deadlines::sent(nanoseconds now) {
  if (phase_ > phase::connecting)
    return;
  phase_ = phase::sent;
  since_ = sent_at_ = byte_at_ = now;
}

void call_deadlines::byte(nanoseconds now) {
  byte_at_ = now;
}

void call_deadlines::event(nanoseconds now) {
  if (phase_ != phase::sent)
    return;
  phase_ = phase::streaming;
  since_ = byte_at_ = now;
}

void call_deadlines::finished(nanoseconds now) {
  if (phase_ == phase::finishing)
    return;
  phase_ = phase::finishing;
  since_ = now;
}

std::optional<call_deadlines::due> call_deadlines::next() const {
  std::optional<due> out;
  const auto consider = [&](nanoseconds from, nanoseconds limit, http_end how) {
    if (limit > nanoseconds{0} && (!out || from + limit < out->at))
      out = due{from + limit, how};
  };
  switch (phase_) {
  case phase::waiting:
    consider(since_, waiting_max_, http_end::not_sent);
    break;
  case phase::connecting:
    consider(since_, limits_.connect, http_end::connect_timeout);
    break;
  case phase::sent:
    consider(sent_at_, limits_.first_event, http_end::first_event_timeout);
    consider(sent_at_, limits_.wall, http_end::wall_timeout);
    break;
  case phase::streaming:
    consider(byte_at_, limits_.idle, http_end::idle_timeout);
    consider(sent_at_, limits_.wall, http_end::wall_timeout);
    break;
  // Even a grace of 0 is a deadline here, not the lack of one.
  case phase::finishing:
    out = due{since_ + grace_, http_end::complete};
    break;
  }
  return out;
}

std::string call_deadlines::explain(http_end how) const {
  const auto seconds = [](nanoseconds limit) {
    return fmt::format("{:g} s", double(limit.count()) / 1e9);
  };
  switch (how) {
  case http_end::not_sent:
    return fmt::format("no connection was free for it within {}", seconds(waiting_max_));
  case http_end::connect_timeout:
    return fmt::format("no connection within {}", seconds(limits_.connect));
  case http_end::first_event_timeout:
    return fmt::format("no event within {} after sending", seconds(limits_.first_event));
  case http_end::idle_timeout:
    return fmt::format("silent for {} in the middle of the answer", seconds(limits_.idle));
  case http_end::wall_timeout:
    return fmt::format("not over {} after sending", seconds(limits_.wall));
  default:
    return {};
  }
}

std::optional<uint64_t> alarm_queue::take_due(nanoseconds now) {
  if (alarms_.empty() || alarms_.top().first > now)
    return std::nullopt;
  const auto id = alarms_.top().second;
  alarms_.pop();
  return id;
}

std::optional<nanoseconds> alarm_queue::next() const {
  if (alarms_.empty())
    return std::nullopt;
  return alarms_.top().first;
}

} // namespace gristmill
