#pragma once

#include "simulation/model/counter_stream.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// How the speed-up of a problem grows with the leases that are spent on it: a model, calibrated to
/// what a published run of 235 problems came to.
///
/// The best log speed-up is x = x0 + (L - x0)(1 - g), where the gap g begins at 1. A correct
/// candidate improves it with probability min(1, p0 z g^gamma), and then the gap shrinks to
/// g (1 - Beta(1, b)), b = gamma + b0. So E[g^-gamma] = 1 + gamma n pc p0 z/(b - gamma) exactly
/// while the probabilities stay below 1, and the gap falls as n^(-1/gamma).
struct learning_law {
  /// Diminishing returns: 2 saturates, 4 goes on gaining from compute.
  double gamma = 2;
  /// A candidate is correct with this probability.
  double correct = 0.55;
  /// p0: a correct candidate at the very beginning improves with this probability (times z).
  double improve = 0.375;
  /// b0.
  double step = 5.73;
  /// z is lognormal with mean 1 and this sigma.
  double spread = 1;
};

/// What the problems of a run come to when `leases` are spent on each: the law that L is solved
/// from. With probability `win` the final log speed-up is exponential with mean `win_mean`, else
/// minus an exponential with mean `loss_mean`.
struct final_law {
  double win = 0.634;
  double win_mean = 0.579;
  double loss_mean = 0.123;
  double leases = 8686;
  /// First correct log speed-up: normal.
  double start_mean = -0.92;
  double start_sigma = 0.5;
  /// T_b/T_SOL - 1: lognormal. Raised where the asymptote would pass the bound.
  double headroom_mu = 0.5;
  double headroom_sigma = 0.8;
};

/// One problem.
struct problem_curve {
  /// x0 and L.
  double start = 0;
  double asymptote = 0;
  /// h = T_b/T_SOL.
  double headroom = 1;
  /// z.
  double ease = 1;
  /// g.
  double gap = 1;
  /// No correct candidate yet: the problem has no kernel.
  bool is_solved = false;

  /// x, or 0 without a kernel: whoever has none runs the baseline.
  double log_speedup() const;
  /// S = (h - 1)/(h - 2 + h/r); 0 without a kernel.
  double sol_score() const;
  /// E of the log gain of one more correct candidate, for the hindsight oracle.
  double expected_gain(const learning_law& law) const;
};

/// Problem `index` of a seed.
problem_curve draw_problem(
  const learning_law& law, const final_law& target, uint64_t seed, uint64_t index);

/// One correct candidate. Returns the log gain; 0 for most. The first one takes the problem to x0.
double try_correct_candidate(
  problem_curve& problem, const learning_law& law, counter_stream& draws);

/// S for a speed-up r and a headroom h; r below h.
double sol_score_of(double speedup, double headroom);

} // namespace gristmill
