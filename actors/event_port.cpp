#include "actors/event_port.hpp"

namespace gristmill {

event_port::event_port(journal_actor journal, caf::actor_clock::time_point start) : event_port() {
  state_->journal = std::move(journal);
  state_->start = start;
}

event_port::event_port(const event_port& other)
  : event_port(other.state_->journal, other.state_->start) {}

event_port& event_port::operator=(const event_port& other) {
  if (this != &other)
    *this = event_port(other);
  return *this;
}

void event_port::close() {
  auto& s = *state_;
  if (s.journal && !s.waiting.empty())
    seam::post(s.journal, journal_append{std::move(s.waiting), durability::relaxed});
  s.waiting.clear();
  s.journal = nullptr;
}

bool event_port::take(event e, caf::actor_clock::time_point now) {
  auto& s = *state_;
  if (!s.journal)
    return false;
  if (e.t == std::chrono::nanoseconds{0})
    e.t = now - s.start;
  s.waiting.push_back(std::move(e));
  ++s.unacknowledged;
  return true;
}

void event_port::failed(state& s, size_t count) {
  s.unacknowledged -= count + s.waiting.size();
  s.waiting.clear();
  s.journal = nullptr;
}

} // namespace gristmill
