#include "tests/gpu/children/child_fixture.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <sys/pidfd.h>
}

namespace gristmill {

namespace {

child_loop_limits limits() {
  child_loop_limits all;
  all.program_folder = program_folder();
  all.parallel = {2, 2, 2, 2, 2};
  all.waiting_max = 4;
  return all;
}

std::string fresh_folder() {
  auto path = (std::filesystem::temp_directory_path() / "gristmill-test-XXXXXX").string();
  if (!mkdtemp(path.data()))
    throw std::runtime_error("no folder for a test");
  return path;
}

} // namespace

std::string program_folder() {
  const char* given = std::getenv("GRISTMILL_BIN");
  return given ? given : GRISTMILL_PROGRAMS;
}

std::string fake_child_program() {
  return program_folder() + "/fake-child";
}

child_fixture::child_fixture() : jobs_folder(fresh_folder()), loop(limits()) {}

child_fixture::~child_fixture() {
  loop.stop();
  jobs_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(jobs_folder, ignored);
}

job_directory& child_fixture::new_job() {
  auto made = job_directory::create(jobs_folder, fmt::format("job-{}", jobs_.size()));
  REQUIRE(made);
  jobs_.push_back(std::make_unique<job_directory>(std::move(*made)));
  return *jobs_.back();
}

child_request child_fixture::fake(const std::string& mode) {
  child_request request;
  request.id = next_id_++;
  request.profile = child_profile::runner;
  request.argv = {fake_child_program(), mode, nonce};
  request.job_directory = new_job().path();
  request.nonce = nonce;
  request.deadline = patience / 2;
  return request;
}

std::future<child_result> child_fixture::start(child_request request) {
  auto promise = std::make_shared<std::promise<child_result>>();
  auto answer = promise->get_future();
  auto accepted = loop.submit(
    std::move(request), [promise](child_result result) { promise->set_value(std::move(result)); });
  REQUIRE_MESSAGE(accepted, accepted.error().what);
  return answer;
}

child_result child_fixture::answer_of(std::future<child_result>& answer) {
  REQUIRE(answer.wait_for(patience) == std::future_status::ready);
  return answer.get();
}

child_result child_fixture::run(child_request request) {
  auto answer = start(std::move(request));
  return answer_of(answer);
}

child_result child_fixture::run_job(
  child_profile profile, const std::string& program, const job& what, job_directory& in) {
  REQUIRE(in.write("job.json", to_json(what)));
  child_request request;
  request.id = next_id_++;
  request.profile = profile;
  request.argv = {program, in.path()};
  request.job_directory = in.path();
  request.nonce = what.nonce;
  request.deadline = patience;
  return run(std::move(request));
}

std::vector<ordered_json> child_fixture::lines_of(
  const child_result& answer, child_line_kind kind) {
  std::vector<ordered_json> bodies;
  for (const auto& text : answer.lines) {
    auto line = parse_child_line(text, nonce);
    REQUIRE(line);
    if (line->kind == kind)
      bodies.push_back(line->body);
  }
  return bodies;
}

std::vector<int> processes_with(const std::string& argument) {
  std::vector<int> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const auto name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    auto line = read_whole_file("/proc/" + name + "/cmdline", 1 << 20);
    if (line && line->find(argument) != std::string::npos && !is_dead(std::stoi(name)))
      found.push_back(std::stoi(name));
  }
  return found;
}

bool is_dead(int pid) {
  auto text = read_whole_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text)
    return true;
  const auto name_end = text->rfind(')');
  return name_end == std::string::npos || text->substr(name_end, 3) == ") Z";
}

bool dies_within(int pid, std::chrono::milliseconds time) {
  const int process = pidfd_open(pid, 0);
  if (process < 0)
    return errno == ESRCH;
  pollfd one{process, POLLIN, 0};
  const bool died = poll(&one, 1, static_cast<int>(time.count())) == 1;
  close(process);
  return died;
}

} // namespace gristmill
