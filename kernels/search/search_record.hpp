#pragma once

#include "kernels/search/search_space.hpp"
#include "kernels/search/workload_groups.hpp"
#include "messages/attempt.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A point, or a candidate with several configurations, that has a full verdict.
struct tried_candidate {
  /// Without prefix; "groups:…" for a candidate with several configurations.
  std::string key;
  bool is_groups = false;
  /// Of a point.
  program_point point;
  /// Every measurement of it passed.
  bool passed = false;
  /// The slowest of its measurements: luck does not make a winner. 0 unless passed.
  uint64_t ns = 0;
  double floor_share = 0;
  uint32_t measurements = 0;
  /// Times in nanoseconds in the order of the workloads; empty when some are not known.
  std::vector<double> times;
};

/// A finished probe.
struct probed_point {
  /// Without prefix.
  std::string key;
  program_point point;
  bool passed = false;
  uint64_t ns = 0;
  /// Place of a workload and its time in nanoseconds.
  std::vector<std::pair<size_t, double>> times;
};

/// How a probe compares with the best candidate at the workloads that it measured.
struct probe_ratio {
  /// False when the two have no workload in common.
  bool known = false;
  /// Geometric mean of probe over best, and the smallest single one.
  double mean = 1;
  double least = 1;
};

/// History and keys in flight, read by the eyes of a search: what is of this space, what it says.
class search_record {
public:
  search_record(const search_space& space, const std::vector<search_workload>& workloads,
    const trial_history& history, const std::vector<std::string>& in_flight);

  /// The key has a verdict or is being tried.
  bool knows(std::string_view key) const { return known_.contains(key); }
  /// The point is or was tried in any way.
  bool knows_point(const std::string& point_key) const;

  /// In the order of their first verdict.
  const std::vector<tried_candidate>& tried() const { return tried_; }
  const std::vector<probed_point>& probes() const { return probes_; }
  size_t probes_in_flight() const { return probes_in_flight_; }
  /// Points that have a full verdict or are being measured in full.
  size_t full_points() const { return points_tried_ + full_in_flight_; }

  /// The fastest passed candidate; null for none.
  const tried_candidate* best() const;
  /// Passed points, fastest first; no groups.
  std::vector<const tried_candidate*> passed_points() const;

  probe_ratio compare(const probed_point& probe, const tried_candidate& best) const;

  /// Effort since the last gain of 1 %, of the time or of the best time of each workload: 2 for a
  /// full trial, 1 for a probe that is not one of the first `probe_starts` or that failed. Second
  /// measurements do not count.
  uint32_t effort_without_gain(size_t probe_starts) const;

  /// Passed points measured in full since the last candidate with several configurations.
  size_t points_since_groups() const;

  /// Points of families that failed twice and never passed.
  bool is_broken(const std::string& point_key) const;

private:
  void add_full(const search_space& space, const trial& one, std::string_view subject,
    bool is_confirmation, bool is_groups);
  void add_probe(const search_space& space, const trial& one, std::string_view subject);
  void count_families(std::string_view point_key, bool passed);
  std::vector<double> times_of(const trial& one) const;

  struct family_count {
    uint32_t passed = 0;
    uint32_t failed = 0;
  };

  /// One finished trial of this space, in order.
  struct step {
    bool is_probe = false;
    bool passed = false;
    uint64_t ns = 0;
    std::vector<double> times;
  };

  std::map<std::string, size_t, std::less<>> place_of_workload_;
  std::set<std::string, std::less<>> known_;
  std::map<std::string, size_t, std::less<>> place_of_tried_;
  std::vector<tried_candidate> tried_;
  std::vector<probed_point> probes_;
  std::vector<step> steps_;
  std::map<std::string, family_count, std::less<>> families_;
  size_t points_tried_ = 0;
  size_t full_in_flight_ = 0;
  size_t probes_in_flight_ = 0;
};

} // namespace gristmill
