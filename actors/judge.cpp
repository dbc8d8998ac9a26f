#include "actors/judge.hpp"

#include "actors/child_job.hpp"
#include "actors/run_jobs.hpp"

#include <filesystem>
#include <fmt/format.h>

namespace gristmill {

void remove_outputs(const run_context& context, const measurement& measured) {
  if (!is_job_folder(context, measured.output_folder))
    return;
  std::error_code error; // What stays behind goes with the run's scratch.
  std::filesystem::remove_all(measured.output_folder, error);
}

judge::judge(caf::actor_config& actor, judge_config config)
  : judge_actor::base(actor), config_(std::move(config)) {}

void judge::on_exit() {
  for (auto& [child, reply] : open_) {
    seam::post(config_.child_front, child_cancel{child});
    reply.deliver(to_error({errc::shutting_down, "the judge has ended"}));
  }
  open_.clear();
  config_.child_front = nullptr;
}

judge_actor::behavior_type judge::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const judge_request& request) { return compare(request); },
  };
}

caf::result<evaluation> judge::compare(const judge_request& request) {
  const auto& context = *config_.context;
  const auto& outputs = request.measured.output_folder;
  if (!outputs.empty() && !is_job_folder(context, outputs))
    return to_error({errc::invalid_input,
      fmt::format("measurement.output_folder: no runner of this run made '{}'", outputs)});
  auto work = build_judge_job(context, request);
  if (!work || work->workloads.empty()) { // Nothing ran to its end: nothing to compare.
    remove_outputs(context, request.measured);
    return work ? caf::result<evaluation>{evaluation{}} : to_error(work.error());
  }
  job what;
  what.kind = job_kind::judge;
  what.judge = std::move(*work);
  auto child = make_child_job(
    context, child_profile::judge, "gristmill-judge", std::move(what), config_.deadline);
  if (!child) {
    remove_outputs(context, request.measured);
    return to_error(child.error());
  }
  auto reply = make_response_promise<evaluation>();
  auto id = child->request.id;
  open_.emplace(id, reply);
  auto folder = std::make_shared<job_directory>(std::move(child->folder));
  seam::ask(this, config_.child_front, child->request)
    .then(
      [this, id, folder, measured = request.measured, nonce = child->request.nonce](
        const child_result& ended) {
        remove_outputs(*config_.context, measured);
        auto asked = take(id);
        if (auto judged = read_judge_result(ended, nonce))
          asked.deliver(*judged);
        else
          asked.deliver(to_error(judged.error()));
      },
      [this, id, folder, measured = request.measured](const caf::error& error) {
        remove_outputs(*config_.context, measured);
        take(id).deliver(error);
      });
  return reply;
}

judge::promise judge::take(uint64_t child) {
  return std::move(open_.extract(child).mapped());
}

} // namespace gristmill
