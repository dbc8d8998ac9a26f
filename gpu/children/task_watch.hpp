#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gristmill {

/// The processes that this one started, and theirs. Counting stops beyond `tasks_max` threads.
struct task_count {
  uint64_t tasks = 0;
  std::vector<pid_t> processes;
};
task_count count_tasks(pid_t of, uint64_t tasks_max);

/// What files below the folder take on the disk, bytes. Stops beyond `bytes_max`. More than a
/// hundred thousand entries count as too much.
uint64_t bytes_below(const std::string& folder, uint64_t bytes_max);

} // namespace gristmill
