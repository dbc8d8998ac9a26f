#pragma once

#include "messages/measure.hpp"
#include "messages/verdict.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gristmill::cuda {

/// What a tracer says of one activity on the device.
struct traced_activity {
  device_activity what;
  /// Nanoseconds of the tracer's clock; 0 when it did not catch the moment.
  uint64_t start = 0;
  uint64_t end = 0;
  /// Grows in the order in which the host asked for things.
  uint32_t correlation = 0;
  /// Which window it was asked for in (`activity_ledger`); 0 when the tracer links it to none.
  uint64_t window = 0;
};

/// "kernel scale, grid 4x1x1, block 256x1x1"; "memset of 4096 bytes"
std::string describe(const device_activity& activity);

/// Keeps account of the activities of timed calls: a call counts when the tracer saw exactly what
/// its plan says. Less than that is the tracer's loss, and the sample is taken again; anything else
/// is a finding.
///
/// Every timed call is a window with a number of its own, from 2 up and never used twice; window 1
/// is all that we do ourselves between calls.
class activity_ledger {
public:
  static constexpr uint64_t ours = 1;

  /// `again_max`: samples that may be taken again before the tracer is given up.
  explicit activity_ledger(uint32_t again_max) : again_max_(again_max) {}

  struct entry {
    /// First start to last end; nothing when the sample has to be taken again.
    std::optional<uint64_t> ns;
    /// Why again; empty when it counts.
    std::string why_again;
  };

  /// Judges one window. `planned` is in the order of the plan; `seen` is everything that the tracer
  /// has told since the last call of this function, in any order; `dropped` is how many records it
  /// lost.
  entry judge(uint64_t window, const std::vector<device_activity>& planned,
    std::vector<traced_activity> seen, uint64_t dropped);

  uint32_t taken_again() const { return again_; }
  /// True when too many samples had to be taken again: the tracer is not to be relied on.
  bool given_up() const { return again_ > again_max_; }
  /// The list of activities that every counted call has shown; empty before the first.
  const std::vector<device_activity>& activities() const { return shown_; }
  /// At most one of a rule; the detail counts how often.
  std::vector<finding> findings() const;

private:
  struct noted {
    std::string first;
    uint64_t times = 0;
  };
  void note(const std::string& rule, std::string detail);

  uint32_t again_max_;
  uint32_t again_ = 0;
  /// True: counted; false: to be taken again.
  std::map<uint64_t, bool> judged_;
  std::vector<device_activity> shown_;
  std::map<std::string, noted> noted_;
};

} // namespace gristmill::cuda
