#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/workload.hpp"

#include <cstdint>

namespace gristmill {

/// Elements over all inputs and outputs of a workload with these resolved axes.
result<uint64_t> workload_elements(const definition& def, const axis_values& resolved);

/// Multiply-adds that the shapes alone let one expect of the float inputs with two dimensions or
/// more. One of constant axes only is a weight and meets every row of the largest other one ([B, S,
/// C] and [N, C]: B*S*N*C; the same for a weight in a chain of layers). Two others that share an
/// axis meet in every combination of their axes ([M, K] and [K, N]: M*K*N). No bound: what a
/// reference multiplies with itself is not seen, and sums of products may be no more than sums.
/// Saturates.
result<uint64_t> expected_macs(const definition& def, const axis_values& resolved);

/// What a correctness twin may be. The target of elements comes from the caller.
struct twin_limits {
  /// Variable axes are reduced until the twin has no more than these.
  uint64_t elements = 2'000'000;
  /// Where constant axes alone exceed the target. 160 million float32 are 640 MB, of which the
  /// judge, the mock device and the reference hold one copy each.
  uint64_t elements_hard = 160'000'000;
  /// Variable axes are reduced until the shapes promise no more multiply-adds: the interpreter
  /// takes seconds for them in a plain float32 product, one thread an element.
  uint64_t macs = uint64_t{128} << 20;
  /// Where constant axes alone exceed that.
  uint64_t macs_hard = uint64_t{2} << 30;
};

/// The axes of a workload's correctness twin: small enough to interpret in full, alike enough to
/// go through the same code. Gives all axes, resolved.
///
/// When the workload is within `limits.elements` and `limits.macs` these are its own. Else its
/// variable axes are reduced in the order of declaration, the next one only when the one before is
/// at its floor. Each stays congruent modulo 64 and at least 64 (one below 128 stays as it is);
/// where that is not small enough, modulo 16, then 8, with the same rule. Constants stay,
/// expressions follow.
///
/// Where the constants are the reason that nothing fits, the elements that are left with every
/// variable axis at 1 count as given: the target is on top of them, and the moduli go down to 4, 2
/// and 1 at last. Such a twin has no more than the hard limits.
///
/// `refused`, with the sizes, when even the smallest one is beyond the hard limits; `unsupported`
/// for a workload with safetensors inputs, whose shapes are fixed.
result<axis_values> shrink_axes(
  const definition& def, const workload& work, const twin_limits& limits);

/// The same with a target of elements. A target above the usual one lifts the other limits in
/// proportion, the hard ones as far as that; `UINT64_MAX` takes every workload as it is.
result<axis_values> shrink_axes(const definition& def, const workload& work, uint64_t max_elements);

} // namespace gristmill
