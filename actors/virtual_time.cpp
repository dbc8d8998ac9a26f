#include "actors/virtual_time.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

namespace gristmill {

// ---- clock
// ---------------------------------------------------------------------------------------

void virtual_clock::set_ordinary_timeout(
  time_point t, caf::abstract_actor* self, caf::atom_value type, uint64_t id) {
  cancel_ordinary_timeout(self, type);
  auto* entry = push(t);
  entry->kind = timer_kind::ordinary;
  entry->self = self->ctrl();
  entry->type = type;
  entry->id = id;
  named_[{self->id(), static_cast<uint64_t>(type)}] = entry;
}

void virtual_clock::set_multi_timeout(
  time_point t, caf::abstract_actor* self, caf::atom_value type, uint64_t id) {
  auto* entry = push(t);
  entry->kind = timer_kind::multi;
  entry->self = self->ctrl();
  entry->type = type;
  entry->id = id;
}

void virtual_clock::set_request_timeout(
  time_point t, caf::abstract_actor* self, caf::message_id id) {
  auto* entry = push(t);
  entry->kind = timer_kind::request;
  entry->self = self->ctrl();
  entry->request = id;
  requests_[{self->id(), id.integer_value()}] = entry;
}

void virtual_clock::cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) {
  drop(named_, {self->id(), static_cast<uint64_t>(type)});
}

void virtual_clock::cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) {
  drop(requests_, {self->id(), id.integer_value()});
}

void virtual_clock::schedule_message(
  time_point t, caf::strong_actor_ptr receiver, caf::mailbox_element_ptr content) {
  auto* entry = push(t);
  entry->kind = timer_kind::message;
  entry->self = std::move(receiver);
  entry->content = std::move(content);
}

void virtual_clock::schedule_message(time_point, caf::group, caf::strong_actor_ptr, caf::message) {
  CAF_RAISE_ERROR("groups do not exist in virtual time");
}

void virtual_clock::cancel_all() {
  while (!heap_.empty())
    pop();
  named_.clear();
  requests_.clear();
}

bool virtual_clock::next(time_point& due) {
  skip_dead();
  due = heap_.empty() ? time_point::max() : heap_.front().due;
  if (source_ != nullptr)
    due = std::min(due, source_->first());
  return due != time_point::max();
}

void virtual_clock::fire_next() {
  if (source_ != nullptr) {
    auto due = source_->first();
    if (heap_.empty() || due <= heap_.front().due) {
      advance_to(due);
      source_->fire();
      return;
    }
  }
  auto first = heap_.front();
  advance_to(first.due);
  std::pop_heap(heap_.begin(), heap_.end(), later{});
  heap_.pop_back();
  auto& entry = *first.what;
  auto self = std::move(entry.self);
  auto kind = std::exchange(entry.kind, timer_kind::dead);
  free_.push_back(first.what);
  switch (kind) {
  case timer_kind::ordinary:
    named_.erase({self->id(), static_cast<uint64_t>(entry.type)});
    self->get()->eq_impl(
      caf::make_message_id(), self, nullptr, caf::timeout_msg{entry.type, entry.id});
    break;
  case timer_kind::multi:
    self->get()->eq_impl(
      caf::make_message_id(), self, nullptr, caf::timeout_msg{entry.type, entry.id});
    break;
  case timer_kind::request:
    requests_.erase({self->id(), entry.request.integer_value()});
    self->get()->eq_impl(entry.request, self, nullptr, caf::sec::request_timeout);
    break;
  case timer_kind::message:
    self->enqueue(std::move(entry.content), nullptr);
    break;
  case timer_kind::dead:
    break;
  }
}

void virtual_clock::advance_to(time_point t) {
  now_ = std::max(now_, t);
}

virtual_clock::timer* virtual_clock::push(time_point due) {
  timer* entry = nullptr;
  if (free_.empty()) {
    entry = &store_.emplace_back();
  } else {
    entry = free_.back();
    free_.pop_back();
  }
  heap_.push_back({due, seq_++, entry});
  std::push_heap(heap_.begin(), heap_.end(), later{});
  return entry;
}

void virtual_clock::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), later{});
  auto* entry = heap_.back().what;
  heap_.pop_back();
  *entry = timer{};
  free_.push_back(entry);
}

void virtual_clock::skip_dead() {
  while (!heap_.empty() && heap_.front().what->kind == timer_kind::dead)
    pop();
}

void virtual_clock::drop(index& from, key k) {
  auto found = from.find(k);
  if (found == from.end())
    return;
  *found->second = timer{};
  from.erase(found);
}

// ---- scheduler
// -----------------------------------------------------------------------------------

virtual_scheduler::unit::unit(virtual_scheduler* o) : execution_unit(&o->system()), owner(o) {}

void virtual_scheduler::unit::exec_later(caf::resumable* job) {
  owner->jobs_.push_back(job);
}

virtual_scheduler::virtual_scheduler(caf::actor_system& system)
  : abstract_coordinator(system), unit_(this) {}

void virtual_scheduler::install(caf::actor_system_config& config) {
  config.module_factories.push_back([](caf::actor_system& system) -> caf::actor_system::module* {
    return new virtual_scheduler(system);
  });
}

virtual_scheduler& virtual_scheduler::of(caf::actor_system& system) {
  return static_cast<virtual_scheduler&>(system.scheduler());
}

void virtual_scheduler::shuffle(uint64_t seed) {
  rng_.seed(seed);
  shuffle_ = seed != 0;
}

void virtual_scheduler::settle() {
  while (run_once()) {
  }
}

uint64_t virtual_scheduler::run_for(caf::timespan by) {
  uint64_t fired = 0;
  run_until(clock_.now() + by, std::numeric_limits<uint64_t>::max(), &fired);
  return fired;
}

bool virtual_scheduler::run_until(
  caf::actor_clock::time_point end, uint64_t timers_max, uint64_t* fired) {
  caf::actor_clock::time_point due;
  settle();
  for (uint64_t n = 0; clock_.next(due) && due <= end; ++n) {
    if (n == timers_max)
      return false;
    clock_.fire_next();
    if (fired != nullptr)
      ++*fired;
    settle();
  }
  clock_.advance_to(end);
  return true;
}

bool virtual_scheduler::run_once() {
  if (jobs_.empty())
    return false;
  if (shuffle_ && jobs_.size() > 1)
    std::swap(jobs_.front(), jobs_[rng_() % jobs_.size()]);
  auto* job = jobs_.front();
  jobs_.pop_front();
  ++jobs_run_;
  switch (job->resume(&unit_, shuffle_ ? 1 : max_throughput())) {
  case caf::resumable::resume_later:
    jobs_.push_back(job);
    break;
  case caf::resumable::done:
  case caf::resumable::awaiting_message:
    caf::intrusive_ptr_release(job);
    break;
  default:
    break;
  }
  return true;
}

void virtual_scheduler::start() {
  // Nothing is logged here; without a logger of its own, this thread need not note at every message
  // who handles it.
  caf::logger::set_current_actor_system(nullptr);
  // CAF sends `aout` text to this slot, so it must hold a live actor.
  caf::actor_config config{&unit_};
  utility_actors_[printer_id] =
    system().spawn<caf::hidden + caf::lazy_init>([](caf::event_based_actor* self) -> caf::behavior {
      // CAF says more to its printer ("flush", "delete"). To complain about it the printer would
      // print, and then it could not end without itself.
      self->set_default_handler(caf::drop);
      return {[](caf::add_atom, caf::actor_id, const std::string& text) {
        std::fputs(text.c_str(), stderr);
      }};
    });
}

void virtual_scheduler::stop() {
  clock_.cancel_all();
  settle();
  utility_actors_[printer_id] = nullptr;
  settle();
}

} // namespace gristmill
