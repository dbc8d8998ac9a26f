#include "gpu/children/task_watch.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t entries_max = 100'000;
constexpr uint64_t bytes_per_block = 512;

} // namespace

task_count count_tasks(pid_t of, uint64_t tasks_max) {
  task_count all;
  std::vector<pid_t> open{of};
  while (!open.empty() && all.tasks <= tasks_max) {
    const auto process = open.back();
    open.pop_back();
    std::error_code error;
    // Whoever ends meanwhile has no folder any more.
    fs::directory_iterator tasks(fmt::format("/proc/{}/task", process), error);
    for (; !error && tasks != fs::directory_iterator(); tasks.increment(error)) {
      all.tasks += process != of;
      std::ifstream children(tasks->path() / "children");
      for (pid_t child = 0; children >> child;) {
        open.push_back(child);
        all.processes.push_back(child);
      }
    }
  }
  // Those whose own folder was not looked into.
  all.tasks += open.size();
  return all;
}

uint64_t bytes_below(const std::string& folder, uint64_t bytes_max) {
  uint64_t bytes = 0, entries = 0;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    struct stat found {};
    // Holes of a file take no room.
    if (lstat(at->path().c_str(), &found) == 0)
      bytes += static_cast<uint64_t>(found.st_blocks) * bytes_per_block;
    if (bytes > bytes_max || ++entries > entries_max)
      return bytes_max + 1;
  }
  return bytes;
}

} // namespace gristmill
