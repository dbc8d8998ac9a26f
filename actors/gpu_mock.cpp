#include "actors/gpu_mock.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

failure lease_over(uint64_t token, const std::string& reason) {
  return {errc::lease_expired, fmt::format("token {} no longer holds: {}", token, reason)};
}

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

} // namespace

gpu_mock::gpu_mock(caf::actor_config& config, gpu_mock_config settings)
  : gpu_actor::base(config), settings_(std::move(settings)),
    broker_(this, settings_.broker, settings_.gpu, settings_.model, settings_.boot) {}

gpu_actor::behavior_type gpu_mock::make_behavior() {
  seam::end_on_exception(this);
  // A child of the executor before this one may still be dying: until it is gone, nobody may get
  // the device.
  seam::ask(this, settings_.child_front, device_quiet_query{settings_.name})
    .then([this](const device_quiet&) { broker_.up(); },
      [this](const caf::error& why) {
        broker_.down("whether a child is left cannot be told: " + seam::show(system(), why));
      });
  return {
    [this](const measure_request& what) { return on_measure(what); },
    [this](const lease_revoke& what) { on_revoke(what); },
    [this](const probe_order& what) { on_probe(what); },
    [this](const tick& due) {
      if (due.generation == session_tick_)
        on_timer();
      else if (due.generation == probe_tick_)
        probed(probe_tick_, {probe_outcome::could_not, "no answer in time"});
    },
  };
}

void gpu_mock::on_exit() {
  failure ending{errc::shutting_down, settings_.name + " ends"};
  if (running_) {
    seam::post(settings_.child_front, child_cancel{running_->child.id, false});
    if (!running_->stuck)
      running_->reply.deliver(to_error(ending));
  }
  if (canary_child_ != 0)
    seam::post(settings_.child_front, child_cancel{canary_child_, false});
  for (auto& [token, reply] : finishing_)
    reply.deliver(to_error(ending));
  running_.reset();
  finishing_.clear();
  broker_.close();
  settings_.events.close();
  settings_.broker = nullptr;
  settings_.child_front = nullptr;
}

// ---- a measurement
// -------------------------------------------------------------------------------

caf::result<measurement> gpu_mock::on_measure(const measure_request& what) {
  if (what.under.gpu != settings_.gpu)
    return to_error({errc::invalid_input,
      fmt::format(
        "{} is GPU {}, the lease is for GPU {}", settings_.name, settings_.gpu, what.under.gpu)});
  auto token = what.under.token;
  if (token <= fence_)
    return to_error(lease_over(token, fmt::format("{} has seen token {}", settings_.name, fence_)));
  if (running_)
    return to_error({errc::refused,
      fmt::format("{} still ends what ran under token {}", settings_.name, running_->token())});
  fence_ = token;
  auto now = clock().now();
  session next{what, {}, make_response_promise<measurement>(), now, now, now + settings_.ttl / 3,
    ladder{settings_.ladder}, now + what.under.term, false, {}, false};
  auto reply = next.reply;
  broker_.active(token);
  // The loop's own deadline is behind the last step of the ladder.
  auto child = settings_.steps.begin(what, what.under.term + settings_.ladder.kill);
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

void gpu_mock::on_child(uint64_t token, child_result ended) {
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
  finish(std::move(over), std::move(measured), how.reason, how.outcome);
}

void gpu_mock::on_child_lost(uint64_t token, const caf::error& why) {
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
  broker_.down("what started its children has ended: " + what.what);
  failure told{errc::child_failed, what.what};
  if (!running_->stuck)
    running_->reply.deliver(to_error(told));
  running_.reset();
  quit(to_error(told));
}

void gpu_mock::finish(
  session over, measurement measured, const std::string& reason, lease_outcome outcome) {
  auto token = over.token();
  finishing_.emplace(token, over.reply);
  // The next request may come before these answers: the grant that makes it possible is sent first.
  // The loop has seen the whole process group go, or nothing was started: that is what there is to
  // verify on a device that keeps no state between children.
  broker_.finish(token, reason, outcome, {},
    [this, over = std::move(over), measured = std::move(measured)](
      bool valid) { answer(over, measured, valid); });
}

void gpu_mock::answer(const session& over, measurement measured, bool still_valid) {
  auto token = over.token();
  auto found = finishing_.find(token);
  if (found == finishing_.end())
    return;
  auto reply = std::move(found->second);
  finishing_.erase(found);
  measured.attempt = over.request.attempt;
  measured.gpu = settings_.gpu;
  measured.token = token;
  measured.held = clock().now() - over.began;
  event e{.kind = "measured",
    .problem = measured.attempt.problem,
    .attempt = to_string(measured.attempt),
    .candidate = over.request.candidate.hash,
    .gpu = settings_.name,
    .token = token,
    .reason = over.revoked.empty() ? measured.failure_text : "revoked: " + over.revoked,
    .data = fmt::format(R"({{"held_ns":{}}})", measured.held.count())};
  settings_.events.note(this, std::move(e));
  if (!over.revoked.empty())
    reply.deliver(to_error(lease_over(token, over.revoked)));
  else if (!still_valid)
    reply.deliver(to_error(lease_over(token, "the broker had taken it back")));
  else
    reply.deliver(std::move(measured));
}

// ---- taken back, too late
// ------------------------------------------------------------------------

void gpu_mock::on_revoke(const lease_revoke& what) {
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

void gpu_mock::take_back(std::string reason) {
  auto& s = *running_;
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

void gpu_mock::on_timer() {
  if (!running_ || running_->stuck)
    return;
  renew();
  climb();
}

void gpu_mock::renew() {
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
  // The runner works from its first to its last moment, so the device is never idle meanwhile.
  broker_.renew(
    s.token(), std::chrono::nanoseconds{0}, [this, token = s.token(), now](const lease_ack& ack) {
      if (!running_ || running_->stuck || running_->token() != token)
        return;
      if (ack.applied)
        running_->renewed = now;
      else if (running_->revoked.empty())
        take_back("not renewed: " + ack.note);
    });
}

void gpu_mock::climb() {
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

void gpu_mock::give_up() {
  if (running_->stuck)
    return;
  running_->stuck = true;
  auto text =
    fmt::format("the runner under token {} cannot be ended; a person must look", running_->token());
  broker_.down(text);
  running_->reply.deliver(to_error({errc::timed_out, text}));
}

void gpu_mock::arm() {
  const auto& s = *running_;
  auto due = s.climb_from;
  if (s.hung || !s.revoked.empty())
    due += s.climb.due();
  else
    due = std::min({due, s.renew_due, s.renewed + settings_.ttl / 5 * 4});
  session_tick_ = ++generation_;
  seam::tell_later(this, std::max(due - clock().now(), caf::actor_clock::duration_type{0}),
    gpu_actor{this}, tick{session_tick_});
}

// ---- probes
// --------------------------------------------------------------------------------------

void gpu_mock::on_probe(const probe_order& order) {
  if (running_) {
    broker_.probed({probe_outcome::could_not,
      fmt::format("something still runs under token {}", running_->token())});
    return;
  }
  auto probe = probe_tick_ = ++generation_;
  seam::tell_later(this, order.limit, gpu_actor{this}, tick{probe});
  seam::ask(this, settings_.child_front, device_quiet_query{settings_.name})
    .then([this, probe, limit = order.limit](const device_quiet&) { run_canary(probe, limit); },
      [this, probe](const caf::error& why) {
        probed(probe, {probe_outcome::could_not, seam::show(system(), why)});
      });
}

void gpu_mock::run_canary(uint64_t probe, std::chrono::nanoseconds limit) {
  if (probe != probe_tick_)
    return;
  if (!settings_.steps.canary) {
    probed(probe, {});
    return;
  }
  auto child = settings_.steps.canary(limit);
  if (!child) {
    probed(probe, {probe_outcome::could_not, child.error().what});
    return;
  }
  child->device = settings_.name;
  canary_child_ = child->id;
  seam::ask(this, settings_.child_front, *child)
    .then(
      [this, probe, started = *child](const child_result& ended) {
        canary_child_ = 0;
        probed(probe, settings_.steps.canary_end(started, ended));
      },
      [this, probe](const caf::error& why) {
        canary_child_ = 0;
        probed(probe, {probe_outcome::could_not, seam::show(system(), why)});
      });
}

void gpu_mock::probed(uint64_t probe, probe_report found) {
  if (probe != probe_tick_)
    return; // Answered already.
  probe_tick_ = 0;
  if (canary_child_ != 0)
    seam::tell(this, settings_.child_front, child_cancel{canary_child_, false});
  broker_.probed(std::move(found));
}

} // namespace gristmill
