#include "tests/cli/program.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill::test {

namespace fs = std::filesystem;

namespace {

fs::path new_folder() {
  std::string name = (fs::temp_directory_path() / "gristmill-cli-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  return name;
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const char* need(const char* variable) {
  const char* value = std::getenv(variable);
  REQUIRE_MESSAGE(value != nullptr, "run by ctest, which sets " << variable);
  return value;
}

} // namespace

void pause_briefly() {
  poll(nullptr, 0, 10);
}

std::string source_file(const std::string& name) {
  return std::string(need("GRISTMILL_SOURCE")) + "/" + name;
}

scratch::scratch() : folder_(new_folder()) {}

scratch::~scratch() {
  std::error_code error;
  fs::remove_all(folder_, error);
}

program::program(std::vector<std::string> arguments, const variables& environment)
  : folder_(new_folder()) {
  arguments.insert(arguments.begin(), std::string(need("GRISTMILL_BIN")) + "/gristmill");
  std::vector<std::string> env_text;
  auto replaced = [&](const std::string& text) {
    return std::any_of(environment.begin(), environment.end(),
      [&](const auto& pair) { return text.starts_with(pair.first + "="); });
  };
  for (char** e = environ; *e; ++e)
    if (!std::string(*e).starts_with("GRISTMILL_") && !replaced(*e))
      env_text.emplace_back(*e);
  for (const auto& [name, value] : environment)
    env_text.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (auto& a : arguments)
    argv.push_back(a.data());
  argv.push_back(nullptr);
  for (auto& e : env_text)
    envp.push_back(e.data());
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  auto out_file = (folder_ / "out").string();
  auto err_file = (folder_ / "err").string();
  posix_spawn_file_actions_addopen(
    &actions, STDOUT_FILENO, out_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(
    &actions, STDERR_FILENO, err_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int failed = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE_MESSAGE(failed == 0, "cannot start " << argv[0]);
}

program::~program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code error;
  fs::remove_all(folder_, error);
}

void program::signal(int number) const {
  REQUIRE(pid_ > 0);
  kill(pid_, number);
}

int program::wait(std::chrono::seconds at_most) {
#ifdef __SANITIZE_ADDRESS__
  at_most *= 5; // The program is as much slower.
#endif
  REQUIRE(pid_ > 0);
  int status = 0;
  bool ended = eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, at_most);
  if (!ended) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  INFO("stderr: ", err());
  REQUIRE_MESSAGE(ended, "the program did not end in time");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string program::out() const {
  return content(folder_ / "out");
}

std::string program::err() const {
  return content(folder_ / "err");
}

std::vector<pid_t> processes_in(const fs::path& folder, const std::string& name) {
  std::vector<pid_t> out;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    auto number = it->path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::error_code gone;
    auto where = fs::read_symlink(it->path() / "cwd", gone).string();
    if (gone || !where.starts_with(folder.string()))
      continue;
    auto what = fs::read_symlink(it->path() / "exe", gone).filename().string();
    if (gone || (!name.empty() && what != name))
      continue;
    out.push_back(static_cast<pid_t>(std::stoi(number)));
  }
  return out;
}

std::vector<pid_t> processes_in(const fs::path& folder) {
  return processes_in(folder, "");
}

} // namespace gristmill::test
