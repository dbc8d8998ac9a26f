#pragma once

#include "messages/lease.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace gristmill {

/// The alarms that stand. Each is told once when it comes up and once when it is over; after that
/// it can come up again.
class alarm_board {
public:
  struct changes {
    std::vector<broker_alarm> raised;
    std::vector<broker_alarm> over;
  };

  /// `present` is everything that is wrong now: what is new in it is raised, what is missing is
  /// over. An alarm is known by its kind, GPU and ticket; a new detail alone changes nothing but
  /// the list. At most `alarms_max` stand at a time, the others wait for a place.
  changes update(std::vector<broker_alarm> present);

  /// Sorted by kind, GPU and ticket.
  std::vector<broker_alarm> list() const;
  bool empty() const { return standing_.empty(); }

  static constexpr size_t alarms_max = 256;

private:
  using key = std::tuple<std::string, std::string, uint64_t>;
  std::map<key, broker_alarm> standing_;
};

} // namespace gristmill
