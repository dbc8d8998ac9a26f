#pragma once

#include "messages/result.hpp"
#include "tensors/mac_class.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// The physical rates that a floor divides by. Integers, so that a floor is exact.
struct device_rates {
  /// Sustained or nominal memory bandwidth in bytes a second.
  uint64_t bytes_per_second = 0;
  /// Peak of the unit that the work may use at best, in floating-point operations a second.
  uint64_t flops_per_second = 0;
  /// Peaks of the matrix units, in multiply-adds a second.
  mac_counts macs_per_second{};
};

/// What a workload must at least do.
struct work_amount {
  /// Every input and every output once.
  uint64_t bytes = 0;
  /// 0 = not stated: the floor is then memory traffic alone.
  uint64_t flops = 0;
  /// Multiply-adds of matrix products and convolutions, by what they are fed with.
  mac_counts macs{};
};

/// A lower bound on the time of a workload, with where it comes from.
struct time_floor {
  uint64_t ns = 0;
  /// For people and for the provenance of every score: names the method and the rates.
  std::string method;
};

/// The stated floor: `max(bytes / bandwidth, flops / rate, sum of macs / rate)`, rounded up to
/// whole nanoseconds and never 0: memory, vector and matrix units work at the same time, the
/// classes of multiply-adds share one unit. Errors: `invalid_input` when there is work of a kind
/// whose rate is 0, or a result that does not fit 64 bits.
result<time_floor> stated_floor(const work_amount& work, const device_rates& rates);

/// What no kernel of a device can beat, whatever it computes.
struct physical_limits {
  /// Of a kernel that does nothing, first activity to last.
  uint64_t shortest_kernel_ns = 0;
  /// The fastest place that can take an output, which is the L2 cache rather than the memory behind
  /// it; 0 = not known.
  uint64_t write_bytes_per_second = 0;
};

/// A time below which a time is none: `max(shortest kernel, output bytes / write rate)`, rounded
/// down, so that rounding accuses nobody. Inputs do not count: a kernel may not need all of them.
uint64_t physical_floor(const physical_limits& limits, uint64_t output_bytes);

} // namespace gristmill
