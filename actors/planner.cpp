#include "actors/planner.hpp"

#include "actors/peer_loss.hpp"
#include "actors/run_events.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace gristmill {

planner::planner(caf::actor_config& actor, planner_config config, portfolio mind)
  : planner_actor::base(actor), config_(std::move(config)), mind_(std::move(mind)),
    monitors_(this) {
  for (const auto& p : mind_.problems())
    if (p.state != problem_state::finished)
      to_prepare_.push_back(p.name);
  mind_.take_finished(); // What was finished before this start has been noted.
}

void planner::on_exit() {
  for (auto& w : waiting_)
    w.reply.deliver(to_error({errc::shutting_down, "the planner has ended"}));
  waiting_.clear();
  for (auto& p : plants_)
    p.reply.deliver(to_error({errc::shutting_down, "the planner has ended"}));
  plants_.clear();
  monitors_.clear();
  config_.oracle = nullptr;
  config_.scorer = nullptr;
  config_.supervisor = nullptr;
  config_.events.close();
}

std::chrono::nanoseconds planner::now() {
  return config_.events.since_start(clock().now());
}

planner_actor::behavior_type planner::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const work_request& request) -> caf::result<work_reply> {
      watch_worker(request.worker, current_sender()); // Making a promise clears the sender.
      auto reply = make_response_promise<work_reply>();
      waiting_.push_back({request.worker, reply});
      serve();
      return reply;
    },
    [this](const claim_request& request) {
      auto reply = mind_.claim(request);
      if (reply.granted)
        config_.events.note(this, claimed_event(request));
      return reply;
    },
    [this](const attempt_summary& summary) { on_summary(summary); },
    [this](const drain_request& request) {
      mind_.drain(request.reason);
      config_.events.note(this, {.kind = "drain", .reason = request.reason});
      serve();
    },
    [this](const planner_query&) { return mind_.snapshot(); },
    [this](const start_working&) {
      if (config_.mind.wall_budget.count() > 0)
        seam::tell_later(this,
          std::max(config_.mind.wall_budget - now(), std::chrono::nanoseconds{0}),
          planner_actor{this}, tick{});
      prepare_more();
      serve();
    },
    [this](const peer_restarted& peer, const caf::strong_actor_ptr& handle) {
      if (peer.which != role::oracle)
        return;
      config_.oracle = caf::actor_cast<oracle_actor>(handle);
      oracle_gone_ = false;
      prepare_more();
    },
    [this](const rerun_request& request) { on_rerun(request); },
    [this](const plant_request& request) { return plant(request); },
    [this](const plant_withdrawal& what) { withdraw(what); },
    [this](const plant_close& what) { close_planting(what); },
    [this](const tick&) {
      // With nobody waiting, nobody would ask the mind.
      mind_.drain(fmt::format("the wall-clock budget of {} s is spent",
        std::chrono::duration<double>(config_.mind.wall_budget).count()));
      serve();
    },
  };
}

void planner::prepare_more() {
  while (!oracle_gone_ && preparing_ < config_.preparing_max && !to_prepare_.empty()) {
    auto problem = to_prepare_.front();
    to_prepare_.erase(to_prepare_.begin());
    prepare(problem);
  }
}

void planner::prepare(const std::string& problem) {
  ++preparing_;
  seam::ask(this, config_.oracle, prepare_request{problem, {}, {}})
    .then([this](const prepared_problem& prepared) { on_prepared(prepared); },
      [this, problem, asked = config_.oracle](const caf::error& error) {
        if (found_nobody(error))
          on_oracle_gone(problem, asked);
        else
          on_prepare_failed(problem, from_error(system(), error));
      });
}

void planner::on_prepared(const prepared_problem& prepared) {
  --preparing_;
  config_.events.note(this, prepared_event(prepared));
  if (prepared.status == verdict_status::passed && config_.scorer)
    seam::tell(this, config_.scorer, prepared);
  mind_.on_ready(prepared);
  prepare_more();
  serve();
}

void planner::on_prepare_failed(const std::string& problem, const failure& why) {
  spdlog::warn("{}: preparing failed: {}", problem, why.what);
  if (++prepare_failures_[problem] <= config_.prepare_retries) {
    --preparing_;
    config_.events.note(this, {.kind = "prepare_retried", .problem = problem, .reason = why.what});
    to_prepare_.push_back(problem);
    prepare_more();
    return;
  }
  prepared_problem failed;
  failed.problem = problem;
  failed.status = verdict_status::infrastructure;
  failed.reason = why.what;
  on_prepared(failed);
}

void planner::on_oracle_gone(const std::string& problem, const oracle_actor& asked) {
  --preparing_;
  to_prepare_.insert(to_prepare_.begin(), problem);
  oracle_gone_ = asked == config_.oracle; // Else its successor has come already.
  prepare_more();
}

void planner::watch_worker(const std::string& worker, const caf::strong_actor_ptr& handle) {
  if (!handle)
    return;
  monitors_.watch(this, caf::actor_cast<caf::actor>(handle),
    [this, worker, elsewhere = handle->node() != node()](const caf::error& why) {
      std::erase_if(waiting_, [&](const waiting_worker& w) { return w.worker == worker; });
      if (machine_was_lost(why, elsewhere))
        interrupt_attempts(worker);
      else
        for (const auto& id : mind_.on_worker_lost(worker, now()))
          config_.events.note(this, lost_event(id, worker));
      serve();
    });
}

void planner::interrupt_attempts(const std::string& worker) {
  for (const auto& id : mind_.in_flight_of(worker)) {
    if (config_.book)
      if (auto decided = config_.book->give_up(to_string(id)))
        if (auto summary = summary_of_verdict(*decided)) {
          summary->worker = worker;
          on_summary(*summary);
          continue;
        }
    mind_.on_interrupted(id, 0, now());
    config_.events.note(this, interrupted_event(id, worker));
  }
}

void planner::on_summary(const attempt_summary& summary) {
  if (config_.book)
    config_.book->counted(to_string(summary.id));
  auto note = mind_.on_finished(summary, now());
  if (note.accepted) {
    config_.events.note(this, finished_event(summary, note));
    remember_for_planter(summary);
  }
  serve();
}

void planner::on_rerun(const rerun_request& request) {
  auto note = mind_.on_rerun(request, now());
  config_.events.note(this,
    {.kind = note.accepted ? "rerun_planned" : "rerun_refused",
      .problem = request.problem,
      .attempt = request.attempt,
      .candidate = request.candidate,
      .reason = note.reason});
  serve();
}

void planner::note_finished_problems() {
  // A re-run opens a finished problem once more, and then its best may be another one.
  for (const auto& p : mind_.take_finished())
    config_.events.note(this, problem_finished_event(p));
}

void planner::serve() {
  for (size_t i = 0; i < waiting_.size();) {
    auto decision = mind_.next(waiting_[i].worker, now());
    if (decision.kind == decision_kind::idle)
      break; // Nothing for this one is nothing for the next.
    work_reply reply{work_kind::stop, {}, decision.reason};
    if (decision.kind == decision_kind::assigned) {
      reply.kind = work_kind::assigned;
      reply.work = decision.work;
      config_.events.note(this, assigned_event(decision, waiting_[i].worker));
      if (!decision.work.moved_from.empty())
        config_.events.note(this, moved_event(decision, waiting_[i].worker));
    }
    waiting_[i].reply.deliver(std::move(reply));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  note_finished_problems();
  answer_planters();
  if (mind_.done() && !end_told_) {
    end_told_ = true;
    seam::tell(this, config_.supervisor, run_ended{mind_.stop_reason(), true});
  }
}

} // namespace gristmill
