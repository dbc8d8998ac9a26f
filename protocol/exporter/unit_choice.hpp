#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "protocol/workload.hpp"

#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// What one unit of an exported plan is compiled with.
struct export_unit {
  /// Index into `plan::variants`.
  size_t variant = 0;
  /// In the order of the plan.
  std::vector<std::pair<std::string, expression_value>> defines;
  /// Entries that are launched for some workload.
  std::vector<std::string> entries;
};

/// The units that the workloads come to, each once, in the order in which they first appear.
/// Failures as of `resolve`, but for what only its devices lack.
result<std::vector<export_unit>> choose_units(const plan& source, const definition& def,
  const std::vector<workload>& workloads, const device_facts& device);

/// All entries of a variant, each once.
std::vector<std::string> entries_of(const plan_variant& variant);

} // namespace gristmill
