#pragma once

#include "cli/commands.hpp"

#include <string>
#include <vector>

namespace gristmill {

struct sanitize_arguments {
  std::string run;
  /// Empty: the incumbents.
  std::string attempt;
  /// Names of tools with commas between; empty: all.
  std::string tools;
  std::string gpus;
  /// compute-sanitizer; empty: where it usually is, and on a mock the interpreter's own checks.
  std::string program;
  /// Of one look.
  std::string limit = "60s";
  /// Of a broker; empty: the usual one, else one of our own.
  std::string socket;
  /// Where the tools' own texts go; empty: nowhere.
  std::string reports;
  bool json = false;
};

/// Calls candidates of a run under compute-sanitizer and keeps what it said with the run
/// (docs/integrity.md). Answers `not_sound` when something was found, `failure` when a tool did not
/// look, `usage` for bad input.
exit_code sanitize_command(const sanitize_arguments& arguments);

} // namespace gristmill
