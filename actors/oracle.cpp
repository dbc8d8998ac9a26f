#include "actors/oracle.hpp"

#include "actors/data_files.hpp"
#include "actors/prepare_jobs.hpp"

namespace gristmill {

namespace {

/// A problem that cannot be prepared here is an answer; the run goes on without it.
prepared_problem cannot_be(const std::string& problem_name, const failure& why) {
  prepared_problem out;
  out.problem = problem_name;
  // What was not found is a file of the data set: no verdict about anybody, and not ours to mend.
  out.status =
    why.code == errc::not_found ? verdict_status::infrastructure : verdict_status::not_checked;
  out.reason = why.what;
  return out;
}

} // namespace

oracle::oracle(caf::actor_config& actor, oracle_config config)
  : oracle_actor::base(actor), config_(std::move(config)) {}

void oracle::on_exit() {
  for (auto& [child, asked] : open_) {
    seam::post(config_.child_front, child_cancel{child});
    asked.reply.deliver(to_error({errc::shutting_down, "the oracle has ended"}));
  }
  open_.clear();
  config_.child_front = nullptr;
}

oracle_actor::behavior_type oracle::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const prepare_request& request) { return prepare(request); },
    [this](const draw_over& over) { end_draw(over.draw); },
  };
}

void oracle::end_draw(const std::string& draw) {
  if (draw.empty())
    return;
  for (auto& [child, asked] : open_)
    if (asked.draw == draw) {
      // Its child may still be writing: removed when it is gone.
      asked.over = true;
      seam::tell(this, config_.child_front, child_cancel{child});
      return;
    }
  remove_draw(*config_.context, draw);
}

caf::result<prepared_problem> oracle::prepare(const prepare_request& request) {
  const auto& context = *config_.context;
  const auto& problem_name = request.problem;
  auto found = context.problems.find(problem_name);
  if (found == context.problems.end())
    return to_error({errc::not_found, "no problem is called '" + problem_name + "'"});
  const auto& target = found->second;
  const bool draws = !request.draw.empty();
  auto work = draws ? build_draw_job(context, target, request.draw, request.candidate)
                    : build_prepare_job(context, target);
  if (!work)
    return cannot_be(problem_name, work.error());
  if (draws && work->workloads.empty()) { // Its inputs are the pool's.
    prepared_problem ready;
    ready.problem = problem_name;
    ready.status = verdict_status::passed;
    return ready;
  }
  if (auto made = make_data_folders(context, target, request.draw); !made)
    return to_error(made.error());
  job what;
  what.kind = job_kind::prepare;
  what.prepare = std::move(*work);
  auto child = make_child_job(
    context, child_profile::oracle, "gristmill-oracle", std::move(what), config_.deadline);
  if (!child)
    return to_error(child.error());
  // Loading torch can take longer than the usual silence between two lines; heartbeats go on then.
  auto reply = make_response_promise<prepared_problem>();
  auto id = child->request.id;
  open_.emplace(id, waiting{reply, request.draw, false});
  auto folder = std::make_shared<job_directory>(std::move(child->folder));
  seam::ask(this, config_.child_front, child->request)
    .then(
      [this, folder, request, &target, id, nonce = child->request.nonce](
        const child_result& ended) { on_child(request, target, id, ended, nonce, folder->path()); },
      [this, folder, id](const caf::error& error) {
        auto asked = take(id);
        remove_draw(*config_.context, asked.draw);
        asked.reply.deliver(error);
      });
  return reply;
}

void oracle::on_child(const prepare_request& request, const problem& target, uint64_t child,
  const child_result& ended, const std::string& nonce, const std::string& folder) {
  auto asked = take(child);
  const auto& context = *config_.context;
  if (asked.over || ended.end != child_end::done)
    remove_draw(context, asked.draw);
  if (asked.over) {
    asked.reply.deliver(to_error({errc::shutting_down, "the draw is over"}));
    return;
  }
  if (ended.end != child_end::done) {
    asked.reply.deliver(to_error({errc::child_failed, describe_end("oracle", ended)}));
    return;
  }
  auto prepared = request.draw.empty()
    ? finish_prepare(context, target, ended, nonce, folder)
    : finish_draw(context, target, request.draw, request.candidate, ended, nonce);
  if (prepared)
    asked.reply.deliver(*prepared);
  else
    asked.reply.deliver(to_error(prepared.error()));
}

oracle::waiting oracle::take(uint64_t child) {
  return std::move(open_.extract(child).mapped());
}

} // namespace gristmill
