#pragma once

#include "actors/run_context.hpp"
#include "gpu/toolchain/clang_toolchain.hpp"
#include "journal/run_directory.hpp"
#include "planning/portfolio.hpp"
#include "protocol/budget.hpp"
#include "protocol/device_name.hpp"
#include "protocol/run_settings.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// A run that is ready to start: everything looked up, everything checked.
struct run_setup {
  run_settings settings;
  /// Not shared yet, so that paths can still be set.
  run_context context;
  std::vector<device_group> devices;
  uint32_t gpu_count = 0;
  uint32_t workers = 0;
  budget limits;
  /// No kernel runs: sleep devices and the sleep proposer.
  bool rehearsal = false;
  /// Given by file, by problem.
  std::vector<portfolio_problem> problems;
  clang_command clang;
  std::string time_note;
  std::string baseline_note;
  /// How T_SOL is computed and what T_b is the time of: the methods of the bounds of an export.
  std::string t_sol_method;
  std::string t_b_method;
};

/// Looks up and checks everything that the settings name, before anything is made. Failures name
/// the flag and the nearest valid choice.
result<run_setup> make_run_setup(const run_settings& settings);

/// Makes the run directory, puts the blob store and the given candidates into it, and sets the
/// paths of the context. Dead runs beside it are reaped first.
result<run_directory> open_run_directory(run_setup& setup, std::chrono::sys_seconds utc);

} // namespace gristmill
