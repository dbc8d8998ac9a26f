#pragma once

#include "actors/run_history.hpp"
#include "cli/commands.hpp"
#include "cli/run_setup.hpp"
#include "journal/event_log.hpp"
#include "messages/event.hpp"

#include <memory>
#include <vector>

namespace gristmill {

/// Messages of the program's own logger go to stderr, warnings and worse.
void log_to_stderr();

/// In a run directory: the address at which nodes join, such as "127.0.0.1:41234".
inline constexpr const char* listen_file = "listen";

/// Works on a run until it ends or is interrupted, then prints its table. `first` are the first
/// events of this start. Where `setup.listen` is, its port has been taken. `restored` is what a
/// resumed run goes on from; null for a new one.
exit_code work_on_run(const run_setup& setup, const run_directory& directory, event_log log,
  std::vector<event> first, std::shared_ptr<restored_run> restored, bool json);

} // namespace gristmill
