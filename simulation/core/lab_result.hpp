#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Times in whole nanoseconds, counted in bins that are 1/256 of an octave wide (0.27 %); exact
/// below 256 ns. Sums are exact.
class time_histogram {
public:
  void add(int64_t ns);
  uint64_t count() const { return count_; }
  /// 0 when empty.
  double mean_s() const;
  double max_s() const;
  /// The value below which a share `q` of the times lies, interpolated within its bin; 0 when
  /// empty.
  double quantile_s(double q) const;
  /// Share of the times at or below that.
  double share_up_to(double seconds) const;
  void merge(const time_histogram& other);

  /// (upper end in seconds, how many at or below it), the bins that are not empty.
  std::vector<std::pair<double, uint64_t>> cumulative() const;

private:
  std::vector<uint32_t> bins_;
  uint64_t count_ = 0;
  __int128 sum_ = 0;
  int64_t max_ = 0;
};

/// What the GPUs' time went into. The states add up to GPUs times the measured time.
enum class gpu_time : uint8_t {
  /// Work that ended by itself.
  useful = 0,
  /// The compiler works while the lease is held.
  compile,
  /// Granted and nothing launched yet, or idle while held.
  launch,
  /// Hangs, faults and leases that were lost: all of their work.
  wasted,
  /// Ended, not yet proven free.
  verify,
  /// Suspect, in quarantine, drained or lost.
  down,
  free,
  count_,
};

std::string to_string(gpu_time what);

/// Where all problems stand after so much GPU time.
struct outcome_point {
  double time_s = 0;
  /// Held, clean-up included.
  double gpu_hours = 0;
  /// Over all problems; one without a kernel counts as 1.
  double geomean = 1;
  uint32_t wins = 0;
  uint32_t above_two = 0;
  double median_sol = 0;
};

struct agent_share {
  std::string name;
  uint32_t weight = 1;
  uint64_t leases = 0;
  double held_s = 0;
};

/// What a simulated run came to. "Measured" is the time after the warm-up. Everything but
/// `wall_s` is a function of scenario, seed and program.
struct lab_result {
  /// Of every lease transition, in order: 16 hexadecimal digits. Equal for both engines.
  std::string digest;
  uint64_t transitions = 0;
  double measured_s = 0;
  uint32_t gpus = 0;
  uint32_t agents = 0;

  /// In the measured time: requests, grants (by when they were granted), leases that ended.
  uint64_t requests = 0;
  uint64_t grants = 0;
  uint64_t ended = 0;
  uint64_t hangs = 0;
  uint64_t faults = 0;
  /// Leases that were lost with their GPU, and waits that ended without one.
  uint64_t lost = 0;
  uint64_t given_up = 0;
  /// Of all the run, warm-up included.
  uint64_t leases_total = 0;

  /// Request to grant, by when it was granted.
  time_histogram waits;
  /// Grant to free again.
  time_histogram holds;
  /// Request to the end of the job's last lease (open arrivals and recorded jobs only).
  time_histogram responses;
  /// Longest wait that had not ended at the end.
  double waiting_at_end_s = 0;

  /// Integrals over the measured time, in seconds: waiting requests, and requests that wait or are
  /// held.
  double queue_area = 0;
  double system_area = 0;
  /// Sum of all waits, holds and thinking (compilation off the lease included) of agents within the
  /// measured time, each cut at its ends: what Little's law and the response law are checked with.
  double waited_s = 0;
  double held_s = 0;
  double thought_s = 0;

  /// GPU seconds by state, in the order of `gpu_time`.
  std::array<double, static_cast<size_t>(gpu_time::count_)> gpu_s{};

  std::vector<agent_share> shares;
  /// Of held seconds, of held seconds by weight, and of lease counts; 1 when all are equal.
  double jain_seconds = 1;
  double jain_weighted = 1;
  double jain_counts = 1;
  /// Agents that waited for an hour or longer between two of their leases (waits that ended without
  /// one included).
  uint32_t starved = 0;

  /// Evenly spaced in time, the end included; empty without problems.
  std::vector<outcome_point> curve;
  /// GPU seconds that each problem had.
  std::vector<double> problem_s;

  /// Real time that the engine took.
  double wall_s = 0;

  double throughput() const { return measured_s > 0 ? double(ended) / measured_s : 0; }
  /// Leased share of the GPU time.
  double utilisation() const;
  const outcome_point* end() const { return curve.empty() ? nullptr : &curve.back(); }
  /// GPU hours until the geomean was first at `target`, interpolated; infinity when it never was.
  double gpu_hours_to(double target) const;
  /// Mean of the geomean over GPU hours.
  double mean_geomean() const;
};

/// Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has all; 1
/// for nothing.
double jain_index(const std::vector<double>& shares);

} // namespace gristmill
