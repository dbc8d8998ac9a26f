#pragma once

#include "actors/cluster_port.hpp"
#include "actors/run_context.hpp"
#include "actors/run_history.hpp"
#include "cli/model_setup.hpp"
#include "gpu/toolchain/device_compiler.hpp"
#include "journal/run_directory.hpp"
#include "planning/portfolio.hpp"
#include "protocol/budget.hpp"
#include "protocol/device_name.hpp"
#include "protocol/proposer_text.hpp"
#include "protocol/run_settings.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// A problem that could not be loaded, and why.
struct skipped_problem {
  /// As it was given.
  std::string given;
  std::string reason;
};

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
  /// Candidates come from outside while the run goes on.
  bool takes_plants = false;
  /// Who has the ideas, with shares; at least one.
  std::vector<proposer_choice> proposers;
  model_setup models;
  allocation_factory allocation;
  /// Given by file, by problem.
  std::vector<portfolio_problem> problems;
  /// SHA-256 of definition and workloads of each problem that is a folder; "" for a built-in one.
  std::map<std::string, std::string> problem_hashes;
  /// What `--keep-going` went on without.
  std::vector<skipped_problem> skipped;
  device_compiler compiler;
  std::string time_note;
  std::string baseline_note;
  /// Where nodes join; none in a run of one process.
  std::optional<cluster_address> listen;
  /// Taken by `take_port`; the gate takes it from here.
  std::shared_ptr<listening_socket> port;
  cluster_transport transport;
  /// How T_SOL is computed and what T_b is the time of: the methods of the bounds of an export.
  std::string t_sol_method;
  std::string t_b_method;
};

/// Looks up and checks everything that the settings name, before anything is made. Failures name
/// the flag and the nearest valid choice.
result<run_setup> make_run_setup(const run_settings& settings);

/// The same for a run without a proposer of its own, to which candidates are handed while it goes
/// on.
result<run_setup> make_open_setup(const run_settings& settings);

/// The same for a run that goes on: candidates and seed come from its log, the secret from its
/// directory. `settings` are those of its run.toml with the budget that holds now. Errors also:
/// `refused` when problems or bounds are not what they were.
result<run_setup> make_resumed_setup(
  const run_settings& settings, const run_beginning& beginning, const run_directory& directory);

/// Takes the port of `--listen`, if it is given, before anything is written: from here on no other
/// process can have it. Errors: `invalid_input`, naming flag and address.
result<void> take_port(run_setup& setup);

/// Reaps what the processes of the run left behind, and takes its scratch over.
result<void> reopen_run_directory(run_setup& setup, const run_directory& directory);

/// Makes the run directory, puts the blob store and the given candidates into it, and sets the
/// paths of the context. Dead runs beside it are reaped first.
result<run_directory> open_run_directory(run_setup& setup, std::chrono::sys_seconds utc);

} // namespace gristmill
