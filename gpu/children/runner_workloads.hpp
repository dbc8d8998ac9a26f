#pragma once

#include "gpu/children/runner_pass.hpp"
#include "gpu/children/unit_store.hpp"
#include "messages/measure.hpp"
#include "protocol/child_program.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace gristmill {

/// Runs the workloads of a job on one device: the cases of each in full, then the clock.
///
/// A fault of one ends that one only, except on a real device: there it takes the context with it,
/// and what comes after it is `not_checked` with the reason, so that the verdict names the workload
/// that did it.
class workload_runner {
public:
  workload_runner(child_context& context, runner_device gpu, unit_store units);

  /// Answers for every workload, one after the other.
  void run_all();

  /// For a watchdog, from any thread: answers for the workload that is being run, which did not end
  /// in time, and for those after it. Whatever `run_all` says afterwards is not heard. False when
  /// all had been answered.
  bool give_up(const std::string& why);

private:
  void run(const run_workload& work, size_t index);
  void run_cases(const run_workload& work, size_t index, workload_measurement& measured,
    std::vector<finding>& findings);
  void time_modelled(const run_pass& pass, size_t index, workload_measurement& measured);
  void time_measured(const run_workload& work, size_t index, workload_measurement& measured,
    std::vector<finding>& findings);
  void note(workload_measurement& measured, const pass_failure& why);
  tensor_key fill_of(size_t index, size_t check) const;
  bool context_is_lost();
  /// One answer, unless somebody has given up.
  void say(const workload_measurement& measured, std::vector<finding> findings);

  child_context& context_;
  runner_device gpu_;
  unit_store units_;
  /// The workload that has broken the device.
  std::string culprit_;
  std::mutex answers_;
  size_t answered_ = 0;
  bool gave_up_ = false;
};

} // namespace gristmill
