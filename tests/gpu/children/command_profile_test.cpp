// What holds for a coding agent that the run starts: the profile `command` with real processes.

#include "tests/gpu/children/child_fixture.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

struct agent : child_fixture {
  child_request shell(const std::string& command) {
    static uint64_t id = 1'000'000;
    auto& folder = new_job();
    child_request request;
    request.id = ++id;
    request.profile = child_profile::command;
    request.argv = {"/bin/sh", "-c", command};
    request.job_directory = folder.path();
    request.nonce = "it says nothing on descriptor 3";
    request.deadline = patience;
    return request;
  }

  static std::string left(const child_request& request, const std::string& name) {
    std::ifstream in(request.job_directory + "/" + name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
};

} // namespace

TEST_CASE_FIXTURE(agent, "an agent works in its own folder and ends by itself with its status") {
  auto request = shell("pwd > where; echo seen; exit 3");
  auto ended = run(request);
  CHECK(ended.end == child_end::no_done);
  CHECK(ended.status == 3);
  CHECK(ended.log == "seen\n");
  CHECK(left(request, "where") == request.job_directory + "\n");
}

TEST_CASE_FIXTURE(agent, "an agent has its user's environment, and nothing that is the run's") {
  setenv("GRISTMILL_LEASE", "secret token", 1);
  setenv("SOME_AGENT_KEY", "a key", 1);
  auto request = shell("env > all");
  CHECK(run(request).status == 0);
  unsetenv("GRISTMILL_LEASE");
  unsetenv("SOME_AGENT_KEY");
  auto all = left(request, "all");
  CHECK(all.find("SOME_AGENT_KEY=a key") != std::string::npos);
  CHECK(all.find("GRISTMILL_") == std::string::npos);
  CHECK(all.find("TMPDIR=" + request.job_directory) != std::string::npos);
  if (const char* home = std::getenv("HOME"))
    CHECK(all.find(std::string("HOME=") + home) != std::string::npos);
}

TEST_CASE_FIXTURE(agent, "an agent cannot write to the run: descriptor 3 is closed") {
  auto request = shell("(echo '{\"done\":1}' >&3) 2>/dev/null && echo open || echo closed");
  auto ended = run(request);
  CHECK(ended.end == child_end::no_done);
  CHECK(ended.log == "closed\n");
}

TEST_CASE_FIXTURE(
  agent, "an agent that hangs is ended at its cap, with everything that it started") {
  auto request = shell("sleep 600 & echo $! > child; sleep 600");
  request.deadline = 1s;
  auto ended = run(request);
  CHECK(ended.end == child_end::deadline);
  CHECK_FALSE(ended.group_left);
  CHECK(is_dead(std::stoi(left(request, "child"))));
}

TEST_CASE_FIXTURE(agent, "what an agent leaves running is ended when it ends") {
  auto request = shell("sleep 600 & echo $! > child");
  CHECK(run(request).status == 0);
  CHECK(dies_within(std::stoi(left(request, "child")), 5000ms));
}

TEST_CASE_FIXTURE(agent, "an agent cannot fill the disk with one file, nor the log with words") {
  auto request = shell("head -c 200000000 /dev/zero > huge; yes | head -c 1000000");
  auto ended = run(request);
  CHECK(std::filesystem::file_size(request.job_directory + "/huge") <= 64u << 20);
  CHECK(ended.log.size() <= 65536);
}
