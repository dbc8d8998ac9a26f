#include "actors/cluster_hub.hpp"

#include "actors/peer_loss.hpp"
#include "actors/run_events.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace gristmill {

namespace {

/// A node with so many failures of its own in a row is let go.
constexpr uint32_t failures_max = 3;
/// So many places may fail with one candidate before its asker hears of it.
constexpr size_t compile_places_max = 3;
constexpr size_t words_max = 500;

/// The node could not do what it must: its disk, its programs, its queues.
bool is_of_node(errc code) {
  return code == errc::io_failed || code == errc::queue_full || code == errc::child_failed
    || code == errc::timed_out;
}

} // namespace

// ---- tasks

uint64_t cluster_hub::give(session_id to, node_task task, instant deadline, task_done then) {
  auto* s = find(to);
  if (!s) {
    then(fail(errc::node_lost, "node '' is gone"));
    return 0;
  }
  auto open = tasks_.open(to, deadline, now());
  if (!open) {
    then(pass(open));
    return 0;
  }
  task.id = *open;
  task.deadline = deadline;
  task_done_.emplace(*open, std::move(then));
  seam::tell(this, s->agent, std::move(task));
  return *open;
}

void cluster_hub::on_answer(const node_answer& what) {
  auto session = sender_session();
  if (session == 0)
    return;
  if (!tasks_.close(what.id, session)) {
    spdlog::debug("{} answers task {}, which it does not have", label_of(session), what.id);
    return;
  }
  auto then = task_done_.extract(what.id);
  auto* node = nodes_.find(session);
  auto* s = find(session);
  if (!what.failed) {
    ++node->tasks_done;
    node->failures_in_row = 0;
    s->failures = 0;
    then.mapped()(what);
    return;
  }
  ++node->tasks_failed;
  then.mapped()(fail(what.code, what.what.substr(0, words_max)));
}

failure cluster_hub::blame(session_id session, const failure& why) {
  failure told{errc::node_lost, label_of(session) + ": " + why.what};
  if (find(session))
    lose(session, why.what, true);
  return told;
}

void cluster_hub::fetch(const std::vector<blob_ref>& blobs, const caf::strong_actor_ptr& from,
  std::function<void(const result<blobs_fetched>&)> then) {
  seam::ask(this, keeper_, blob_fetch{blobs, config_.times.fetch}, from)
    .then([then](const blobs_fetched& got) { then(got); },
      [this, then](
        const caf::error& why) { then(tl::unexpected<failure>(from_error(system(), why))); });
}

// ---- compile

caf::result<compiled_candidate> cluster_hub::compile(const compile_request& request) {
  if (ending())
    return to_error({errc::shutting_down, "the run is ending"});
  if (compiles_.size() >= config_.compiles_waiting_max)
    return to_error({errc::queue_full,
      fmt::format("{} candidates wait to be compiled already", compiles_.size())});
  compile_job job;
  job.request = request;
  auto reply = make_response_promise<compiled_candidate>();
  job.reply = reply;
  compiles_.push_back(std::move(job));
  serve_compiles();
  return reply;
}

void cluster_hub::serve_compiles() {
  while (!compiles_.empty() && !ending()) {
    auto here = config_.rehearsal ? UINT32_MAX : config_.compile_slots_here;
    auto place =
      nodes_.compile_place(compiles_here_, compiler_ ? here : 0, compiles_.front().not_at);
    auto& not_at = compiles_.front().not_at;
    if (!place && (not_at.empty() || nodes_.has_compile_place(here != 0, not_at)))
      return; // Until a compiler is free.
    if (!place) {
      compiles_.front().reply.deliver(to_error(compiles_.front().last));
      compiles_.pop_front();
      continue;
    }
    auto job = std::move(compiles_.front());
    compiles_.pop_front();
    if (*place == 0)
      compile_here(std::move(job));
    else
      compile_there(*place, std::move(job));
  }
}

void cluster_hub::compile_here(compile_job job) {
  ++compiles_here_;
  seam::ask(this, compiler_, job.request)
    .then(
      [this, job](const compiled_candidate& compiled) mutable {
        --compiles_here_;
        job.reply.deliver(compiled);
        serve_compiles();
      },
      [this, job](const caf::error& why) mutable {
        --compiles_here_;
        if (found_nobody(why) && !ending())
          compiles_.push_front(std::move(job)); // Until its successor is there.
        else
          job.reply.deliver(why);
        serve_compiles();
      });
}

void cluster_hub::compile_there(session_id place, compile_job job) {
  ++nodes_.find(place)->compiles_running;
  node_task task;
  task.kind = node_task_kind::compile;
  task.compile = job.request;
  give(place, std::move(task), config_.times.compile,
    [this, place, job](const result<node_answer>& answer) { on_compiled(place, job, answer); });
}

void cluster_hub::on_compiled(
  session_id place, compile_job job, const result<node_answer>& answer) {
  if (auto* node = nodes_.find(place))
    --node->compiles_running;
  if (!answer) {
    compile_elsewhere(place, std::move(job), answer.error());
    return;
  }
  const auto& compiled = answer->compiled;
  auto* s = find(place);
  if (compiled.candidate != job.request.candidate.hash || !s) {
    compile_elsewhere(
      place, std::move(job), {errc::child_failed, "it has compiled another candidate"});
    return;
  }
  std::vector<blob_ref> code;
  for (const auto& unit : compiled.units)
    code.push_back(unit.code);
  auto tell = [this, job, compiled]() mutable {
    config_.events.note(this, compiled_event(job.request, compiled));
    job.reply.deliver(compiled);
    serve_compiles();
  };
  if (code.empty()) {
    tell();
    return;
  }
  fetch(code, s->keeper, [this, place, job, tell](const result<blobs_fetched>& got) mutable {
    if (got)
      tell();
    else
      compile_elsewhere(place, std::move(job), got.error());
  });
}

void cluster_hub::compile_elsewhere(session_id place, compile_job job, const failure& why) {
  if (ending()) {
    job.reply.deliver(to_error({errc::shutting_down, "the run is ending"}));
    return;
  }
  bool lost = why.code == errc::node_lost || !find(place);
  if (!lost && is_of_node(why.code)) {
    // A compiler may die of its candidate, so one failure says nothing about the node.
    if (++find(place)->failures >= failures_max)
      blame(place, why);
  }
  if (!lost) {
    job.not_at.insert(place);
    job.last = why;
  }
  if (job.not_at.size() >= compile_places_max) {
    job.reply.deliver(to_error(job.last));
    serve_compiles();
    return;
  }
  compiles_.push_front(std::move(job));
  serve_compiles();
}

// ---- prepare

caf::result<prepared_problem> cluster_hub::prepare(const prepare_request& request) {
  if (ending())
    return to_error({errc::shutting_down, "the run is ending"});
  auto reply = make_response_promise<prepared_problem>();
  auto key = prepare_key(request);
  if (auto open = fans_.find(key); open != fans_.end()) {
    open->second.replies.push_back(reply);
    return reply;
  }
  std::set<session_id> places;
  if (!config_.rehearsal)
    for (auto session : nodes_.with_devices())
      places.insert(session);
  if (config_.devices_here != 0 || places.empty())
    places.insert(0);
  if (!request.draw.empty()) {
    draws_.push_back(key);
    if (draws_.size() > config_.draws_max) {
      auto oldest = prepared_.find(draws_.front());
      draws_.pop_front();
      if (oldest != prepared_.end())
        end_draw({std::string(oldest->second.draw)});
    }
  }
  prepared_[key] = request;
  fans_.emplace(key, open_fan{request, {reply}, prepare_fan{places}, false, false});
  for (auto place : places)
    prepare_at(key, place);
  return reply;
}

void cluster_hub::prepare_at(const std::string& key, session_id place) {
  auto open = fans_.find(key);
  if (open == fans_.end())
    return;
  if (place == 0) {
    prepare_here(key);
    return;
  }
  node_task task;
  task.kind = node_task_kind::prepare;
  task.prepare = open->second.request;
  give(place, std::move(task), config_.times.prepare,
    [this, key, place](const result<node_answer>& answer) {
      auto* s = find(place);
      if (answer && s && answer->prepared.status == verdict_status::passed)
        s->has.insert(key);
      auto fan = fans_.find(key);
      if (fan == fans_.end())
        return;
      if (answer && answer->prepared.problem == fan->second.request.problem)
        fan->second.fan.answered(place, answer->prepared);
      else if (answer)
        fan->second.fan.failed(place, {errc::child_failed, "it has prepared another problem"});
      else if (answer.error().code == errc::node_lost)
        fan->second.fan.lost(place);
      else
        fan->second.fan.failed(place, answer.error());
      on_fan(key);
    });
}

void cluster_hub::prepare_here(const std::string& key) {
  auto& open = fans_.at(key);
  if (!oracle_) {
    open.here_again = true;
    return;
  }
  seam::ask(this, oracle_, open.request)
    .then(
      [this, key](const prepared_problem& prepared) {
        if (auto fan = fans_.find(key); fan != fans_.end())
          fan->second.fan.answered(0, prepared);
        on_fan(key);
      },
      [this, key](const caf::error& why) {
        auto fan = fans_.find(key);
        if (fan == fans_.end())
          return;
        if (found_nobody(why) && !ending()) {
          fan->second.here_again = true;
          return;
        }
        fan->second.fan.failed(0, from_error(system(), why));
        on_fan(key);
      });
}

void cluster_hub::on_fan(const std::string& key) {
  auto open = fans_.find(key);
  if (open == fans_.end() || !open->second.fan.over())
    return;
  auto outcome = open->second.fan.outcome();
  if (!outcome && outcome.error().code == errc::node_lost && !open->second.given_up && !ending()) {
    // Whoever is left: the coordinator itself.
    open->second.fan = prepare_fan{{0}};
    prepare_here(key);
    return;
  }
  auto winner = open->second.fan.winner();
  auto* s = find(winner);
  if (!outcome || winner == 0 || outcome->graph.sha256.empty() || !s) {
    finish_fan(key, outcome);
    return;
  }
  fetch({outcome->graph}, s->keeper, [this, key, outcome](const result<blobs_fetched>& got) {
    auto fan = fans_.find(key);
    if (fan == fans_.end())
      return;
    if (got || fan->second.given_up) {
      finish_fan(key, outcome);
      return;
    }
    fan->second.fan = prepare_fan{{0}};
    prepare_here(key);
  });
}

void cluster_hub::finish_fan(const std::string& key, const result<prepared_problem>& outcome) {
  auto open = std::move(fans_.extract(key).mapped());
  if (!outcome || outcome->status != verdict_status::passed || open.given_up)
    prepared_.erase(key);
  for (auto& reply : open.replies)
    if (outcome)
      reply.deliver(*outcome);
    else
      reply.deliver(to_error(outcome.error()));
  if (!open.given_up)
    for (const auto& [session, reason] : open.fan.unfit())
      lose(session, "it could not prepare " + key + ": " + reason, true);
  std::vector<session_id> joining;
  for (const auto& [session, s] : stays_)
    joining.push_back(session);
  for (auto session : joining)
    catch_up(session);
}

void cluster_hub::end_draw(const draw_over& what) {
  if (what.draw.empty())
    return;
  if (oracle_)
    seam::tell(this, oracle_, what);
  auto of = std::find_if(prepared_.begin(), prepared_.end(),
    [&](const auto& one) { return one.second.draw == what.draw; });
  if (of == prepared_.end())
    return;
  auto key = of->first;
  prepared_.erase(of);
  std::erase(draws_, key);
  if (auto open = fans_.find(key); open != fans_.end())
    open->second.given_up = true;
  std::vector<session_id> with;
  for (auto& [session, s] : stays_)
    if (s.has.erase(key) != 0 || s.making.contains(key) || fans_.contains(key))
      with.push_back(session);
  for (auto session : with) {
    node_task task;
    task.kind = node_task_kind::end_draw;
    task.over = what;
    give(session, std::move(task), config_.times.end_draw, [](const result<node_answer>&) {
      // What stays behind goes with the node's scratch.
    });
  }
}

// ---- judge

caf::result<evaluation> cluster_hub::judge(const judge_request& request) {
  auto reply = make_response_promise<evaluation>();
  auto of = device_of_gpu_.find(request.measured.gpu);
  if (of == device_of_gpu_.end()) {
    if (!judge_) {
      reply.deliver(to_error({errc::child_failed, "the judge is being restarted"}));
      return reply;
    }
    seam::ask(this, judge_, request)
      .then([reply](const evaluation& judged) mutable { reply.deliver(judged); },
        [reply](const caf::error& why) mutable { reply.deliver(why); });
    return reply;
  }
  if (request.measured.output_folder.empty()) {
    reply.deliver(evaluation{}); // Nothing ran to its end: nothing to compare.
    return reply;
  }
  std::pair<uint32_t, uint64_t> at{request.measured.gpu, request.measured.token};
  auto place = std::find_if(
    stays_.begin(), stays_.end(), [&](const auto& s) { return s.second.outputs.contains(at); });
  if (place == stays_.end()) {
    reply.deliver(to_error({errc::node_lost,
      fmt::format("{}: its machine was lost, and the outputs with it", of->second)}));
    return reply;
  }
  node_task task;
  task.kind = node_task_kind::judge;
  task.device = devices_.at(of->second).what.name;
  task.judge = request;
  give(place->first, std::move(task), config_.times.judge,
    [this, session = place->first, at, reply](const result<node_answer>& answer) mutable {
      if (auto* s = find(session))
        s->outputs.erase(at);
      if (answer) {
        reply.deliver(answer->judged);
        return;
      }
      const auto& why = answer.error();
      // A judge may die of what it compares, as in a run of one process.
      bool of_node = why.code == errc::io_failed || why.code == errc::queue_full;
      if (why.code == errc::shutting_down)
        reply.deliver(to_error({errc::node_lost, why.what}));
      else
        reply.deliver(to_error(of_node ? blame(session, why) : why));
    });
  return reply;
}

} // namespace gristmill
