#pragma once

namespace gristmill {

/// Logarithm, exponential and the normal's quantile out of nothing but IEEE additions,
/// multiplications, divisions and square roots, so that equal arguments give equal bits on every
/// machine. (libm picks its code by the processor, and its last digit with it.) Fast besides.

/// Natural logarithm of a normal number above 0; wrong by less than 5e-16 or 5e-16 of the result,
/// whichever is more.
double plain_log(double x);

/// e to the x; wrong by less than 1e-15 of the result. 0 below -708, infinity above 709.
double plain_exp(double x);

/// x to the y, for x above 0.
double plain_pow(double x, double y);

/// The value that a standard normal stays below with this probability (0 to 1); wrong by less than
/// 1e-11. A probability of 0 or 1 counts as 2^-54 away from it. Rational approximations of degree
/// 5, fitted for this file with 40 digits at Chebyshev nodes: one around the middle (within 0.425),
/// one in sqrt(-2 log p) for the tails.
double normal_quantile(double probability);

} // namespace gristmill
