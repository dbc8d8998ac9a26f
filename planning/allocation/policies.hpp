#pragma once

#include "planning/allocation/allocation.hpp"

namespace gristmill {

// The rules that the house has besides `equal_share`. In all of them an attempt in flight counts as
// one that brought nothing, so that several workers do not all go to one problem, and a problem
// that was never given an attempt goes first, unless something else is said. Of problems that a
// rule holds equal the one that was given fewer attempts goes first, then the smaller index.

/// The next eligible problem after the one that was given an attempt last, in the order of indices.
std::unique_ptr<allocation> make_round_robin(uint32_t problems);

/// The largest exponentially weighted gain for a unit of use: a problem's attempt counts half as
/// much once `halflife` (above 0) more of its attempts have been given. Every problem begins with a
/// gain of `prior`, so that one whose first attempts bring nothing is not given up for ever.
std::unique_ptr<allocation> make_greedy(
  uint32_t problems, bool by_attempts, double halflife, double prior);

/// UCB1: the largest mean gain of an attempt plus a sqrt(2 ln t / n), for a unit of use; t is the
/// number of attempts that were given to all, n of those to the problem.
std::unique_ptr<allocation> make_ucb(uint32_t problems, bool by_attempts, double a);

/// The largest gain over the later half of a problem's attempts, plus `prior`, for each attempt of
/// that half (or for its GPU time). The prior is the same for all and is divided by a number that
/// grows with the attempts, so nobody starves.
std::unique_ptr<allocation> make_rising(uint32_t problems, bool by_attempts, double prior);

/// Asynchronous successive halving on gain. In a round each problem gets `first` attempts (rung 0);
/// of those that finished rung k, the best 1/eta by gain for a unit of use in that rung get
/// first eta^(k+1) more, as soon as that can be said (so early noise can promote one too many). The
/// highest rung goes first, then the fewest in flight, then the smaller index. When nobody is left
/// to go on the next round begins. Where all that remains of a round is in flight, equal share
/// decides.
std::unique_ptr<allocation> make_asha(
  uint32_t problems, bool by_attempts, uint32_t eta, uint32_t first);

/// Leaves a problem out whose best is less than `eps` (in log speed-up) above its floor, as long as
/// another one can use the attempt; `inner` decides among the others. One whose headroom is not
/// known is never left out; when all are near their floors equal share decides among them. An `eps`
/// of 0 leaves nobody out.
std::unique_ptr<allocation> make_gate(
  uint32_t problems, bool by_attempts, double eps, std::unique_ptr<allocation> inner);

/// A share of `millionths` of the slots, evenly among the others, goes by equal share; `inner` has
/// the others. Of the first n slots exactly floor(n * share) are equal.
std::unique_ptr<allocation> make_equal_floor(
  uint32_t problems, bool by_attempts, uint32_t millionths, std::unique_ptr<allocation> inner);

/// `inner`, watched: where it names nobody or somebody who cannot use an attempt, equal share
/// decides. `label` lives as long as the program.
std::unique_ptr<allocation> make_guarded(
  uint32_t problems, bool by_attempts, std::string_view label, std::unique_ptr<allocation> inner);

} // namespace gristmill
