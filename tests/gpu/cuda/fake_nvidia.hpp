#pragma once

#include <cstdint>

/// What a test tells the library that stands for libcuda, libcupti and libnvidia-ml (one file with
/// three names, so that they share this), and what it saw. Its device runs nothing: memory is
/// memory of the host, every launch takes 1 us of a clock that only launches move.
struct fake_nvidia {
  /// CUPTI: of the next activities so many are not told; then back to 0.
  uint32_t lose = 0;
  /// A record too many with each launch while above 0, counted down.
  uint32_t extra = 0;
  /// A record that nobody asked for, at the next launch.
  uint32_t stray = 0;
  /// Told as dropped at the next question, then 0.
  uint32_t dropped = 0;
  /// cuptiActivityEnable fails with this.
  int enable_fails = 0;
  /// Nanoseconds of each further launch.
  uint64_t launch_ns = 1000;
  /// cuLaunchKernelEx fails with this from here on.
  int launch_fails = 0;
  /// NVML: processes besides ours (number 1234, once there is a context).
  uint32_t foreign = 0;
  /// What the canary counts in 1000 ns, and by how much that grows with each look.
  uint64_t canary_cycles = 1500;
  uint64_t canary_drift = 0;

  uint64_t launches = 0;
  uint64_t memsets = 0;
  uint64_t scrubs = 0;
  /// How often persisting lines of L2 were given up.
  uint64_t l2_resets = 0;
  uint64_t waits = 0;
  uint64_t streams = 0;
  uint64_t maps = 0;
  uint64_t unmaps = 0;
};
