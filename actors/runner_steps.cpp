#include "actors/runner_steps.hpp"

#include "actors/run_jobs.hpp"

#include <algorithm>
#include <filesystem>

namespace gristmill {

measure_steps runner_steps(run_context_ptr context, std::string device) {
  measure_steps out;
  out.begin = [context, device](const measure_request& request,
                std::chrono::nanoseconds deadline) -> result<child_request> {
    auto child = make_runner_child(*context, request, device, deadline);
    if (!child)
      return pass(child);
    // It outlives this call, and maybe the measurement: `end` decides.
    child->folder.keep();
    return std::move(child->request);
  };
  out.command = [context](const std::vector<std::string>& command,
                  std::chrono::nanoseconds deadline) -> result<probe_child> {
    auto id = context->child_ids->fetch_add(1);
    auto folder = job_directory::create(context->jobs().string(), "probe-" + std::to_string(id));
    if (!folder)
      return pass(folder);
    probe_child child;
    child.request.id = id;
    child.request.profile = child_profile::runner;
    child.request.argv = command;
    child.request.job_directory = folder->path();
    child.request.nonce = "none"; // It says nothing on descriptor 3.
    child.request.deadline = deadline;
    child.folder = std::make_shared<job_directory>(std::move(*folder));
    return child;
  };
  out.end = [context](const measure_request& request, const child_request& child,
              const child_result& ended) {
    auto measured = read_run_result(*context, request, child.nonce, ended);
    auto to_judge = std::any_of(measured.workloads.begin(), measured.workloads.end(),
      [](const workload_measurement& w) { return w.status == verdict_status::passed; });
    if (to_judge) {
      measured.output_folder = child.job_directory;
    } else {
      std::error_code error; // What stays behind goes with the run's scratch.
      std::filesystem::remove_all(child.job_directory, error);
    }
    return measured;
  };
  return out;
}

} // namespace gristmill
