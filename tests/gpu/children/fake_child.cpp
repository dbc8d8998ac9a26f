// A child that behaves as its first argument says: `fake-child MODE NONCE`, in its job directory.
#include "gpu/children/child_loop.hpp"
#include "gpu/children/job_directory.hpp"
#include "protocol/child_channel.hpp"
#include "protocol/child_program.hpp"
#include "protocol/json_document.hpp"
#include "tests/gpu/children/escapes.hpp"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <spawn.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gristmill;

namespace {

[[noreturn]] void wait_for_ever() {
  for (;;)
    pause();
}

void write_line(const std::string& line) {
  const auto text = line + "\n";
  size_t sent = 0;
  while (sent < text.size()) {
    const auto n = write(3, text.data() + sent, text.size() - sent);
    if (n < 0)
      _exit(1);
    sent += static_cast<size_t>(n);
  }
}

uint64_t soft_limit(__rlimit_resource_t which) {
  rlimit now{};
  getrlimit(which, &now);
  return now.rlim_cur;
}

ordered_json surroundings() {
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  auto environment = ordered_json::object();
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    environment[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  int open_above = 0;
  for (int descriptor = 4; descriptor < 1024; ++descriptor)
    open_above += fcntl(descriptor, F_GETFD) >= 0;
  const auto mask = umask(0);
  return {{"group", getpgrp()}, {"pid", getpid()}, {"death_signal", death_signal},
    {"no_new_privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)},
    {"nice", getpriority(PRIO_PROCESS, 0)}, {"core", soft_limit(RLIMIT_CORE)},
    {"address_space", soft_limit(RLIMIT_AS)}, {"file_size", soft_limit(RLIMIT_FSIZE)},
    {"open_files", soft_limit(RLIMIT_NOFILE)}, {"cpu", soft_limit(RLIMIT_CPU)},
    {"umask", static_cast<uint32_t>(mask)}, {"folder", std::filesystem::current_path().string()},
    {"environment", environment}, {"open_above_3", open_above}};
}

/// Starts this program again as a helper that waits for ever; answers its process.
pid_t start_helper() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  auto command = helper_command("runner", {self, "helper", "none"});
  if (!command)
    _exit(9);
  std::vector<char*> argv;
  for (auto& word : *command)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
    _exit(9);
  return pid;
}

/// A process of our group that holds on to our descriptors and does not die with us.
pid_t start_leftover() {
  const pid_t pid = fork();
  if (pid == 0)
    wait_for_ever();
  return pid;
}

/// Plays the main process: `fake-child main JOBS_FOLDER PROGRAM_FOLDER` starts a child with a
/// helper and waits to be killed.
int play_main(const std::string& jobs, const std::string& programs) {
  auto folder = job_directory::create(jobs, "orphan");
  if (!folder)
    return 1;
  child_loop_limits limits;
  limits.program_folder = programs;
  child_loop loop(limits);
  child_request request;
  request.id = 1;
  request.argv = {
    std::filesystem::read_symlink("/proc/self/exe").string(), "with_helper", "0123456789abcdef"};
  request.job_directory = folder->path();
  request.nonce = "0123456789abcdef";
  request.deadline = std::chrono::minutes{5};
  if (!loop.submit(request, [](const child_result&) { _exit(1); }))
    return 1;
  wait_for_ever();
}

} // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::string nonce = argc > 2 ? argv[2] : "";
  if (mode == "main")
    return play_main(argv[2], argv[3]);
  if (mode == "helper")
    wait_for_ever();
  if (mode == "mute")
    wait_for_ever();
  if (mode == "not_json") {
    write_line("this is no JSON");
    wait_for_ever();
  }
  if (mode == "long_line") {
    write_line(fmt::format(R"({{"line":"sample","nonce":"{}","text":"{}"}})", nonce,
      std::string(child_line_bytes_max, 'x')));
    wait_for_ever();
  }
  auto channel = child_channel::open(mode == "wrong_nonce" ? "another-nonce-00000" : nonce);
  if (!channel) {
    fmt::print(stderr, "{}\n", channel.error().what);
    return 2;
  }
  auto& to = **channel;
  to.hello("fake-child", "shared");
  if (mode == "no_done")
    return 0;
  if (mode == "killed")
    raise(SIGKILL);
  if (mode == "hang" || mode == "wrong_nonce")
    wait_for_ever();
  if (mode == "many_lines")
    for (;;)
      to.sample({{"text", std::string(1000, 'y')}});
  if (mode == "loud")
    for (int i = 0; i < 4096; ++i)
      fmt::print("{}\n", std::string(63, 'z'));
  if (mode == "surroundings")
    to.sample(surroundings());
  if (mode == "leaves_process")
    to.sample({{"left", start_leftover()}, {"pid", getpid()}});
  if (mode == "escapes")
    to.sample(try_escapes(ordered_json::parse(argv[3])));
  if (mode == "forks") {
    to.sample({{"made", fill_with_processes(20'000)}});
    wait_for_ever();
  }
  if (mode == "fills") {
    to.sample({{"can_reserve", fill_with_files(uint64_t{4} << 30)}});
    wait_for_ever();
  }
  if (mode == "leaves_daemon")
    leave_daemon();
  if (mode == "with_helper") {
    start_helper();
    if (auto file = fopen("ready", "w"))
      fclose(file);
    wait_for_ever();
  }
  to.phase("working");
  to.sample({{"answer", 42}});
  to.done();
  if (mode == "talks_after_done") {
    write_line(fmt::format(R"({{"line":"sample","nonce":"{}"}})", nonce));
    wait_for_ever();
  }
  return mode == "done_status_3" ? 3 : 0;
}
