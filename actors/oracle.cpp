#include "actors/oracle.hpp"

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
  for (auto& [child, reply] : open_) {
    seam::post(config_.child_front, child_cancel{child});
    reply.deliver(to_error({errc::shutting_down, "the oracle has ended"}));
  }
  open_.clear();
  config_.child_front = nullptr;
}

oracle_actor::behavior_type oracle::make_behavior() {
  seam::end_on_exception(this);
  return {[this](const prepare_request& request) { return prepare(request.problem); }};
}

caf::result<prepared_problem> oracle::prepare(const std::string& problem_name) {
  const auto& context = *config_.context;
  auto found = context.problems.find(problem_name);
  if (found == context.problems.end())
    return to_error({errc::not_found, "no problem is called '" + problem_name + "'"});
  const auto& target = found->second;
  auto work = build_prepare_job(context, target);
  if (!work)
    return cannot_be(problem_name, work.error());
  if (auto made = make_data_folders(context, target); !made)
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
  open_.emplace(id, reply);
  auto folder = std::make_shared<job_directory>(std::move(child->folder));
  seam::ask(this, config_.child_front, child->request)
    .then([this, folder, &target, id, nonce = child->request.nonce](
            const child_result& ended) { on_child(target, id, ended, nonce, folder->path()); },
      [this, folder, id](const caf::error& error) { take(id).deliver(error); });
  return reply;
}

void oracle::on_child(const problem& target, uint64_t child, const child_result& ended,
  const std::string& nonce, const std::string& folder) {
  auto reply = take(child);
  if (ended.end != child_end::done) {
    reply.deliver(to_error({errc::child_failed, describe_end("oracle", ended)}));
    return;
  }
  auto prepared = finish_prepare(*config_.context, target, ended, nonce, folder);
  if (prepared)
    reply.deliver(*prepared);
  else
    reply.deliver(to_error(prepared.error()));
}

oracle::promise oracle::take(uint64_t child) {
  return std::move(open_.extract(child).mapped());
}

} // namespace gristmill
