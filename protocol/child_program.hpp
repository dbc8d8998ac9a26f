#pragma once

#include "messages/result.hpp"
#include "protocol/child_channel.hpp"
#include "protocol/job.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What a child program works with.
struct child_context {
  /// The job directory, absolute.
  std::string folder;
  job what;
  child_channel& channel;

  /// A file name of the job as a path.
  std::string path(const std::string& file) const;
};

/// The `main` of every child program, called as `PROGRAM JOBDIR`: opens descriptor 3, reads
/// job.json, says hello, calls `work`, and says `done` when that succeeded. Anything else,
/// exceptions of libraries included, ends without `done`, with the reason on stderr and exit status
/// 1; a wrong call with 2.
int child_main(int argc, char** argv, std::string_view program, job_kind kind,
  result<void> (*work)(child_context&));

/// The program of this process, absolute, without links. Fails with `io_failed`.
result<std::string> own_program();

/// The command that starts `command` as a helper of this child, through the gristmill-jail beside
/// this program: in our group and within our limits, without descriptor 3, and dead as soon as we
/// are. The profile is our own. `command[0]` is an absolute path. Fails with `io_failed`.
result<std::vector<std::string>> helper_command(
  std::string_view profile, std::vector<std::string> command);

} // namespace gristmill
