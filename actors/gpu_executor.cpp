#include "actors/gpu_executor.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

/// Between two questions whether a device is quiet: one that is answered at once must not be asked
/// without a pause.
constexpr std::chrono::seconds ask_again_after{1};

struct ending {
  /// The words of `lease_command::reason`.
  std::string reason;
  lease_outcome outcome = lease_outcome::fine;
};

/// What the runner saw, never what the asker says.
ending ending_of(const measurement& measured, const child_result& ended, bool hung, bool revoked) {
  if (ended.group_left || hung || ended.end == child_end::deadline
    || ended.end == child_end::silent)
    return {"timeout", lease_outcome::hang};
  if (revoked)
    return {"revoked", lease_outcome::infrastructure};
  if (ended.end == child_end::no_done || ended.end == child_end::protocol_error)
    return {"fault", lease_outcome::fault}; // The runner itself was struck down.
  if (!measured.failure_text.empty())
    return {"infrastructure", lease_outcome::infrastructure};
  ending out{"done", lease_outcome::fine};
  for (const auto& w : measured.workloads) {
    if (w.status == verdict_status::runtime_error)
      return {"fault", lease_outcome::fault};
    if (w.status == verdict_status::timeout)
      out = {"timeout", lease_outcome::hang};
  }
  return out;
}

probe_answer answer_of(const child_result& ended) {
  probe_answer out;
  auto by_itself = ended.end == child_end::done || ended.end == child_end::no_done;
  if (by_itself && !ended.group_left)
    out.status = ended.status;
  out.output = ended.log;
  return out;
}

} // namespace

gpu_executor::gpu_executor(caf::actor_config& config, gpu_executor_config settings)
  : gpu_actor::base(config), settings_(std::move(settings)),
    broker_(this, settings_.broker, settings_.gpu, settings_.model, settings_.boot) {}

gpu_actor::behavior_type gpu_executor::make_behavior() {
  seam::end_on_exception(this);
  come_up();
  return {
    [this](const measure_request& what) { return on_measure(what); },
    [this](const lease_revoke& what) { on_revoke(what); },
    [this](const probe_order& what) { on_probe(what); },
    [this](const tick& due) {
      if (due.generation == session_tick_)
        on_timer();
      else if (due.generation == come_up_tick_)
        come_up();
      else
        end_look(due.generation, {probe_outcome::could_not, "no answer in time"});
    },
  };
}

void gpu_executor::come_up() {
  // A child of the executor before this one may still be dying: until it is gone, nobody may get
  // the device.
  seam::ask(this, settings_.child_front, device_quiet_query{settings_.name})
    .then([this](const device_quiet&) { broker_.up(); },
      [this](const caf::error& why) {
        // A front on another machine does not wait without end, as ours does.
        if (from_error(system(), why).code == errc::timed_out)
          seam::tell_later(
            this, ask_again_after, gpu_actor{this}, tick{come_up_tick_ = ++generation_});
        else
          broker_.down("whether a child is left cannot be told: " + seam::show(system(), why));
      });
}

void gpu_executor::on_exit() {
  failure ending{settings_.when_ended, settings_.name + " ends"};
  if (running_) {
    if (!running_->idle_since)
      seam::post(settings_.child_front, child_cancel{running_->child.id, false});
    if (running_->reply.pending())
      running_->reply.deliver(to_error(ending));
  }
  if (look_ && look_->child != 0)
    seam::post(settings_.child_front, child_cancel{look_->child, false});
  for (auto& [token, reply] : finishing_)
    if (reply.pending())
      reply.deliver(to_error(ending));
  running_.reset();
  look_.reset();
  finishing_.clear();
  broker_.close();
  settings_.events.close();
  settings_.broker = nullptr;
  settings_.child_front = nullptr;
}

// ---- a measurement
// -------------------------------------------------------------------------------

executor_state gpu_executor::state() const {
  executor_state out{settings_.name, settings_.gpu, fence_, {}, look_.has_value()};
  if (running_) {
    const auto& s = *running_;
    out.lease =
      executor_state::open_lease{s.token(), s.request.part, s.idle_since && !s.reply.pending(),
        s.hung || s.stuck || !s.revoked.empty(), clock().now() >= s.climb_from};
  }
  return out;
}

caf::result<measurement> gpu_executor::on_measure(const measure_request& what) {
  auto place = admit(state(), what);
  if (!place)
    return to_error(place.error());
  if (*place == admission::next_part)
    return on_next_part(what);
  auto token = what.under.token;
  fence_ = token;
  auto now = clock().now();
  session first{what, {}, make_response_promise<measurement>(), now, now, now + settings_.ttl / 3,
    ladder{settings_.ladder}, now + what.under.term, false, {}, false, {}};
  broker_.active(token);
  return start_part(std::move(first));
}

caf::result<measurement> gpu_executor::on_next_part(const measure_request& what) {
  auto next = std::move(*running_);
  running_.reset();
  next.request = what;
  next.reply = make_response_promise<measurement>();
  next.idle_since.reset();
  return start_part(std::move(next));
}

caf::result<measurement> gpu_executor::start_part(session next) {
  auto token = next.token();
  auto reply = next.reply;
  // The loop's own deadline is behind the last step of the ladder.
  auto child =
    settings_.steps.begin(next.request, next.climb_from - clock().now() + settings_.ladder.kill);
  if (!child) {
    measurement failed;
    failed.failure_text = child.error().what;
    finish(std::move(next), std::move(failed), "infrastructure", lease_outcome::infrastructure);
    return reply;
  }
  next.child = std::move(*child);
  next.child.device = settings_.name;
  running_ = std::move(next);
  seam::ask(this, settings_.child_front, running_->child)
    .then([this, token](const child_result& ended) { on_child(token, ended); },
      [this, token](const caf::error& why) { on_child_lost(token, why); });
  arm();
  return reply;
}

void gpu_executor::on_child(uint64_t token, child_result ended) {
  if (!running_ || running_->token() != token)
    return;
  if (ended.group_left) {
    give_up(); // For good: nobody will tell when they are gone.
    return;
  }
  auto over = std::move(*running_);
  running_.reset();
  // Whatever it said after the end of its term counts for nothing.
  if (over.hung)
    ended.end = child_end::deadline;
  auto measured = settings_.steps.end(over.request, over.child, ended);
  if (over.stuck) {
    // The broker believes the device to be lost; now nothing of the token runs any more.
    broker_.up_again();
    return;
  }
  auto how = ending_of(measured, ended, over.hung, !over.revoked.empty());
  if (!over.request.last && how.outcome == lease_outcome::fine) {
    keep_for_next_part(std::move(over), std::move(measured));
    return;
  }
  finish(std::move(over), std::move(measured), how.reason, how.outcome);
}

void gpu_executor::on_child_lost(uint64_t token, const caf::error& why) {
  if (!running_ || running_->token() != token)
    return;
  auto what = from_error(system(), why);
  if (what.code == errc::queue_full || what.code == errc::invalid_input) {
    // Refused, so it never started.
    child_result refused;
    refused.id = running_->child.id;
    refused.end = child_end::could_not_start;
    refused.log = what.what;
    on_child(token, refused);
    return;
  }
  // Whether the child still runs is not known, also when its front ends in good order, so nobody
  // else may have the device.
  bool lost = what.code == errc::node_lost;
  // Another machine has not got it to end; whoever comes after us waits until it has.
  bool hangs = what.code == errc::timed_out;
  broker_.down(lost || hangs ? what.what : "what started its children has ended: " + what.what);
  failure told{lost ? errc::node_lost : errc::child_failed, what.what};
  if (running_->reply.pending())
    running_->reply.deliver(to_error(told));
  running_.reset();
  quit(to_error(told));
}

void gpu_executor::finish(
  session over, measurement measured, const std::string& reason, lease_outcome outcome) {
  auto token = over.token();
  finishing_.emplace(token, over.reply);
  auto bad = outcome == lease_outcome::fault || outcome == lease_outcome::hang;
  auto commands = probe_commands(bad ? probe_occasion::suspicion : probe_occasion::after_lease);
  if (commands.empty()) {
    // The next request may come before these answers: the grant that makes it possible is sent
    // first. The loop has seen the whole process group go, or nothing was started.
    broker_.finish(token, reason, outcome,
      [this, over = std::move(over), measured = std::move(measured)](
        bool valid) { answer(over, measured, valid, {}); });
    return;
  }
  auto told = over.hung || !over.revoked.empty();
  auto released = broker_.release(token, reason, outcome);
  if (!told)
    broker_.ended(token, reason);
  start_look(std::move(commands), settings_.probe->limit(),
    [this, released, over = std::move(over), measured = std::move(measured)](probe_report found) {
      broker_.verified(over.token(), found, released,
        [this, over, measured, found](bool valid) { answer(over, measured, valid, found); });
    });
}

void gpu_executor::answer(
  const session& over, measurement measured, bool still_valid, const probe_report& found) {
  auto token = over.token();
  auto open = finishing_.find(token);
  if (open == finishing_.end())
    return;
  auto reply = std::move(open->second);
  finishing_.erase(open);
  if (!reply.pending())
    return; // All its parts have been answered.
  note_measured(over, measured);
  if (!over.revoked.empty())
    reply.deliver(to_error(lease_over(token, over.revoked)));
  else if (found.outcome == probe_outcome::failed)
    reply.deliver(to_error(lease_over(token, "the probe after it failed: " + found.detail)));
  else if (!still_valid)
    reply.deliver(to_error(lease_over(token, "the broker had taken it back")));
  else
    reply.deliver(std::move(measured));
}

void gpu_executor::note_measured(const session& over, measurement& measured) {
  measured.attempt = over.request.attempt;
  measured.gpu = settings_.gpu;
  measured.token = over.token();
  measured.part = over.request.part;
  measured.held = clock().now() - over.began;
  event e{.kind = "measured",
    .problem = measured.attempt.problem,
    .attempt = to_string(measured.attempt),
    .candidate = over.request.candidate.hash,
    .gpu = settings_.name,
    .token = over.token(),
    .reason = over.revoked.empty() ? measured.failure_text : "revoked: " + over.revoked,
    .data = fmt::format(R"({{"held_ns":{},"part":{}}})", measured.held.count(), over.request.part)};
  settings_.events.note(this, std::move(e));
}

// ---- between two parts
// --------------------------------------------------------------------------

void gpu_executor::keep_for_next_part(session over, measurement measured) {
  auto now = clock().now();
  auto token = over.token();
  auto part = over.request.part;
  over.idle_since = now;
  running_ = std::move(over);
  arm();
  // A release tells whether the lease held to the end of a measurement; here a renewal does.
  broker_.renew(token, std::chrono::nanoseconds{0},
    [this, token, part, now, measured = std::move(measured)](const lease_ack& ack) mutable {
      if (!running_ || running_->token() != token || running_->request.part != part)
        return; // Ended meanwhile; the asker has been told.
      auto& s = *running_;
      if (!ack.applied) {
        take_back("not renewed: " + ack.note);
        return;
      }
      s.renewed = now;
      s.renew_due = now + settings_.ttl / 3;
      note_measured(s, measured);
      s.began = clock().now();
      auto reply = std::exchange(s.reply, promise{});
      reply.deliver(std::move(measured));
      arm();
    });
}

void gpu_executor::end_kept(const std::string& reason, lease_outcome outcome, std::string why) {
  auto over = std::move(*running_);
  running_.reset();
  over.revoked = std::move(why); // Whoever still waits for an answer gets this one.
  finish(std::move(over), {}, reason, outcome);
}

void gpu_executor::on_idle_timer() {
  const auto& s = *running_;
  auto now = clock().now();
  if (now >= s.climb_from) {
    end_kept("timeout", lease_outcome::fine, "its term is over");
  } else if (now - *s.idle_since >= settings_.idle_limit) {
    end_kept("idle", lease_outcome::fine, "idle");
  } else {
    renew();
    if (running_)
      arm();
  }
}

// ---- taken back, too late
// ------------------------------------------------------------------------

void gpu_executor::on_revoke(const lease_revoke& what) {
  fence_ = std::max(fence_, what.token);
  if (running_ && !running_->stuck && running_->token() <= what.token) {
    take_back(what.reason.empty() ? "revoked" : what.reason);
    return; // `verified` follows the end of the child.
  }
  // The broker revokes what was released, too; that `verified` is on its way.
  if (finishing_.count(what.token) != 0)
    return;
  if (!running_ || running_->token() > what.token)
    broker_.verified(what.token);
}

void gpu_executor::take_back(std::string reason) {
  auto& s = *running_;
  if (s.idle_since) {
    end_kept("revoked", lease_outcome::infrastructure, std::move(reason));
    return; // Nothing runs, so nothing has to be ended first.
  }
  if (s.revoked.empty() && !s.hung) {
    // SIGTERM at once; the times between the steps stay.
    auto times = settings_.ladder;
    times.kill -= times.terminate;
    times.quarantine -= times.terminate;
    times.terminate = std::chrono::nanoseconds{0};
    s.climb = ladder{times};
    s.climb_from = clock().now();
  }
  s.revoked = std::move(reason);
  climb();
}

void gpu_executor::on_timer() {
  if (!running_ || running_->stuck)
    return;
  if (running_->idle_since) {
    on_idle_timer();
    return;
  }
  renew();
  climb();
}

void gpu_executor::renew() {
  auto& s = *running_;
  auto now = clock().now();
  if (s.hung || !s.revoked.empty())
    return;
  if (now - s.renewed >= settings_.ttl / 5 * 4) {
    take_back("the broker does not answer");
    return;
  }
  if (now < s.renew_due)
    return;
  s.renew_due = now + settings_.ttl / 3;
  // The runner works from its first to its last moment, so the device is idle between parts only.
  std::chrono::nanoseconds idle{0};
  if (s.idle_since)
    idle = now - *s.idle_since;
  broker_.renew(s.token(), idle, [this, token = s.token(), now](const lease_ack& ack) {
    if (!running_ || running_->stuck || running_->token() != token)
      return;
    if (ack.applied)
      running_->renewed = now;
    else if (running_->revoked.empty())
      take_back("not renewed: " + ack.note);
  });
}

void gpu_executor::climb() {
  auto& s = *running_;
  for (;;) {
    auto elapsed = clock().now() - s.climb_from;
    if (elapsed < elapsed.zero())
      break;
    auto step = s.climb.next(elapsed, {true, false, false, false});
    if (step == ladder_step::mark) {
      s.hung = s.revoked.empty();
      broker_.ended(s.token(), s.hung ? "its term is over" : s.revoked);
    } else if (step == ladder_step::terminate) {
      seam::tell(this, settings_.child_front, child_cancel{s.child.id, true});
    } else if (step == ladder_step::kill) {
      seam::tell(this, settings_.child_front, child_cancel{s.child.id, false});
    } else if (step == ladder_step::wait) {
      break;
    } else {
      give_up();
      return;
    }
  }
  arm();
}

void gpu_executor::give_up() {
  if (running_->stuck)
    return;
  running_->stuck = true;
  auto text =
    fmt::format("the runner under token {} cannot be ended; a person must look", running_->token());
  broker_.down(text);
  running_->reply.deliver(to_error({errc::timed_out, text}));
}

void gpu_executor::arm() {
  const auto& s = *running_;
  auto due = s.climb_from;
  if (s.hung || !s.revoked.empty())
    due += s.climb.due();
  else
    due = std::min({due, s.renew_due, s.renewed + settings_.ttl / 5 * 4});
  if (s.idle_since)
    due = std::min(due, *s.idle_since + settings_.idle_limit);
  session_tick_ = ++generation_;
  seam::tell_later(this, std::max(due - clock().now(), caf::actor_clock::duration_type{0}),
    gpu_actor{this}, tick{session_tick_});
}

// ---- probes
// --------------------------------------------------------------------------------------

std::vector<std::vector<std::string>> gpu_executor::probe_commands(probe_occasion why) const {
  if (!settings_.probe)
    return {};
  return settings_.probe->commands(settings_.name, why);
}

void gpu_executor::on_probe(const probe_order& order) {
  if (running_ || look_) {
    broker_.probed({probe_outcome::could_not,
      running_ ? fmt::format("something still runs under token {}", running_->token())
               : "it is being looked at already"});
    return;
  }
  auto limit = order.limit;
  if (settings_.probe)
    limit = std::min(limit, settings_.probe->limit());
  start_look(probe_commands(probe_occasion::suspicion), limit,
    [this](probe_report found) { broker_.probed(std::move(found)); });
}

void gpu_executor::start_look(std::vector<std::vector<std::string>> commands,
  std::chrono::nanoseconds limit, std::function<void(probe_report)> then) {
  auto tick_of = ++generation_;
  look_.emplace();
  look_->tick = tick_of;
  look_->deadline = clock().now() + limit;
  look_->commands.assign(commands.begin(), commands.end());
  look_->then = std::move(then);
  seam::tell_later(this, limit, gpu_actor{this}, tick{tick_of});
  seam::ask(this, settings_.child_front, device_quiet_query{settings_.name})
    .then([this, tick_of](const device_quiet&) { next_command(tick_of); },
      [this, tick_of](const caf::error& why) {
        end_look(tick_of, {probe_outcome::could_not, seam::show(system(), why)});
      });
}

void gpu_executor::next_command(uint64_t tick_of) {
  if (!look_ || look_->tick != tick_of)
    return;
  auto& l = *look_;
  if (l.commands.empty()) {
    probe_report found;
    if (!l.answers.empty())
      found = settings_.probe->judge(settings_.name, l.answers);
    end_look(tick_of, std::move(found));
    return;
  }
  if (!settings_.steps.command) {
    end_look(tick_of, {probe_outcome::could_not, "no commands can be run here"});
    return;
  }
  auto child = settings_.steps.command(l.commands.front(), l.deadline - clock().now());
  l.commands.pop_front();
  if (!child) {
    end_look(tick_of, {probe_outcome::could_not, child.error().what});
    return;
  }
  child->request.device = settings_.name;
  l.child = child->request.id;
  // The folder stays until the child has ended, also when nobody waits for its answer any more.
  seam::ask(this, settings_.child_front, child->request)
    .then(
      [this, tick_of, folder = child->folder](const child_result& ended) {
        if (!look_ || look_->tick != tick_of)
          return;
        look_->child = 0;
        look_->answers.push_back(answer_of(ended));
        next_command(tick_of);
      },
      [this, tick_of, folder = child->folder](const caf::error& why) {
        if (!look_ || look_->tick != tick_of)
          return;
        look_->child = 0;
        end_look(tick_of, {probe_outcome::could_not, seam::show(system(), why)});
      });
}

void gpu_executor::end_look(uint64_t tick_of, probe_report found) {
  if (!look_ || look_->tick != tick_of)
    return; // Answered already.
  auto over = std::move(*look_);
  look_.reset();
  if (over.child != 0)
    seam::tell(this, settings_.child_front, child_cancel{over.child, false});
  over.then(std::move(found));
}

} // namespace gristmill
