#include "actors/gpu_sleep.hpp"

#include <algorithm>
#include <fmt/format.h>

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
  if (running_)
    running_->reply.deliver(ending);
  for (auto& [token, reply] : finishing_)
    reply.deliver(ending);
  running_.reset();
  finishing_.clear();
  broker_.close();
  settings_.events.close();
  settings_.broker = nullptr;
}

caf::result<measurement> gpu_sleep::on_measure(const measure_request& what) {
  if (what.under.gpu != settings_.gpu)
    return to_error({errc::invalid_input,
      fmt::format(
        "{} is GPU {}, the lease is for GPU {}", settings_.name, settings_.gpu, what.under.gpu)});
  if (what.under.token <= fence_)
    return to_error({errc::lease_expired,
      fmt::format("token {} no longer holds: {} has seen token {}", what.under.token,
        settings_.name, fence_)});
  if (running_)
    return to_error({errc::refused,
      fmt::format(
        "{} still sleeps under token {}", settings_.name, running_->request.under.token)});
  fence_ = what.under.token;
  auto reply = make_response_promise<measurement>();
  auto now = clock().now();
  running_ = session{what, reply, now, now + std::min(settings_.duration, what.under.term), now,
    now + settings_.ttl / 3};
  broker_.active(what.under.token);
  arm();
  return reply;
}

void gpu_sleep::arm() {
  auto due = std::min(running_->ends, running_->renew_due);
  seam::tell_later(this, std::max(due - clock().now(), caf::actor_clock::duration_type{0}),
    gpu_actor{this}, tick{++generation_});
}

void gpu_sleep::on_timer() {
  auto now = clock().now();
  if (now >= running_->ends) {
    finish("done");
    return;
  }
  if (now - running_->renewed >= settings_.ttl / 5 * 4) {
    finish("the broker does not answer", lease_outcome::infrastructure);
    return;
  }
  if (now >= running_->renew_due) {
    running_->renew_due = now + settings_.ttl / 3;
    auto token = running_->request.under.token;
    broker_.renew(token, std::chrono::nanoseconds{0}, [this, token, now](const lease_ack& ack) {
      if (!running_ || running_->request.under.token != token)
        return;
      if (ack.applied)
        running_->renewed = now;
      else
        finish("not renewed", lease_outcome::infrastructure);
    });
  }
  arm();
}

void gpu_sleep::on_revoke(const lease_revoke& what) {
  fence_ = std::max(fence_, what.token);
  if (running_ && running_->request.under.token <= what.token)
    finish(
      "revoked", lease_outcome::infrastructure); // Nothing runs, so nothing has to be ended first.
  else if (finishing_.count(what.token) == 0)
    broker_.verified(what.token);
}

void gpu_sleep::finish(const std::string& reason, lease_outcome outcome) {
  auto over = std::move(*running_);
  running_.reset();
  auto token = over.request.under.token;
  finishing_.emplace(token, over.reply);
  broker_.finish(token, reason, outcome, {}, [this, over, token](bool valid) {
    auto found = finishing_.find(token);
    if (found == finishing_.end())
      return;
    auto reply = std::move(found->second);
    finishing_.erase(found);
    if (!valid) {
      reply.deliver(to_error({errc::lease_expired,
        fmt::format("token {} no longer holds: the broker had taken it back", token)}));
      return;
    }
    measurement slept;
    slept.attempt = over.request.attempt;
    slept.gpu = settings_.gpu;
    slept.token = token;
    slept.device = settings_.model;
    slept.origin = time_origin::not_a_measurement;
    slept.held = clock().now() - over.began;
    event e{.kind = "measured",
      .problem = slept.attempt.problem,
      .attempt = to_string(slept.attempt),
      .candidate = over.request.candidate.hash,
      .gpu = settings_.name,
      .token = token,
      .reason = "NOT A MEASUREMENT",
      .data = fmt::format(R"({{"held_ns":{}}})", slept.held.count())};
    settings_.events.note(this, std::move(e));
    reply.deliver(std::move(slept));
  });
}

} // namespace gristmill
