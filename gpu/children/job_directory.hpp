#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

namespace gristmill {

/// The private folder of one child: `<jobs folder>/<name>`, mode 0700, removed with this object.
///
/// It holds job.json, what the child writes, and `pgid`: the process group that works in it, for
/// `reap_job_directories`.
class job_directory {
public:
  /// Makes the jobs folder too when it is missing. `name` is letters, digits, '-', '_' and '.'; a
  /// folder of that name that exists already is `refused`.
  static result<job_directory> create(const std::string& jobs_folder, std::string_view name);

  job_directory(job_directory&& other) noexcept;
  job_directory& operator=(job_directory&& other) noexcept;
  job_directory(const job_directory&) = delete;
  job_directory& operator=(const job_directory&) = delete;
  ~job_directory();

  const std::string& path() const { return path_; }
  /// `path()` + "/" + name.
  std::string file(std::string_view name) const;
  result<void> write(std::string_view name, std::string_view content) const;
  /// Leaves the folder on disk, for a person to look at; returns its path.
  std::string keep();

private:
  explicit job_directory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Says in `<folder>/pgid` that this group works here. The file also names the leader's start time
/// and the boot, because numbers of processes are used again.
result<void> write_group_file(const std::string& job_folder, pid_t group);

/// Kills what a dead incarnation of the main process left behind and removes its job directories.
/// Of a group whose leader is gone, those that name the folder in their command line are killed.
/// A folder whose group file fits no living process is only removed. Answers how many
/// folders there were; a missing jobs folder has none.
result<size_t> reap_job_directories(const std::string& jobs_folder);

/// Reads a whole file. `not_found`, `io_failed`, or `invalid_input` when it is larger than
/// `bytes_max`.
result<std::string> read_whole_file(const std::string& path, uint64_t bytes_max);

} // namespace gristmill
