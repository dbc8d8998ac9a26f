#pragma once

#include <cstdint>

namespace gristmill::elementary {

// The few functions that the generator needs, from additions, multiplications and divisions only,
// so that every build and every machine gets the same bits. Good to about 1e-13 relative, which is
// beyond what a float keeps.

/// Natural logarithm of a positive normal number.
double log(double x);

/// e^x for x in [-700, 700].
double exp(double x);

/// For x in [-pi, pi].
double sin(double x);
double cos(double x);

/// The double nearest to pi.
inline constexpr double pi = 3.14159265358979323846;

/// The quantile of the standard normal distribution at (word + 1/2) / 2^32. Swapping all bits of
/// the word swaps the sign.
double normal_quantile(uint32_t word);

} // namespace gristmill::elementary
