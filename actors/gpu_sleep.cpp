#include "actors/gpu_sleep.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

gpu_sleep::gpu_sleep(caf::actor_config& config, gpu_sleep_config settings)
  : gpu_actor::base(config), settings_(std::move(settings)),
    broker_(this, settings_.broker, settings_.gpu, settings_.model, settings_.boot) {}

gpu_actor::behavior_type gpu_sleep::make_behavior() {
  seam::end_on_exception(this);
  broker_.up();
  return {
    [this](const measure_request& what) { return on_measure(what); },
    [this](const lease_revoke& what) { on_revoke(what); },
    [this](const probe_order&) {
      // Nothing runs here at any time but one sleep.
      broker_.probed(
        running_ ? probe_report{probe_outcome::could_not, "a sleep is going on"} : probe_report{});
    },
    [this](const tick& due) {
      if (running_ && due.generation == generation_)
        on_timer();
    },
  };
}

void gpu_sleep::on_exit() {
  auto ending = to_error({errc::shutting_down, settings_.name + " ends"});
  if (running_ && running_->reply.pending())
    running_->reply.deliver(ending);
  for (auto& [token, reply] : finishing_)
    if (reply.pending())
      reply.deliver(ending);
  running_.reset();
  finishing_.clear();
  broker_.close();
  settings_.events.close();
  settings_.broker = nullptr;
}

executor_state gpu_sleep::state() const {
  executor_state out{settings_.name, settings_.gpu, fence_, {}, false};
  if (running_) {
    const auto& s = *running_;
    out.lease = executor_state::open_lease{s.token(), s.request.part,
      s.idle_since && !s.reply.pending(), false, clock().now() >= s.term_ends};
  }
  return out;
}

caf::result<measurement> gpu_sleep::on_measure(const measure_request& what) {
  auto place = admit(state(), what);
  if (!place)
    return to_error(place.error());
  if (*place == admission::next_part)
    return on_next_part(what);
  auto token = what.under.token;
  fence_ = token;
  auto reply = make_response_promise<measurement>();
  auto now = clock().now();
  auto term_ends = now + what.under.term;
  running_ = session{what, reply, now, term_ends, std::min(now + settings_.duration, term_ends),
    now, now + settings_.ttl / 3, {}};
  broker_.active(token);
  arm();
  return reply;
}

caf::result<measurement> gpu_sleep::on_next_part(const measure_request& what) {
  auto& s = *running_;
  s.request = what;
  s.reply = make_response_promise<measurement>();
  s.idle_since.reset();
  s.ends = std::min(clock().now() + settings_.duration, s.term_ends);
  arm();
  return s.reply;
}

void gpu_sleep::arm() {
  auto due = std::min(running_->ends, running_->renew_due);
  seam::tell_later(this, std::max(due - clock().now(), caf::actor_clock::duration_type{0}),
    gpu_actor{this}, tick{++generation_});
}

void gpu_sleep::on_timer() {
  auto now = clock().now();
  if (now >= running_->ends) {
    if (running_->idle_since)
      finish(now >= running_->term_ends ? "timeout" : "idle");
    else
      on_part_end();
    return;
  }
  if (now - running_->renewed >= settings_.ttl / 5 * 4) {
    finish("the broker does not answer", lease_outcome::infrastructure);
    return;
  }
  if (now >= running_->renew_due)
    renew();
  if (running_)
    arm();
}

void gpu_sleep::renew() {
  auto now = clock().now();
  auto& s = *running_;
  s.renew_due = now + settings_.ttl / 3;
  std::chrono::nanoseconds idle{0};
  if (s.idle_since)
    idle = now - *s.idle_since;
  broker_.renew(s.token(), idle, [this, token = s.token(), now](const lease_ack& ack) {
    if (!running_ || running_->token() != token)
      return;
    if (ack.applied)
      running_->renewed = now;
    else
      finish("not renewed", lease_outcome::infrastructure);
  });
}

void gpu_sleep::on_part_end() {
  if (running_->request.last) {
    finish("done");
    return;
  }
  auto now = clock().now();
  running_->idle_since = now;
  running_->ends = std::min(now + settings_.idle_limit, running_->term_ends);
  arm();
  // A release tells whether the lease held to the end of a measurement; here a renewal does.
  broker_.renew(running_->token(), std::chrono::nanoseconds{0},
    [this, token = running_->token(), part = running_->request.part, now](const lease_ack& ack) {
      if (!running_ || running_->token() != token || running_->request.part != part)
        return; // Ended meanwhile; the asker has been told.
      if (!ack.applied) {
        finish("not renewed", lease_outcome::infrastructure);
        return;
      }
      auto& s = *running_;
      s.renewed = now;
      auto slept = note_slept(s);
      s.began = clock().now();
      std::exchange(s.reply, promise{}).deliver(std::move(slept));
    });
}

void gpu_sleep::on_revoke(const lease_revoke& what) {
  fence_ = std::max(fence_, what.token);
  if (running_ && running_->token() <= what.token)
    finish(
      "revoked", lease_outcome::infrastructure); // Nothing runs, so nothing has to be ended first.
  else if (finishing_.count(what.token) == 0)
    broker_.verified(what.token);
}

void gpu_sleep::finish(const std::string& reason, lease_outcome outcome) {
  auto over = std::move(*running_);
  running_.reset();
  auto token = over.token();
  finishing_.emplace(token, over.reply);
  broker_.finish(token, reason, outcome, [this, over, token](bool valid) {
    auto found = finishing_.find(token);
    if (found == finishing_.end())
      return;
    auto reply = std::move(found->second);
    finishing_.erase(found);
    if (!reply.pending())
      return; // All its parts have been answered.
    if (valid)
      reply.deliver(note_slept(over));
    else
      reply.deliver(to_error(lease_over(token, "the broker had taken it back")));
  });
}

measurement gpu_sleep::note_slept(const session& over) {
  measurement slept;
  slept.attempt = over.request.attempt;
  slept.gpu = settings_.gpu;
  slept.token = over.token();
  slept.part = over.request.part;
  slept.device = settings_.model;
  slept.origin = time_origin::not_a_measurement;
  slept.held = clock().now() - over.began;
  event e{.kind = "measured",
    .problem = slept.attempt.problem,
    .attempt = to_string(slept.attempt),
    .candidate = over.request.candidate.hash,
    .gpu = settings_.name,
    .token = slept.token,
    .reason = "NOT A MEASUREMENT",
    .data = fmt::format(R"({{"held_ns":{},"part":{}}})", slept.held.count(), slept.part)};
  settings_.events.note(this, std::move(e));
  return slept;
}

} // namespace gristmill
