#pragma once

#include "cli/baseline_child.hpp"
#include "cli/baseline_jobs.hpp"
#include "cli/baseline_lease.hpp"
#include "protocol/json_document.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace gristmill {

struct baseline_runner_config {
  std::string python;
  /// `baseline_mode.py`.
  std::string script;
  /// Takes what the processes print.
  std::string log;
  /// Longest time of a mode, also as the user wrote it.
  std::chrono::nanoseconds mode_limit{0};
  std::string mode_limit_text;
  /// After it no mode begins.
  std::chrono::nanoseconds deadline{0};
};

/// Runs tasks one after another, each under a lease of its own; the next one imports torch
/// meanwhile.
class baseline_runner {
public:
  /// Longest lease of class `reference` that a broker gives.
  static constexpr std::chrono::seconds lease_cap{600};

  /// Without leases on the CPU.
  baseline_runner(baseline_runner_config config, std::optional<baseline_leases> leases);

  bool is_over() const { return std::chrono::steady_clock::now() >= until_; }

  /// The answer, or a failed one in the same form: a mode that dies is a mode that is told.
  /// `following` may be null.
  ordered_json run(const baseline_task& task, const baseline_task* following);

  const std::optional<baseline_leases>& leases() const { return leases_; }

private:
  void prepare(const baseline_task& task);
  ordered_json answer_of(result<ordered_json> answer) const;
  ordered_json failed(const failure& why) const;

  baseline_runner_config config_;
  std::optional<baseline_leases> leases_;
  std::chrono::steady_clock::time_point until_;
  result<std::unique_ptr<baseline_child>> next_;
  std::string next_file_;
};

} // namespace gristmill
