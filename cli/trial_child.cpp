#include "cli/trial_child.hpp"

#include "cli/commands.hpp"
#include "gpu/children/child_loop.hpp"
#include "gpu/children/job_directory.hpp"

#include <filesystem>
#include <future>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr std::chrono::seconds limit{20};

} // namespace

result<std::string> protections_of_children() {
  auto programs = program_folder();
  if (!programs)
    return pass(programs);
  std::error_code error;
  const auto base = std::filesystem::temp_directory_path(error);
  auto folder = job_directory::create(
    error ? "/tmp" : base.string(), "gristmill-trial-" + std::to_string(getpid()));
  if (!folder)
    return pass(folder);
  child_request request;
  request.id = 1;
  request.profile = child_profile::compiler;
  request.argv = {"gristmill-jail", "--report"};
  request.job_directory = folder->path();
  request.nonce = "none"; // It says nothing on descriptor 3.
  request.deadline = limit;
  child_loop_limits limits;
  limits.program_folder = *programs;
  limits.parallel.fill(1);
  child_loop loop(limits);
  std::promise<child_result> promise;
  auto answer = promise.get_future();
  auto accepted =
    loop.submit(request, [&promise](child_result ended) { promise.set_value(std::move(ended)); });
  if (!accepted)
    return pass(accepted);
  // The loop answers by the deadline.
  auto ended = answer.get();
  while (!ended.log.empty() && ended.log.back() == '\n')
    ended.log.pop_back();
  if (ended.status != 0 || ended.log.empty())
    return fail(errc::child_failed,
      "a child does not start: " + (ended.log.empty() ? to_string(ended.end) : ended.log));
  // bubblewrap says in lines before why it could not be used.
  const auto line = ended.log.rfind('\n');
  return line == std::string::npos ? ended.log : ended.log.substr(line + 1);
}

} // namespace gristmill
