#pragma once

#include "messages/result.hpp"
#include "simulation/lab.hpp"
#include "simulation/model/scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// Names with values, as texts: keys of a scenario and what they are at a point of a grid.
using grid_point = std::vector<std::pair<std::string, std::string>>;

/// A point that somebody wants: what it is called, and what it sets.
struct grid_choice {
  grid_point labels;
  grid_point settings;
};

/// One thing to run with every seed.
struct lab_variant {
  /// Index into `lab_plan::points`.
  size_t point = 0;
  /// With lease policy and planner.
  scenario what;
  /// `config_hash`.
  std::string config;
  /// Nobody asked for it: it stands beside the others as a bound.
  bool is_bound = false;
};

/// What is compared: every variant runs with the same seeds.
struct lab_plan {
  /// Of the scenario.
  std::string name;
  /// At least one; a plan without a grid has one that is empty.
  std::vector<grid_point> points;
  /// In the order of the points; those of a point stand together.
  std::vector<lab_variant> variants;
  /// For each point the variant that its others are compared with.
  std::vector<size_t> baselines;
  uint64_t first_seed = 1;
  uint32_t seeds = 1;
  lab_engine engine = lab_engine::core;

  uint64_t runs() const { return uint64_t{seeds} * variants.size(); }
  /// The variant of the same point and lease policy with that planner.
  std::optional<size_t> sibling(size_t variant, std::string_view planner) const;
  /// Point, policy and planner, as far as the plan has several.
  std::string label(size_t variant) const;
  /// SHA-256 over the configuration of every variant, in order, with seeds and engine.
  std::string hash() const;
};

/// What somebody wants compared.
struct lab_wishes {
  scenario base;
  /// Empty: the scenario's own.
  std::vector<std::string> policies;
  std::vector<std::string> planners;
  /// Empty: one point that changes nothing.
  std::vector<grid_choice> grid;
  /// Which one the others are compared with; not given: the first.
  std::optional<std::string> baseline_policy;
  std::optional<std::string> baseline_planner;
  /// Equal share and the hindsight oracle run beside what was asked for.
  bool with_bounds = true;
  /// Where no baseline planner is given, equal share is it.
  bool against_equal = false;
  uint64_t first_seed = 1;
  uint32_t seeds = 1;
  lab_engine engine = lab_engine::core;
};

/// More than that is a mistake in a file rather than a wish.
inline constexpr size_t variants_max = 10'000;
inline constexpr uint64_t runs_max = 100'000;

/// Errors: `invalid_input` for a policy, planner or key that does not exist (with the nearest one),
/// for one named twice, for planners of a scenario without problems, for a baseline that is not
/// among the variants, for no seed and for too many runs.
result<lab_plan> make_plan(const lab_wishes& wishes);

} // namespace gristmill
