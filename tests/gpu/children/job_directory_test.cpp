#include "tests/gpu/children/child_fixture.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

/// A process that waits for ever, in that group or in one of its own, with that word on its command
/// line.
pid_t start_waiting(pid_t group = 0, std::string word = "nothing") {
  const auto program = fake_child_program();
  std::string mode = "helper", none = "none";
  char* argv[] = {
    const_cast<char*>(program.c_str()), mode.data(), none.data(), word.data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, group);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  REQUIRE(posix_spawn(&pid, program.c_str(), nullptr, &attributes, argv, environ) == 0);
  posix_spawnattr_destroy(&attributes);
  return pid;
}

} // namespace

TEST_CASE_FIXTURE(child_fixture, "a job directory is private, and gone with its object") {
  std::string path;
  {
    auto made = job_directory::create(jobs_folder + "/deeper/still", "one");
    REQUIRE(made);
    path = made->path();
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
    REQUIRE(made->write("file", "content"));
    CHECK(read_whole_file(made->file("file"), 100).value() == "content");
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE_FIXTURE(child_fixture, "a job directory that is kept stays") {
  auto made = job_directory::create(jobs_folder, "kept");
  REQUIRE(made);
  const auto path = made->keep();
  { const auto gone = std::move(*made); }
  CHECK(std::filesystem::exists(path));
}

TEST_CASE_FIXTURE(child_fixture, "no two jobs share a directory, and none leaves the jobs folder") {
  auto made = job_directory::create(jobs_folder, "one");
  REQUIRE(made);
  auto again = job_directory::create(jobs_folder, "one");
  REQUIRE_FALSE(again);
  CHECK(again.error().code == errc::refused);
  for (const char* name : {"", ".", "..", "a/b", "../x", "a b"}) {
    CAPTURE(name);
    auto wrong = job_directory::create(jobs_folder, name);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().code == errc::invalid_input);
  }
}

TEST_CASE_FIXTURE(
  child_fixture, "reaping kills the group of a dead incarnation and removes its folder") {
  auto made = job_directory::create(jobs_folder + "/old", "left");
  REQUIRE(made);
  const auto path = made->keep();
  const pid_t left = start_waiting();
  REQUIRE(write_group_file(path, left));
  CHECK(reap_job_directories(jobs_folder + "/old").value() == 1);
  CHECK(dies_within(left, 2s));
  waitpid(left, nullptr, 0);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE_FIXTURE(child_fixture,
  "of a group without a leader, reaping kills what names the folder and spares the rest") {
  auto made = job_directory::create(jobs_folder + "/old", "left");
  REQUIRE(made);
  const auto path = made->keep();
  const pid_t leader = start_waiting();
  const pid_t ours = start_waiting(leader, path + "/job.json");
  const pid_t other = start_waiting(leader, "elsewhere");
  REQUIRE(write_group_file(path, leader));
  kill(leader, SIGKILL);
  waitpid(leader, nullptr, 0);
  CHECK(reap_job_directories(jobs_folder + "/old").value() == 1);
  CHECK(dies_within(ours, 2s));
  waitpid(ours, nullptr, 0);
  CHECK_FALSE(is_dead(other));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_CASE_FIXTURE(
  child_fixture, "reaping spares a process that only has the number of an old group") {
  auto made = job_directory::create(jobs_folder + "/old", "left");
  REQUIRE(made);
  const auto path = made->keep();
  const pid_t other = start_waiting();
  REQUIRE(write_group_file(path, other));
  auto text = read_whole_file(path + "/pgid", 1024).value();
  const auto begin = text.find(' ') + 1;
  text.replace(begin, text.find(' ', begin) - begin, "1");
  std::ofstream(path + "/pgid") << text;
  CHECK(reap_job_directories(jobs_folder + "/old").value() == 1);
  CHECK_FALSE(is_dead(other));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_CASE_FIXTURE(child_fixture, "reaping survives a group file of nonsense and follows no link") {
  const auto old = jobs_folder + "/old";
  for (const char* content : {"", "-1 0 x", "1 1 1", "999999999999999999999 1 1", "abc"}) {
    auto made = job_directory::create(old, "left");
    REQUIRE(made);
    REQUIRE(made->write("pgid", content));
    made->keep();
    CHECK(reap_job_directories(old).value() == 1);
  }
  const auto precious = jobs_folder + "/precious";
  std::filesystem::create_directories(precious);
  std::filesystem::create_directory_symlink(precious, old + "/link");
  CHECK(reap_job_directories(old).value() == 0);
  CHECK(std::filesystem::exists(precious));
}

TEST_CASE_FIXTURE(child_fixture, "a jobs folder that does not exist holds no jobs") {
  CHECK(reap_job_directories(jobs_folder + "/nowhere").value() == 0);
}
