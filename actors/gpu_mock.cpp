#include "actors/gpu_mock.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

failure lease_over(uint64_t token, const std::string& reason) {
  return {errc::lease_expired, fmt::format("token {} no longer holds: {}", token, reason)};
}

/// The words of `lease_command::reason`.
std::string release_reason(const measurement& measured) {
  if (!measured.failure_text.empty())
    return "infrastructure";
  auto reason = std::string{"done"};
  for (const auto& w : measured.workloads) {
    if (w.status == verdict_status::runtime_error)
      return "fault";
    if (w.status == verdict_status::timeout)
      reason = "timeout";
  }
  return reason;
}

} // namespace

gpu_mock::gpu_mock(caf::actor_config& config, gpu_mock_config settings)
  : gpu_actor::base(config), settings_(std::move(settings)),
    broker_(this, settings_.broker, settings_.gpu, settings_.model) {}

gpu_actor::behavior_type gpu_mock::make_behavior() {
  seam::end_on_exception(this);
  broker_.up();
  return {
    [this](const measure_request& what) { return on_measure(what); },
    [this](const lease_revoke& what) { on_revoke(what); },
    [this](const tick& due) {
      if (due.generation == generation_)
        on_deadline();
    },
  };
}

void gpu_mock::on_exit() {
  failure ending{errc::shutting_down, settings_.name + " ends"};
  if (running_) {
    seam::post(settings_.child_front, child_cancel{running_->child.id});
    if (!running_->stuck)
      running_->reply.deliver(to_error(ending));
  }
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
      fmt::format(
        "{} still ends what ran under token {}", settings_.name, running_->request.under.token)});
  fence_ = token;
  session next{what, {}, make_response_promise<measurement>(), clock().now(), {}, false};
  auto reply = next.reply;
  broker_.active(token);
  auto child = settings_.steps.begin(what, what.under.term);
  if (!child) {
    measurement failed;
    failed.failure_text = child.error().what;
    finish(std::move(next), std::move(failed), "infrastructure");
    return reply;
  }
  next.child = std::move(*child);
  running_ = std::move(next);
  seam::ask(this, settings_.child_front, running_->child)
    .then([this, token](const child_result& ended) { on_child(token, ended); },
      [this, token](const caf::error& why) { on_child_lost(token, why); });
  term_over_ = false;
  arm(what.under.term);
  return reply;
}

void gpu_mock::on_child(uint64_t token, const child_result& ended) {
  if (!running_ || running_->request.under.token != token)
    return;
  auto over = std::move(*running_);
  running_.reset();
  auto measured = settings_.steps.end(over.request, over.child, ended);
  if (over.stuck) {
    // The broker believes the device to be down; now nothing of the token runs any more.
    broker_.up();
    return;
  }
  auto reason = release_reason(measured);
  finish(std::move(over), std::move(measured), reason);
}

void gpu_mock::on_child_lost(uint64_t token, const caf::error& why) {
  if (!running_ || running_->request.under.token != token)
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

void gpu_mock::finish(session over, measurement measured, const std::string& reason) {
  auto token = over.request.under.token;
  finishing_.emplace(token, over.reply);
  // The next request may come before these answers: the grant that makes it possible is sent first.
  broker_.finish(
    token, reason, [this, over = std::move(over), measured = std::move(measured)](bool valid) {
      answer(over, measured, valid);
    });
}

void gpu_mock::answer(const session& over, measurement measured, bool still_valid) {
  auto token = over.request.under.token;
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
  if (running_ && !running_->stuck && running_->request.under.token <= what.token) {
    if (running_->revoked.empty())
      seam::tell(this, settings_.child_front, child_cancel{running_->child.id});
    running_->revoked = what.reason.empty() ? "revoked" : what.reason;
    return; // `verified` follows the end of the child.
  }
  // The broker revokes what was released, too; that `verified` is on its way.
  if (finishing_.count(what.token) != 0)
    return;
  if (!running_ || running_->request.under.token > what.token)
    broker_.verified(what.token);
}

void gpu_mock::on_deadline() {
  if (!running_ || running_->stuck)
    return;
  auto token = running_->request.under.token;
  if (!term_over_) {
    // The loop ends the child by itself; this is for one that still waits for its turn there.
    term_over_ = true;
    seam::tell(this, settings_.child_front, child_cancel{running_->child.id});
    arm(settings_.end_grace);
    return;
  }
  running_->stuck = true;
  auto text = fmt::format("the runner under token {} has not ended {} s after its term", token,
    std::chrono::duration_cast<std::chrono::seconds>(settings_.end_grace).count());
  broker_.down(text);
  running_->reply.deliver(to_error({errc::timed_out, text}));
}

void gpu_mock::arm(std::chrono::nanoseconds delay) {
  seam::tell_later(this, delay, gpu_actor{this}, tick{++generation_});
}

} // namespace gristmill
