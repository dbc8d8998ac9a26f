#pragma once

#include "cli/commands.hpp"

#include <string>
#include <vector>

namespace gristmill {

struct integrity_check_arguments {
  std::string gpus = "mock:h200";
  std::string toolchain = "auto";
  /// Rules that are switched off, to see what gets through.
  std::vector<std::string> without;
  /// Names of candidates; empty for all.
  std::vector<std::string> only;
  bool json = false;
};

/// Every candidate of the corpus of cheats through the program's own steps on one device. `ok` only
/// if each cheat is caught by the rule that the catalogue names and no honest twin is accused;
/// else `not_sound`.
exit_code integrity_check_command(const integrity_check_arguments& arguments);

} // namespace gristmill
