#include "actors/command_proposer.hpp"

#include "actors/candidate.hpp"
#include "actors/child_job.hpp"
#include "actors/run_events.hpp"
#include "actors/template_proposer.hpp"
#include "protocol/program/candidate_rules.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

proposal none(proposal_kind kind, std::string reason) {
  proposal out;
  out.kind = kind;
  out.reason = std::move(reason);
  return out;
}

/// The end of what it printed, on one line.
std::string last_words(const std::string& log) {
  auto end = log.find_last_not_of(" \t\r\n");
  if (end == std::string::npos)
    return {};
  auto begin = log.find_last_of('\n', end);
  auto line = log.substr(begin == std::string::npos ? 0 : begin + 1, end + 1 - (begin + 1));
  return ": " + line.substr(0, 200);
}

} // namespace

command_proposer::command_proposer(caf::actor_config& actor, command_proposer_config config)
  : proposer_actor::base(actor), config_(std::move(config)) {}

void command_proposer::on_exit() {
  for (auto& [child, attempt] : open_) {
    seam::post(config_.child_front, child_cancel{child});
    attempt.reply.deliver(to_error({errc::shutting_down, "the proposer has ended"}));
  }
  open_.clear();
  config_.child_front = nullptr;
  config_.events.close();
}

proposer_actor::behavior_type command_proposer::make_behavior() {
  seam::end_on_exception(this);
  return {[this](const propose_request& request) { return propose(request); }};
}

caf::result<proposal> command_proposer::propose(const propose_request& request) {
  const auto& work = request.work;
  if (work.kind != attempt_kind::search || work.given) {
    search_library nothing_known; // A baseline or a given candidate: no search.
    auto out = propose_for(*config_.context, work, nothing_known, search_strategy::guided);
    if (!out)
      return to_error(out.error());
    return *out;
  }
  if (config_.nano_usd_cap > 0 && spent_nano_usd_ >= config_.nano_usd_cap)
    return none(proposal_kind::exhausted,
      fmt::format("the command has told of {:.4f} USD, and its cap is {:.4f}",
        static_cast<double>(spent_nano_usd_) / 1e9,
        static_cast<double>(config_.nano_usd_cap) / 1e9));
  if (failures_in_row_ >= config_.failures_in_row_max)
    return none(proposal_kind::exhausted,
      fmt::format("the command left no candidate {} times in a row", failures_in_row_));
  auto found = config_.context->problems.find(work.id.problem);
  if (found == config_.context->problems.end())
    return to_error({errc::not_found, "no problem is called '" + work.id.problem + "'"});
  auto read = [this](const blob_ref& what) { return config_.context->blobs->get(what); };
  auto plan = plan_turn(*config_.program, work, {});
  if (!plan.enough.empty())
    return none(proposal_kind::exhausted, plan.enough);
  auto facts = facts_of_turn(
    *config_.program, config_.describe(found->second), work, plan, *config_.book, read);
  auto id = config_.context->child_ids->fetch_add(1);
  auto made =
    job_directory::create(config_.context->jobs().string(), fmt::format("command-{}", id));
  if (!made)
    return to_error(made.error());
  auto folder = std::make_shared<job_directory>(std::move(*made));
  if (auto written = write_command_folder(*folder, *config_.program, found->second, facts);
      !written)
    return to_error(written.error());
  child_request child;
  child.id = id;
  child.profile = child_profile::command;
  child.argv = {"/bin/sh", "-c", config_.command};
  child.job_directory = folder->path();
  child.nonce = "it says nothing on descriptor 3";
  child.deadline = config_.wall_cap;
  auto reply = make_response_promise<proposal>();
  open_.emplace(id, open_attempt{work, reply, folder});
  seam::ask(this, config_.child_front, child)
    .then([this, id](const child_result& ended) { on_ended(id, ended); },
      [this, id](const caf::error& error) {
        if (auto attempt = open_.extract(id); !attempt.empty())
          attempt.mapped().reply.deliver(error);
      });
  return reply;
}

void command_proposer::on_ended(uint64_t child, const child_result& ended) {
  auto taken = open_.extract(child);
  if (taken.empty())
    return;
  auto& attempt = taken.mapped();
  auto out = outcome_of(attempt, ended);
  failures_in_row_ = out.kind == proposal_kind::candidate ? 0 : failures_in_row_ + 1;
  note_end(attempt, ended, out);
  attempt.reply.deliver(std::move(out));
}

proposal command_proposer::outcome_of(const open_attempt& attempt, const child_result& ended) {
  // Money is gone whatever came of it.
  if (auto cost = read_command_cost(attempt.folder->path()))
    spent_nano_usd_ += *cost;
  else
    ++attempts_of_unknown_cost_;
  // It never says `done`: having gone by itself with status 0 is well.
  if (ended.end == child_end::deadline)
    return none(proposal_kind::failed,
      fmt::format("the command was still at work after {} s, and was ended{}",
        std::chrono::duration_cast<std::chrono::seconds>(config_.wall_cap).count(),
        last_words(ended.log)));
  if (ended.end != child_end::no_done)
    return none(proposal_kind::failed, describe_end("the command", ended));
  auto left = read_command_folder(attempt.folder->path(), config_.program->rules);
  if (ended.status != 0)
    return none(proposal_kind::failed,
      fmt::format("the command ended with status {}{}", ended.status, last_words(ended.log)));
  if (!left)
    return none(proposal_kind::failed, left.error().what);
  if (auto kept = check_candidate(*config_.program, left->source, left->plan, left->hypothesis);
      !kept)
    return none(proposal_kind::failed, "refused by a rule: " + kept.error().what);
  auto read = [this](const blob_ref& what) { return config_.context->blobs->get(what); };
  if (auto fresh = check_duplicate(config_.program->rules, left->source, left->plan,
        earlier_sources(attempt.work, *config_.book, read));
      !fresh)
    return none(proposal_kind::failed, fresh.error().what);
  auto stored =
    store_candidate(*config_.context->blobs, left->source, left->plan, "", "", left->hypothesis);
  if (!stored)
    return none(proposal_kind::failed, stored.error().what);
  stored->key = "command/" + stored->hash.substr(0, 16);
  proposal out;
  out.kind = proposal_kind::candidate;
  out.candidate = std::move(*stored);
  return out;
}

void command_proposer::note_end(
  const open_attempt& attempt, const child_result& ended, const proposal& came_to) {
  nlohmann::json data{{"end", to_string(ended.end)}, {"status", ended.status},
    {"wall_ns", ended.wall.count()}, {"spent_nano_usd", spent_nano_usd_},
    {"attempts_of_unknown_cost", attempts_of_unknown_cost_}};
  config_.events.note(this,
    {.kind = "command_ended",
      .problem = attempt.work.id.problem,
      .attempt = to_string(attempt.work.id),
      .candidate = came_to.candidate.hash,
      .reason = came_to.reason,
      .data = text_of(data)});
}

} // namespace gristmill
