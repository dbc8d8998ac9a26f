#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gristmill::test {

using variables = std::vector<std::pair<std::string, std::string>>;

/// `gristmill` as a user starts it, from the build folder that ctest names.
class program {
public:
  explicit program(std::vector<std::string> arguments, const variables& environment = {});
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  /// Kills it when it still runs.
  ~program();

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits for the end, at most that long; kills it then and fails the test. The exit status, or
  /// 128 + signal.
  int wait(std::chrono::seconds at_most = std::chrono::seconds{120});
  /// What it has written so far.
  std::string out() const;
  std::string err() const;

private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
};

/// Calls `holds` until it says true; false when that takes longer. The children of a program are
/// real processes, so there is nothing else to wait on.
template <class F>
bool eventually(F holds, std::chrono::seconds at_most = std::chrono::seconds{20});

/// Processes that work in a folder below `folder` (their working directory), zombies left out.
std::vector<pid_t> processes_in(const std::filesystem::path& folder);
/// The same, of one program.
std::vector<pid_t> processes_in(const std::filesystem::path& folder, const std::string& name);

/// A new folder of this test, removed by `scratch`.
class scratch {
public:
  scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch();
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

private:
  std::filesystem::path folder_;
};

void pause_briefly();

template <class F>
bool eventually(F holds, std::chrono::seconds at_most) {
  auto end = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    if (holds())
      return true;
    if (std::chrono::steady_clock::now() >= end)
      return false;
    pause_briefly();
  }
}

/// A file of the source tree.
std::string source_file(const std::string& name);

} // namespace gristmill::test
