#pragma once

#include "protocol/run_settings.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// What a command of the program ends with (docs/running.md).
enum class exit_code : int {
  ok = 0,
  failure = 1,
  /// Something that the user wrote, or this machine lacks.
  usage = 2,
  no_improvement = 3,
  /// A log does not stand its verification.
  not_sound = 4,
  /// The budget was gone before every problem had a verdict.
  budget_gone = 5,
  /// A provider of models refuses: key, quota, unknown model.
  provider_refused = 6,
  /// A run that is judged again comes out otherwise.
  differs = 7,
  interrupted = 130,
};

struct run_arguments {
  run_settings settings;
  bool json = false;
  /// Tell what the run may cost at most, and start nothing.
  bool dry_run = false;
};

exit_code run_command(const run_arguments& arguments);

struct report_arguments {
  std::string run;
  bool json = false;
  /// Write the page instead of printing the table.
  bool html = false;
  /// File of the page; RUN/report.html when empty.
  std::string out;
};

exit_code report_command(const report_arguments& arguments);

struct doctor_arguments {
  bool json = false;
  std::string python = "/usr/bin/python3";
};

exit_code doctor_command(const doctor_arguments& arguments);

/// Prints "gristmill: <what>" on stderr and answers the exit code that the failure deserves.
exit_code complain(const failure& what);

/// Folder of the running program: its children lie beside it. Errors: `not_found`.
result<std::string> program_folder();

} // namespace gristmill
