#pragma once

#include "cli/commands.hpp"
#include "simulation/report/lab_text.hpp"
#include "simulation/sweep/lab_line.hpp"
#include "simulation/sweep/lab_runner.hpp"

#include <atomic>
#include <functional>
#include <string>

namespace gristmill {

/// This program: its version, and the first 16 digits of the linker's build id (of the hash of its
/// file where it has none).
lab_identity this_program();

/// `run_plan` with the progress on stderr (on a terminal one line that is redrawn, elsewhere a line
/// every ten seconds), ended by Ctrl-C or SIGTERM. `jobs` 0 is one for each processor. Errors: as
/// `run_plan`; `shutting_down` when interrupted.
result<void> run_with_progress(const lab_plan& plan, const run_set& have, unsigned jobs,
  const std::function<result<void>(lab_row&&)>& on_row);

/// Calls `work` with a flag that is set when somebody interrupts. The threads that it starts get no
/// signals.
result<void> interruptible(const std::function<result<void>(const std::atomic<bool>& stop)>& work,
  const std::function<void()>& now_and_then = {});

/// Whole or not at all. Errors: `invalid_input` for a folder, `io_failed`.
result<void> write_whole_file(const std::string& path, const std::string& text);
/// Errors: `invalid_input`, naming the flag, for a path that no file can be written to.
result<void> check_output(const std::string& flag, const std::string& path);

/// As `complain`, but 130 for what was interrupted.
exit_code complain_or_interrupted(const failure& what);

} // namespace gristmill
