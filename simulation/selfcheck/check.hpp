#pragma once

#include "messages/result.hpp"
#include "simulation/selfcheck/mutants.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gristmill {

enum class line_rule : uint8_t {
  /// The mean over seeds estimates the exact value: within max(4 standard errors, 0.5 %), and a
  /// standard error of at most 1 %.
  estimate = 0,
  /// The exact value is a bound of the expectation: the mean over seeds may pass it by max(4
  /// standard errors, 0.5 %) and no more, and its standard error is at most 1 % of it.
  mean_at_most,
  /// The exact value is a bound of every seed.
  at_most,
  /// Every seed has exactly this value.
  exactly,
};

/// One number that a check compares.
struct expected_line {
  std::string name;
  double exact = 0;
  line_rule rule = line_rule::estimate;
};

/// What one seed came to.
struct seed_outcome {
  /// One for each line of the check.
  std::vector<double> values;
  /// For a check with a distribution: independent draws of it.
  std::vector<double> sample;
  /// Leases that the production table has granted.
  uint64_t leases = 0;
  /// Of all runs of the seed, as the engine tells.
  std::string digest;
};

/// A closed form, and the simulation that must agree with it.
struct check {
  /// As in `--only`.
  std::string name;
  /// One line: what is simulated and how much of it.
  std::string what;
  /// Whose formula it is.
  std::string source;
  /// Every number that the result depends on, for the hash of the configuration.
  std::string config;
  std::vector<expected_line> lines;
  /// Of the pooled samples (Kolmogorov and Smirnov); none when empty.
  std::function<double(double)> distribution;
  /// Seeds count from 1. A pure function of its arguments.
  std::function<result<seed_outcome>(uint64_t seed, mutant_kind mutant)> run;
};

/// All checks, in the order of section "What is checked" of docs/selfcheck.md. The quick ones are
/// fewer and smaller and held to the same rules.
std::vector<check> all_checks(bool quick);

// One file each.
void add_closed_checks(std::vector<check>& out, bool quick);
void add_open_checks(std::vector<check>& out, bool quick);
void add_order_checks(std::vector<check>& out, bool quick);
void add_law_checks(std::vector<check>& out, bool quick);
void add_share_checks(std::vector<check>& out, bool quick);
void add_plan_checks(std::vector<check>& out, bool quick);

} // namespace gristmill
