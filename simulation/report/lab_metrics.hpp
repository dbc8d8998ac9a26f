#pragma once

#include "simulation/core/lab_result.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace gristmill {

/// Which way is better.
enum class metric_sense : uint8_t { neither = 0, lower, higher };

/// A number that a run comes to. docs/lab.md defines each one.
struct lab_metric {
  /// Name of its column and key in files.
  std::string_view key;
  /// For people, with the unit.
  std::string_view title;
  metric_sense sense = metric_sense::neither;
  /// Exists only where the scenario has problems.
  bool needs_problems = false;
  /// Printed in tables; the others are in the files only.
  bool shown = true;
  double (*of)(const lab_result& run) = nullptr;
};

/// What one run says for itself, in the order of the columns.
const std::vector<lab_metric>& own_metrics();

/// Index into `own_metrics`; the key must be one of them.
size_t own_metric(std::string_view key);

/// Times at which the shares of the waits are kept: 0, then sixteen a decade from 1 ms to 10^6 s.
const std::vector<double>& wait_grid();

/// The share of all leased seconds that the least served `share` of the agents had (the Lorenz
/// curve, linear between agents); `share` for nobody and where nobody had any.
double lorenz_share(const std::vector<agent_share>& agents, double share);

} // namespace gristmill
