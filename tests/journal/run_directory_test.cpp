#include "journal/run_directory.hpp"

#include "tests/journal/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>{in}, {}};
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

/// A process in a group of its own that lives until it is killed.
struct sleeper {
  pid_t pid = 0;

  explicit sleeper(const fs::path& folder) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    pid = ::fork();
    if (pid == 0) {
      bool ok = ::setpgid(0, 0) == 0 && ::chdir(folder.c_str()) == 0;
      ok = ok && ::write(ready[1], "x", 1) == 1;
      for (; ok;)
        ::pause();
      ::_exit(1);
    }
    char c = 0;
    REQUIRE(::read(ready[0], &c, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  bool killed() {
    int status = 0;
    bool ended = ::waitpid(pid, &status, 0) == pid;
    pid = 0;
    return ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  bool alive() const { return ::waitpid(pid, nullptr, WNOHANG) == 0; }
  ~sleeper() {
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
};

struct runs_fixture {
  temporary_folder folder;
  fs::path runs = folder.path / "runs";
  std::chrono::sys_seconds utc{std::chrono::sys_days{2026y / 11 / 30} + 18h + 5min + 9s};
  process_identity self = *own_identity();
  /// The number of this process, but started at another time: somebody who is gone.
  process_identity dead = [this] {
    auto out = self;
    ++out.start_ticks;
    return out;
  }();

  run_directory make(const process_identity& owner, const std::string& name = "test") {
    return *run_directory::create(runs, utc, name, owner);
  }
};

} // namespace

TEST_CASE_FIXTURE(runs_fixture, "a run has its folder, named by its start, and the whole layout") {
  auto run = run_directory::create(runs, utc, "RMS norm!", self);
  REQUIRE(run);
  CHECK(run->name() == "20261130T180509Z-rms-norm");
  for (const auto& part : {run->blobs(), run->candidates(), run->jobs(), run->data()})
    CHECK(fs::is_directory(part));
  CHECK((fs::status(run->jobs()).permissions() & fs::perms::others_all) == fs::perms::none);
  CHECK((fs::status(run->data()).permissions() & fs::perms::group_all) == fs::perms::none);
  CHECK(*parse_owner(content(run->jobs() / "owner")) == self);
  REQUIRE(run->write_config("seed = 1\n"));
  CHECK(content(run->root() / "run.toml") == "seed = 1\n");
  CHECK_FALSE(fs::exists(run->program_file()));
  REQUIRE(run->write_program("# rules\n"));
  CHECK(content(run->root() / "program.md") == "# rules\n");
}

TEST_CASE_FIXTURE(runs_fixture, "two runs of one second and name get two folders") {
  CHECK(make(self).name() == "20261130T180509Z-test");
  CHECK(make(self).name() == "20261130T180509Z-test-2");
  CHECK(make(self).name() == "20261130T180509Z-test-3");
}

TEST_CASE("a slug holds lower-case letters, digits and single dashes") {
  CHECK(slug("RMS norm (v2)") == "rms-norm-v2");
  CHECK(slug("../../etc") == "etc");
  CHECK(slug("") == "run");
  CHECK(slug("///") == "run");
  CHECK(slug(std::string(500, 'a')).size() == 48);
}

TEST_CASE_FIXTURE(runs_fixture, "a folder without a run.db is not a run") {
  auto run = make(self);
  CHECK(run_directory::open(run.root()).error().code == errc::not_found);
  write(run.database_file(), "");
  auto opened = run_directory::open(run.root().string() + "/");
  REQUIRE(opened);
  CHECK(opened->name() == run.name());
}

TEST_CASE_FIXTURE(runs_fixture, "a runs folder that cannot be made is an error") {
  write(folder.path / "file", "in the way");
  auto run = run_directory::create(folder.path / "file" / "runs", utc, "x", self);
  REQUIRE_FALSE(run);
  CHECK(run.error().code == errc::io_failed);
}

TEST_CASE_FIXTURE(runs_fixture, "removing the scratch leaves everything else") {
  auto run = make(self);
  write(run.data() / "in.bin", "x");
  write(run.blobs() / "ab" / "cd", "x");
  REQUIRE(run.remove_scratch());
  CHECK_FALSE(fs::exists(run.jobs()));
  CHECK_FALSE(fs::exists(run.data()));
  CHECK(fs::exists(run.blobs() / "ab" / "cd"));
}

TEST_CASE("the identity of a process tells it from a later one with its number") {
  auto self = own_identity();
  REQUIRE(self);
  CHECK(self->pid == ::getpid());
  CHECK(self->start_ticks > 0);
  CHECK(*parse_owner(owner_text(*self)) == *self);
  CHECK(identity_of(-5).error().code == errc::not_found);
}

TEST_CASE("a malformed owner file is refused") {
  for (const char* text : {"", "1", "1 2", "x 2 boot", "1 x boot", "-1 2 boot", "1 2 b c"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_owner(text));
  }
}

TEST_CASE_FIXTURE(runs_fixture, "the scratch of a dead run is deleted, the rest of it stays") {
  auto run = make(dead);
  write(run.jobs() / "job-1" / "job.json", "{}");
  write(run.jobs() / "job-2" / "out.bin", "x");
  write(run.data() / "in.bin", "x");
  write(run.database_file(), "");
  auto report = reap_dead_jobs(runs);
  CHECK(report.problems.empty());
  REQUIRE(report.runs.size() == 1);
  CHECK(report.runs[0] == run.root());
  CHECK(report.jobs_deleted == 2);
  CHECK(report.process_groups_killed == 0);
  CHECK_FALSE(fs::exists(run.jobs()));
  CHECK_FALSE(fs::exists(run.data()));
  CHECK(fs::exists(run.database_file()));
}

TEST_CASE_FIXTURE(runs_fixture, "a run of another boot is dead, whoever has its number now") {
  auto owner = self;
  owner.boot_id = "00000000-0000-0000-0000-000000000000";
  make(owner);
  CHECK(reap_dead_jobs(runs).runs.size() == 1);
}

TEST_CASE_FIXTURE(runs_fixture, "the scratch of a living run is left alone") {
  auto run = make(self);
  write(run.jobs() / "job-1" / "job.json", "{}");
  auto report = reap_dead_jobs(runs);
  CHECK(report.runs.empty());
  CHECK(fs::exists(run.jobs() / "job-1" / "job.json"));
}

TEST_CASE_FIXTURE(runs_fixture, "what is no run of ours is left alone") {
  write(runs / "notes.txt", "mine");
  write(runs / "strange" / "jobs" / "file", "mine");
  write(runs / "broken" / "jobs" / "owner", "nonsense");
  auto run = make(dead);
  fs::create_directories(folder.path / "elsewhere" / "jobs");
  write(folder.path / "elsewhere" / "jobs" / "owner", owner_text(dead));
  fs::create_directory_symlink(folder.path / "elsewhere", runs / "link");
  auto report = reap_dead_jobs(runs);
  REQUIRE(report.runs.size() == 1);
  CHECK(report.runs[0] == run.root());
  CHECK(report.problems.size() == 1);
  CHECK(fs::exists(runs / "strange" / "jobs" / "file"));
  CHECK(fs::exists(runs / "broken" / "jobs" / "owner"));
  CHECK(fs::exists(folder.path / "elsewhere" / "jobs" / "owner"));
}

TEST_CASE_FIXTURE(runs_fixture, "no runs folder is no error") {
  auto report = reap_dead_jobs(runs);
  CHECK(report.runs.empty());
  CHECK(report.problems.empty());
}

TEST_CASE_FIXTURE(runs_fixture, "a process group that a dead run left behind is killed") {
  auto run = make(dead);
  auto job = run.jobs() / "job-1";
  fs::create_directories(job);
  SUBCASE("named with its leader's start time") {
    sleeper child(folder.path);
    write(job / "pgid", owner_text(*identity_of(child.pid)));
    CHECK(reap_dead_jobs(runs).process_groups_killed == 1);
    CHECK(child.killed());
  }
  SUBCASE("named by its number alone, working in the job's folder") {
    sleeper child(job);
    write(job / "pgid", fmt::format("{}\n", child.pid));
    CHECK(reap_dead_jobs(runs).process_groups_killed == 1);
    CHECK(child.killed());
  }
  CHECK_FALSE(fs::exists(job));
}

TEST_CASE_FIXTURE(runs_fixture, "a stranger that has the number of an old process group lives on") {
  auto run = make(dead);
  sleeper stranger(folder.path);
  auto old = *identity_of(stranger.pid);
  ++old.start_ticks;
  write(run.jobs() / "job-1" / "pgid", owner_text(old));
  write(run.jobs() / "job-2" / "pgid", fmt::format("{}\n", stranger.pid));
  write(run.jobs() / "job-3" / "pgid", "0\n");
  write(run.jobs() / "job-4" / "pgid", "-1\n");
  write(run.jobs() / "job-5" / "pgid", fmt::format("{}\n", ::getpgrp()));
  auto report = reap_dead_jobs(runs);
  CHECK(report.process_groups_killed == 0);
  CHECK(report.jobs_deleted == 5);
  CHECK(stranger.alive());
}
