#include "actors/gpu_lease.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace gristmill {

namespace {

/// As many as the table remembers.
constexpr size_t boots_remembered = 16;

/// Of a sender. Its control block stays where it is for as long as its address is kept.
uint64_t hash_of(const caf::actor_control_block* who) {
  return mixed(reinterpret_cast<uintptr_t>(who));
}

} // namespace

gpu_lease::gpu_lease(caf::actor_config& config, gpu_lease_config settings)
  : growing_lease_actor::base(config), settings_(std::move(settings)),
    policy_(settings_.policy.get()), table_(settings_.table, std::move(settings_.policy)),
    monitors_(this) {}

growing_lease_actor::behavior_type gpu_lease::make_behavior() {
  seam::end_on_exception(this);
  lease_actions actions;
  for (auto& entry : settings_.gpus) {
    table_.add_gpu(std::move(entry), now(), actions);
    executors_.emplace_back();
  }
  settings_.gpus.clear();
  perform(actions);
  return {
    [this](const lease_request& what) { return on_request(what); },
    [this](const lease_command& what) { return answer(on_command(what)); },
    [this](const device_report& what) { return answer(on_report(what)); },
    [this](const broker_query& what) { return table_.snapshot(what, now()); },
    [this](const broker_command& what) { return on_broker_command(what); },
    [this](const device_join& what) { return on_join(what); },
    [this](const tick& due) {
      if (due.generation != generation_)
        return;
      timer_.reset();
      lease_actions todo;
      table_.on_tick(now(), todo);
      perform(todo);
    },
  };
}

std::chrono::nanoseconds gpu_lease::now() {
  return settings_.events.since_start(clock().now());
}

void gpu_lease::on_exit() {
  for (auto& h : holders_)
    for (auto request : h.open)
      seam::post(h.handle, lease_ended{request, 0, "the broker ends"});
  monitors_.clear();
  holders_.clear();
  by_sender_ = {};
  by_id_ = {};
  executors_.clear();
  settings_.on_rerun = nullptr;
  settings_.events.close();
}

// ---- messages
// ------------------------------------------------------------------------------------

caf::result<lease_ticket> gpu_lease::on_request(const lease_request& what) {
  auto from = caf::actor_cast<caf::strong_actor_ptr>(current_sender());
  if (!from)
    return to_error(
      {errc::invalid_input, "a lease_request needs a sender: the grant is pushed to it"});
  auto& h = holders_[asking(from)];
  auto id = h.id;
  // Before the table answers: the grant may be among the actions of this very call.
  // One that is open already gets its ticket again.
  bool fresh = std::find(h.open.begin(), h.open.end(), what.request) == h.open.end();
  if (fresh)
    h.open.push_back(what.request);
  lease_actions actions;
  auto ticket = table_.on_request(id, what, now(), actions);
  perform(actions);
  if (ticket)
    return *ticket;
  if (fresh)
    close_request(id, what.request);
  return to_error(ticket.error());
}

lease_ack gpu_lease::on_command(const lease_command& what) {
  lease_actions actions;
  lease_ack ack;
  auto instant = now();
  switch (what.verb) {
  case lease_verb::cancel: {
    auto from = caf::actor_cast<caf::strong_actor_ptr>(current_sender());
    auto slot = from ? known_sender(from.get()) : flat_index::none;
    if (slot == flat_index::none || holders_[slot].id == 0) {
      ack.note = "no request of this sender is open";
      break;
    }
    auto id = holders_[slot].id;
    ack = table_.on_cancel(id, what.request, instant, actions);
    if (ack.applied) {
      // It may have been a lease already; the end of that one is not this holder's business any
      // more.
      for (auto& e : executors_)
        if (e.held_by == id && e.request == what.request)
          e.held_by = 0;
      close_request(id, what.request);
    }
    break;
  }
  case lease_verb::renew:
    if (what.gpu < executors_.size())
      ack = table_.on_renew(what.gpu, what.token, what.idle, instant, actions);
    else
      ack.note = fmt::format("there is no GPU {}", what.gpu);
    break;
  case lease_verb::release:
    if (what.gpu < executors_.size()) {
      auto from = caf::actor_cast<caf::strong_actor_ptr>(current_sender());
      auto of_executor = from && from == executors_[what.gpu].pointer;
      ack = table_.on_release(what.gpu, what.token, what.reason,
        of_executor ? what.outcome : lease_outcome::fine, instant, actions);
    } else
      ack.note = fmt::format("there is no GPU {}", what.gpu);
    break;
  }
  perform(actions);
  return ack;
}

lease_ack gpu_lease::on_report(const device_report& what) {
  auto from = caf::actor_cast<caf::strong_actor_ptr>(current_sender());
  if (what.gpu >= executors_.size())
    return lease_ack{false, fmt::format("there is no GPU {}", what.gpu)};
  if (!from)
    return lease_ack{false, "a device_report needs a sender: the executor"};
  auto& e = executors_[what.gpu];
  lease_actions actions;
  auto instant = now();
  // Late or doubled: it tells of a start that is over, and must neither replace the executor that
  // is there nor take its GPU down.
  if (std::find(e.boots_before.begin(), e.boots_before.end(), what.boot) != e.boots_before.end())
    return lease_ack{
      false, fmt::format("boot id {} of GPU {} is an earlier one", what.boot, what.gpu)};
  if (e.pointer != from) {
    if (what.state != device_state::up && what.state != device_state::holding)
      return lease_ack{false, "the sender is not the executor of this GPU"};
    // A replacement may come before the news of the old one's death.
    if (e.pointer) {
      auto old = e.pointer;
      e.pointer = nullptr;
      e.handle = nullptr;
      table_.on_device_down(what.gpu, "its executor was replaced", instant, actions);
      perform(actions);
      actions.clear();
      close_lease(what.gpu);
      auto serves_another = false;
      for (const auto& other : executors_)
        serves_another = serves_another || other.pointer == old;
      if (!serves_another)
        monitors_.unwatch(this, old);
    }
    e.pointer = from;
    e.handle = caf::actor_cast<gpu_executor_actor>(from);
    auto address = caf::actor_cast<caf::actor_addr>(from);
    monitors_.watch(
      this, from, [this, address](const caf::error& why) { executor_down(address, why); });
  }
  if ((what.state == device_state::up || what.state == device_state::holding)
    && what.boot != e.boot) {
    if (!e.boot.empty())
      e.boots_before.push_back(e.boot);
    if (e.boots_before.size() > boots_remembered)
      e.boots_before.erase(e.boots_before.begin());
    e.boot = what.boot;
  }
  auto ack = table_.on_report(what, instant, actions);
  // The last word to the old holder comes before it is forgotten, and the next grant of this GPU
  // after it.
  auto is_notice = [](const lease_action& a) { return a.kind == lease_action_kind::notify_holder; };
  lease_actions notices;
  if (std::any_of(actions.begin(), actions.end(), is_notice)) {
    auto rest = std::stable_partition(actions.begin(), actions.end(), is_notice);
    notices.assign(std::make_move_iterator(actions.begin()), std::make_move_iterator(rest));
    actions.erase(actions.begin(), rest);
  }
  perform(notices);
  if (what.state != device_state::active)
    close_lease_if_over(what.gpu);
  perform(actions);
  return ack;
}

caf::result<lease_ack> gpu_lease::on_broker_command(const broker_command& what) {
  lease_actions actions;
  auto ack = table_.on_broker_command(what, now(), actions);
  perform(actions);
  return ack;
}

caf::result<lease_ack> gpu_lease::answer(lease_ack ack) {
  if (!current_mailbox_element()->mid.is_request())
    return caf::delegated<lease_ack>{}; // Nobody waits for it.
  return ack;
}

caf::result<device_joined> gpu_lease::on_join(const device_join& what) {
  auto known = joined_.find(what.name);
  if (known != joined_.end()) {
    const auto& was = known->second.second;
    if (was.model != what.model || was.arch != what.arch || was.node != what.node)
      return to_error({errc::invalid_input,
        fmt::format("{} was {} {} of {} before and is {} {} of {} now", what.name, was.model,
          was.arch, was.node, what.model, what.arch, what.node)});
    return device_joined{known->second.first};
  }
  if (executors_.size() >= settings_.gpus_max)
    return to_error(
      {errc::queue_full, fmt::format("there are {} GPUs already", executors_.size())});
  auto floor = settings_.token_floors.find(what.name);
  lease_actions actions;
  executors_.emplace_back();
  auto gpu =
    table_.add_gpu({.name = what.name,
                     .model = what.model,
                     .token_floor = floor == settings_.token_floors.end() ? 0 : floor->second,
                     .arch = what.arch,
                     .memory_bytes = what.memory_bytes,
                     .node = what.node},
      now(), actions);
  joined_.emplace(what.name, std::pair{gpu, what});
  perform(actions);
  return device_joined{gpu};
}

// ---- actions
// -------------------------------------------------------------------------------------

void gpu_lease::perform(lease_actions& actions) {
  for (auto& action : actions)
    perform(action);
  tell_policy_failures();
  set_timer();
}

void gpu_lease::tell_policy_failures() {
  for (auto& text : policy_->take_failures()) {
    if (!settings_.table.log_events)
      continue;
    event e;
    e.kind = "policy_failed";
    e.t = now();
    e.reason = std::move(text);
    settings_.events.note(this, std::move(e));
  }
}

void gpu_lease::perform(lease_action& action) {
  switch (action.kind) {
  case lease_action_kind::grant:
    grant(action);
    break;
  case lease_action_kind::notify_holder: {
    auto slot = slot_of(action.holder);
    if (slot == flat_index::none)
      break;
    seam::tell(this, holders_[slot].handle, action.ended);
    // With a token it held a GPU, which is still to be verified.
    if (action.ended.token == 0)
      close_request(action.holder, action.ended.request);
    break;
  }
  case lease_action_kind::revoke:
    if (executors_[action.revoke.gpu].handle)
      seam::tell(this, executors_[action.revoke.gpu].handle, action.revoke);
    break;
  case lease_action_kind::probe:
    if (executors_[action.probe.gpu].handle)
      seam::tell(this, executors_[action.probe.gpu].handle, action.probe);
    break;
  case lease_action_kind::rerun:
    if (settings_.on_rerun)
      settings_.on_rerun(*action.rerun);
    break;
  case lease_action_kind::reserve: {
    auto block = action.reserve;
    if (!action.entry) {
      // No event is kept, so there is nothing to wait for.
      lease_actions todo;
      table_.on_block_reserved(block.gpu, block.last, now(), todo);
      perform(todo);
      break;
    }
    settings_.events.keep(this, action.entry.take(), [this, block](const result<void>& stored) {
      if (!stored)
        return; // No token without its block on the disk; the journal's death ends the run.
      lease_actions todo;
      table_.on_block_reserved(block.gpu, block.last, now(), todo);
      perform(todo);
    });
    break;
  }
  case lease_action_kind::log:
    settings_.events.note(this, action.entry.take());
    break;
  }
}

void gpu_lease::grant(const lease_action& action) {
  auto& e = executors_[action.granted.granted.gpu];
  e.held_by = action.holder;
  e.request = action.granted.request;
  e.token = action.granted.granted.token;
  auto slot = slot_of(action.holder);
  if (slot != flat_index::none)
    seam::tell(this, holders_[slot].handle, action.granted, e.pointer);
}

void gpu_lease::set_timer() {
  auto next = table_.next_deadline();
  // A timer cannot be taken back. One that fires too early costs a look at the table; only one that
  // would fire too late is replaced.
  if (!next || (timer_ && *timer_ <= *next))
    return;
  timer_ = next;
  auto delay = std::max(*next - now(), std::chrono::nanoseconds{0});
  seam::tell_later(this, delay, growing_lease_actor{this}, tick{++generation_});
}

// ---- holders and executors
// -----------------------------------------------------------------------

uint32_t gpu_lease::known_sender(const caf::actor_control_block* from) const {
  return by_sender_.find(hash_of(from));
}

uint32_t gpu_lease::asking(const caf::strong_actor_ptr& from) {
  auto slot = known_sender(from.get());
  if (slot == flat_index::none) {
    if (free_slots_.empty()) {
      slot = static_cast<uint32_t>(holders_.size());
      holders_.emplace_back();
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    holders_[slot].address = caf::actor_cast<caf::actor_addr>(from);
    by_sender_.insert(hash_of(from.get()), slot);
    monitors_.watch(this, from, [this, slot](const caf::error&) { holder_down(slot); });
    ++idle_;
  }
  auto& h = holders_[slot];
  if (h.id == 0) {
    --idle_;
    h.id = ++last_holder_;
    h.handle = caf::actor_cast<lease_holder_actor>(from);
    by_id_.insert(mixed(h.id), slot);
  }
  return slot;
}

void gpu_lease::forget(uint32_t slot) {
  auto& h = holders_[slot];
  by_sender_.erase(hash_of(caf::actor_cast<caf::actor_control_block*>(h.address)), slot);
  h = {};
  free_slots_.push_back(slot);
}

void gpu_lease::close_request(holder_id id, uint64_t request) {
  auto slot = slot_of(id);
  if (slot == flat_index::none)
    return;
  auto& h = holders_[slot];
  auto found = std::find(h.open.begin(), h.open.end(), request);
  if (found != h.open.end())
    h.open.erase(found);
  if (!h.open.empty())
    return;
  by_id_.erase(mixed(id), slot);
  h.id = 0;
  h.handle = nullptr;
  if (idle_ < settings_.idle_holders_max) {
    ++idle_;
    return;
  }
  // A monitor that stays behind would leak.
  monitors_.unwatch(this, h.address);
  forget(slot);
}

void gpu_lease::close_lease_if_over(uint32_t gpu) {
  if (!table_.in_use(gpu, executors_[gpu].token))
    close_lease(gpu);
}

void gpu_lease::close_lease(uint32_t gpu) {
  auto& e = executors_[gpu];
  if (e.held_by == 0)
    return;
  auto id = std::exchange(e.held_by, 0);
  close_request(id, e.request);
}

void gpu_lease::holder_down(uint32_t slot) {
  auto id = holders_[slot].id;
  forget(slot);
  if (id == 0) {
    --idle_;
    return;
  }
  by_id_.erase(mixed(id), slot);
  for (auto& e : executors_)
    if (e.held_by == id)
      e.held_by = 0;
  lease_actions actions;
  table_.on_holder_down(id, now(), actions);
  perform(actions);
}

void gpu_lease::executor_down(const caf::actor_addr& address, const caf::error& why) {
  lease_actions actions;
  auto what = from_error(system(), why);
  // The words by which an attempt tells the loss of a machine from that of an executor.
  auto text = what.code == errc::node_lost ? what.what : "its executor has ended";
  for (uint32_t gpu = 0; gpu < executors_.size(); ++gpu) {
    auto& e = executors_[gpu];
    if (caf::actor_cast<caf::actor_addr>(e.pointer) != address)
      continue;
    e.pointer = nullptr;
    e.handle = nullptr;
    table_.on_device_down(gpu, text, now(), actions);
  }
  perform(actions);
  for (uint32_t gpu = 0; gpu < executors_.size(); ++gpu)
    if (!executors_[gpu].pointer)
      close_lease(gpu);
}

} // namespace gristmill
