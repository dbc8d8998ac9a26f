#include "cli/baseline_child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

using steady = std::chrono::steady_clock;

constexpr size_t answer_bytes_max = size_t{1} << 20;

/// Kills a group and waits for its leader.
void end_group(pid_t pid) {
  killpg(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  // Compilers that the leader had started; init reaps them.
  for (int i = 0; i < 200 && killpg(pid, SIGKILL) == 0; ++i)
    poll(nullptr, 0, 10);
}

struct spawn_settings {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  spawn_settings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
  }
  ~spawn_settings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;
};

result<pid_t> spawn(
  const spawn_settings& how, std::vector<std::string> command, char** environment) {
  std::vector<char*> argv;
  for (auto& argument : command)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (const int bad =
        posix_spawnp(&pid, argv[0], &how.actions, &how.attributes, argv.data(), environment);
      bad != 0)
    return fail(errc::io_failed, fmt::format("{}: {}", command.front(), std::strerror(bad)));
  return pid;
}

} // namespace

result<std::unique_ptr<baseline_child>> baseline_child::start(const std::string& python,
  const std::string& script, const std::string& job_file, const std::string& log) {
  std::array<int, 2> to{-1, -1};
  std::array<int, 2> from{-1, -1};
  if (pipe2(to.data(), O_CLOEXEC) != 0)
    return fail(errc::io_failed, fmt::format("no pipe: {}", std::strerror(errno)));
  if (pipe2(from.data(), O_CLOEXEC) != 0) {
    close(to[0]);
    close(to[1]);
    return fail(errc::io_failed, fmt::format("no pipe: {}", std::strerror(errno)));
  }
  spawn_settings how;
  posix_spawn_file_actions_adddup2(&how.actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&how.actions, from[1], 1);
  posix_spawn_file_actions_addopen(
    &how.actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  auto pid = spawn(how, {python, "-B", script, job_file}, environ);
  close(to[0]);
  close(from[1]);
  if (!pid) {
    close(to[1]);
    close(from[0]);
    return pass(pid);
  }
  return std::unique_ptr<baseline_child>(new baseline_child(*pid, to[1], from[0]));
}

baseline_child::~baseline_child() {
  end();
}

void baseline_child::end() {
  if (pid_ < 0)
    return;
  end_group(pid_);
  close(to_);
  close(from_);
  pid_ = -1;
}

result<ordered_json> baseline_child::next_line(steady::time_point until) {
  for (;;) {
    if (const auto line_end = text_.find('\n'); line_end != std::string::npos) {
      auto line = parse_json_object(text_.substr(0, line_end), "the measuring script");
      text_.erase(0, line_end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady::now());
    if (left.count() <= 0)
      return fail(errc::timed_out, "no answer in time");
    pollfd watched{from_, POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(std::min<int64_t>(left.count() + 1, 3'600'000))) <= 0)
      continue;
    std::array<char, 65536> some{};
    const ssize_t count = read(from_, some.data(), some.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return fail(errc::child_failed, "the measuring script ended without an answer");
    text_.append(some.data(), static_cast<size_t>(count));
    if (text_.size() > answer_bytes_max)
      return fail(errc::child_failed, "the measuring script answers too much");
  }
}

result<void> baseline_child::await_ready(std::chrono::nanoseconds limit) {
  auto line = next_line(steady::now() + limit);
  if (!line)
    return pass(line);
  if (!line->contains("ready"))
    early_ = std::move(*line);
  return {};
}

result<ordered_json> baseline_child::measure(
  const std::string& visible, std::chrono::nanoseconds limit) {
  if (!early_.is_null())
    return std::move(early_);
  const std::string go = ordered_json{{"go", true}, {"visible", visible}}.dump() + "\n";
  // A script that has ended gives no answer, which the reading tells.
  signal(SIGPIPE, SIG_IGN);
  (void)!write(to_, go.data(), go.size());
  auto answer = next_line(steady::now() + limit);
  end();
  return answer;
}

result<int> run_in_folder(const std::string& command, const std::string& folder,
  const std::vector<std::string>& variables, std::chrono::nanoseconds limit) {
  std::vector<std::string> texts;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    const auto is_replaced = [&](const std::string& variable) {
      return text.starts_with(variable.substr(0, variable.find('=') + 1));
    };
    if (std::none_of(variables.begin(), variables.end(), is_replaced))
      texts.emplace_back(text);
  }
  texts.insert(texts.end(), variables.begin(), variables.end());
  std::vector<char*> environment;
  for (auto& text : texts)
    environment.push_back(text.data());
  environment.push_back(nullptr);
  spawn_settings how;
  posix_spawn_file_actions_addopen(&how.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&how.actions, 2, 1);
  posix_spawn_file_actions_addchdir_np(&how.actions, folder.c_str());
  auto pid = spawn(how, {"/bin/sh", "-c", command}, environment.data());
  if (!pid)
    return pass(pid);
  const auto until = steady::now() + limit;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(*pid, &status, WNOHANG);
    if (ended == *pid) {
      end_group(*pid);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (steady::now() >= until) {
      end_group(*pid);
      return fail(errc::timed_out, "the command was ended at its limit");
    }
    poll(nullptr, 0, 50);
  }
}

} // namespace gristmill
