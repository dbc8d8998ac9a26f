#include "gpu/children/jail.hpp"
#include "tests/gpu/children/child_fixture.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// Ends with the test, however that ends.
struct started_process {
  pid_t pid = -1;

  explicit started_process(std::vector<std::string> arguments) {
    std::vector<char*> argv;
    for (auto& argument : arguments)
      argv.push_back(argument.data());
    argv.push_back(nullptr);
    REQUIRE(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
  }
  started_process(const started_process&) = delete;
  started_process& operator=(const started_process&) = delete;
  ~started_process() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

} // namespace

TEST_CASE("the arguments of the jail survive a round trip") {
  jail_command command;
  command.profile = child_profile::oracle;
  command.nested = true;
  command.parent = 12;
  command.directory = "/some/folder";
  command.cpu_seconds = 34;
  command.command = {"/bin/true", "--nested", "--", "x"};
  auto parsed = parse_jail_command(jail_arguments(command));
  REQUIRE(parsed);
  CHECK(parsed->profile == command.profile);
  CHECK(parsed->nested);
  CHECK(parsed->parent == 12);
  CHECK(parsed->directory == "/some/folder");
  CHECK(parsed->cpu_seconds == 34);
  CHECK(parsed->command == command.command);
}

TEST_CASE("a wrong call of the jail names what is wrong") {
  struct wrong {
    std::vector<std::string> arguments;
    std::string part;
  };
  for (const auto& [arguments, part] :
    {wrong{{}, "no profile"}, {{"runner"}, "--"}, {{"runner", "--"}, "no command"},
      {{"runer", "--", "x"}, "runer"}, {{"--what", "runner", "--", "x"}, "--what"},
      {{"--parent"}, "--parent needs"}, {{"--parent", "x", "runner", "--", "x"}, "no number"},
      {{"--cpu-seconds", "99999999999", "runner", "--", "x"}, "no number"}}) {
    CAPTURE(part);
    auto parsed = parse_jail_command(arguments);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == errc::invalid_input);
    CHECK(parsed.error().what.find(part) != std::string::npos);
  }
}

TEST_CASE_FIXTURE(child_fixture, "a child lives within the limits of its profile") {
  auto request = fake("surroundings");
  setenv("GRISTMILL_TEST_SECRET", "secret", 1);
  const auto answer = run(request);
  REQUIRE(answer.end == child_end::done);
  const auto found = lines_of(answer, child_line_kind::sample).at(0);
  const auto limits = limits_of(child_profile::runner);
  CHECK(found.at("group") == found.at("pid"));
  CHECK(found.at("death_signal") == SIGKILL);
  CHECK(found.at("no_new_privileges") == 1);
  CHECK(found.at("nice").get<int>() >= 10);
  CHECK(found.at("core") == 0);
#ifndef __SANITIZE_ADDRESS__
  CHECK(found.at("address_space") == limits.address_space);
#endif
  CHECK(found.at("file_size") == limits.file_size);
  CHECK(found.at("open_files") == limits.open_files);
  // Four seconds of processor for one of the deadline, and a minute.
  CHECK(found.at("cpu") == 30 * 4 + 60);
  CHECK(found.at("umask") == 077);
  CHECK(found.at("folder") == std::filesystem::canonical(request.job_directory).string());
  CHECK(found.at("open_above_3") == 0);
  const auto& environment = found.at("environment");
  CHECK(environment.at("LANG") == "C");
  CHECK(environment.at("TMPDIR") == found.at("folder"));
  CHECK_FALSE(environment.contains("GRISTMILL_TEST_SECRET"));
  const auto network = environment.at("GRISTMILL_NETWORK").get<std::string>();
  CHECK((network == "none" || network == "shared"));
  if (network == "shared")
    MESSAGE("this system refuses network namespaces: children share the network");
}

TEST_CASE_FIXTURE(child_fixture, "the oracle keeps the network that it may need") {
  auto request = fake("surroundings");
  request.profile = child_profile::oracle;
  const auto answer = run(request);
  const auto found = lines_of(answer, child_line_kind::sample).at(0);
  CHECK(found.at("environment").at("GRISTMILL_NETWORK") == "shared");
}

TEST_CASE_FIXTURE(child_fixture, "a jail whose parent is not the expected one starts nothing") {
  const auto marker = jobs_folder + "/started";
  std::vector<std::string> arguments{
    program_folder() + "/gristmill-jail", "--parent", "1", "runner", "--", "/bin/touch", marker};
  std::vector<char*> argv;
  for (auto& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  REQUIRE(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == jail_exit_failed);
  CHECK_FALSE(std::filesystem::exists(marker));
}

TEST_CASE_FIXTURE(
  child_fixture, "the death of the main process kills child and grandchild within 2 s") {
  // Wait for the file that the child writes when its helper runs.
  const auto orphan = jobs_folder + "/orphan";
  const started_process main_process({fake_child_program(), "main", jobs_folder, program_folder()});
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!std::filesystem::exists(orphan + "/ready") && std::chrono::steady_clock::now() < end)
    poll(nullptr, 0, 5);
  REQUIRE(std::filesystem::exists(orphan + "/ready"));
  pid_t child = -1;
  std::ifstream(orphan + "/pgid") >> child;
  REQUIRE(child > 1);
  // The helper is the child's only child.
  pid_t helper = -1;
  std::ifstream(fmt::format("/proc/{}/task/{}/children", child, child)) >> helper;
  REQUIRE(helper > 1);
  CHECK_FALSE(is_dead(child));
  CHECK_FALSE(is_dead(helper));

  REQUIRE(kill(main_process.pid, SIGKILL) == 0);
  CHECK(dies_within(child, 2s));
  CHECK(dies_within(helper, 2s));
}
