#include "actors/worker.hpp"

#include "actors/peer_loss.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>

namespace gristmill {

worker::worker(caf::actor_config& actor, worker_config config)
  : worker_actor::base(actor), config_(std::move(config)), mind_(config_.worker, config_.limits) {}

void worker::on_exit() {
  executor_ = nullptr;
  held_.reset();
  config_.planner = nullptr;
  config_.proposer = nullptr;
  config_.compiler = nullptr;
  config_.oracle = nullptr;
  config_.lease = nullptr;
  config_.scorer = nullptr;
  config_.on_assigned = nullptr;
  config_.moves = nullptr;
}

std::chrono::nanoseconds worker::now() {
  return clock().now() - config_.run_start;
}

worker_actor::behavior_type worker::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const start_working&) { ask_for_work(); },
    [this](const lease_granted& granted, const caf::strong_actor_ptr& executor) {
      executor_ = caf::actor_cast<gpu_actor>(executor);
      happened(granted);
    },
    [this](const lease_ended& ended) { happened(ended); },
    [this](const peer_restarted& peer, const caf::strong_actor_ptr& handle) {
      if (peer.which == role::compiler)
        config_.compiler = caf::actor_cast<compiler_actor>(handle);
      else if (peer.which == role::proposer)
        config_.proposer = caf::actor_cast<proposer_actor>(handle);
      else if (peer.which == role::oracle)
        config_.oracle = caf::actor_cast<oracle_actor>(handle);
      successor_came(peer.which);
    },
    [this](const tick& due) {
      if (due.generation != timer_)
        return; // Of a step that is over.
      armed_for_.reset();
      happened(attempt_due{});
    },
  };
}

void worker::ask_for_work() {
  if (config_.moves && config_.moves()) {
    quit(to_error({errc::node_lost, config_.worker + " moves to a node that has room"}));
    return;
  }
  seam::ask(this, config_.planner, work_request{config_.worker})
    .then(
      [this](const work_reply& reply) {
        if (reply.kind == work_kind::stop) {
          spdlog::debug("{} stops: {}", config_.worker, reply.reason);
          return; // Alive until the supervisor ends it; it holds nothing.
        }
        if (config_.on_assigned)
          config_.on_assigned(reply.work);
        happened(reply.work);
      },
      [this](const caf::error& error) {
        spdlog::debug("{}: no more work: {}", config_.worker, seam::show(system(), error));
      });
}

void worker::happened(const attempt_event& what) {
  for (const auto& command : mind_.step(what, now()))
    std::visit([this](const auto& c) { carry_out(c); }, command);
  arm_deadline();
}

void worker::arm_deadline() {
  auto due = mind_.next_deadline();
  if (due == armed_for_)
    return;
  armed_for_ = due;
  ++timer_;
  if (due)
    seam::tell_later(
      this, std::max(*due - now(), std::chrono::nanoseconds{0}), worker_actor{this}, tick{timer_});
}

template <class Reply, class Handle, class Request>
void worker::step_by(const Handle& whom, const Request& request, const attempt_id& id) {
  auto during = mind_.state();
  seam::ask(this, whom, request)
    .then(
      [this, id](const Reply& reply) {
        happened(answered<Reply>{id, reply});
      },
      [this, id, during](const caf::error& error) { failed(id, during, error); });
}

template <class Reply, class Handle, class Request>
void worker::step_by_replaceable(const Handle& whom, const Request& request, const attempt_id& id) {
  auto during = mind_.state();
  seam::ask(this, whom, request)
    .then(
      [this, id](const Reply& reply) {
        happened(answered<Reply>{id, reply});
      },
      [this, id, during, request, &whom, asked = whom](const caf::error& error) {
        if (!found_nobody(error) || mind_.state() != during || mind_.work().id != id)
          failed(id, during, error);
        else if (whom != asked)
          carry_out(request); // The successor came first.
        else
          held_ = request;
      });
}

void worker::failed(
  const attempt_id& id, attempt_state during, const caf::error& why, uint64_t token) {
  happened(step_failed{id, from_error(system(), why), during, token});
}

namespace {

role done_by(const propose_request&) {
  return role::proposer;
}
role done_by(const compile_request&) {
  return role::compiler;
}
role done_by(const prepare_request&) {
  return role::oracle;
}

} // namespace

void worker::successor_came(role which) {
  if (!held_ || which != std::visit([](const auto& request) { return done_by(request); }, *held_))
    return;
  auto again = *std::exchange(held_, std::nullopt);
  std::visit([this](const auto& request) { carry_out(request); }, again);
}

void worker::carry_out(const propose_request& command) {
  step_by_replaceable<proposal>(config_.proposer, command, command.work.id);
}

void worker::carry_out(const claim_request& command) {
  step_by<claim_reply>(config_.planner, command, command.attempt);
}

void worker::carry_out(const compile_request& command) {
  step_by_replaceable<compiled_candidate>(config_.compiler, command, command.attempt);
}

void worker::carry_out(const lease_request& command) {
  seam::ask(this, config_.lease, command)
    .then([](const lease_ticket&) { /* The grant comes by itself. */ },
      [this, id = mind_.work().id, during = mind_.state()](
        const caf::error& error) { failed(id, during, error); });
}

void worker::carry_out(const lease_command& command) {
  seam::ask(this, config_.lease, command)
    .then([](const lease_ack&) { /* A stale command does nothing, and that is well. */ },
      [this](const caf::error& error) {
        spdlog::warn(
          "{}: the broker did not take a command: {}", config_.worker, seam::show(system(), error));
      });
}

void worker::carry_out(const measure_request& command) {
  seam::ask(this, executor_, command)
    .then([this](const measurement& measured) { happened(measured); },
      [this, id = command.attempt, during = mind_.state(), token = command.under.token](
        const caf::error& error) { failed(id, during, error, token); });
}

void worker::carry_out(const judge_request& command) {
  step_by<verdict>(config_.scorer, command, command.attempt);
}

void worker::carry_out(const refused_request& command) {
  step_by<verdict>(config_.scorer, command, command.attempt);
}

void worker::carry_out(const prepare_request& command) {
  step_by_replaceable<prepared_problem>(config_.oracle, command, mind_.work().id);
}

void worker::carry_out(const draw_over& command) {
  if (config_.oracle) // One that has died meanwhile leaves the files to the end of the run.
    seam::tell(this, config_.oracle, command);
}

void worker::carry_out(const attempt_summary& command) {
  auto id = command.id;
  executor_ = nullptr;
  held_.reset();
  seam::ask(this, config_.planner, command)
    .then(
      [this, id] {
        happened(summary_stored{id});
        ask_for_work();
      },
      [this, id](const caf::error& error) {
        // Without a planner the run is ending; the supervisor knows.
        spdlog::debug(
          "{}: the summary was not taken: {}", config_.worker, seam::show(system(), error));
        happened(summary_stored{id});
      });
}

} // namespace gristmill
