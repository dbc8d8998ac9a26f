#pragma once

#include "actors/run_context.hpp"
#include "gpu/children/job_directory.hpp"
#include "messages/child.hpp"
#include "protocol/job.hpp"

#include <chrono>
#include <string>

namespace gristmill {

/// A child that is ready to be asked for: its private folder with job.json in it. The folder goes
/// with this object.
struct child_job {
  job_directory folder;
  child_request request;
};

/// Gives the job its nonce, makes the folder and writes job.json. `program` is one of ours, such as
/// "gristmill-judge". Errors: `io_failed`.
result<child_job> make_child_job(const run_context& context, child_profile profile,
  const std::string& program, job what, std::chrono::nanoseconds deadline);

/// Reads what a child says that it has written. A child is not trusted with paths: `child_failed`
/// for a name that is no plain file name in its own folder; else as `read_whole_file`.
result<std::string> read_child_file(
  const std::string& folder, const std::string& name, uint64_t bytes_max);

/// Whether a child of this run could have been given `folder`: it lies directly in the folder of
/// jobs. What strangers name is neither read nor removed elsewhere.
bool is_job_folder(const run_context& context, const std::string& folder);

/// "runner died: killed by signal 9", for logs and attempts that failed.
std::string describe_end(const std::string& program, const child_result& ended);

} // namespace gristmill
