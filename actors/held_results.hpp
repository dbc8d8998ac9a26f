#pragma once

#include "messages/cluster.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

struct held_limits {
  /// Kept for a coordinator that is away; the oldest go first.
  size_t held_max = 64;
  /// All of them together in a message, about.
  size_t bytes_max = 384 * 1024;
  /// Answered, and waiting for their judge; the oldest go first.
  size_t waiting_max = 4096;
};

/// The measurements whose outputs lie on this node, and those that nobody has been told yet.
///
/// A measurement that the hub was told stays here until its outputs are judged. When the hub is
/// lost before that, nobody knows whether it still knows the measurement: it is held again and
/// offered to the next one. Pure. Outputs that are not wanted any more are in `take_dropped`, to be
/// removed.
class held_results {
public:
  explicit held_results(held_limits limits = {}) : limits_(limits) {}

  /// The hub has been told this one.
  void answered(held_result what);
  /// It ended while no hub was there. What measured nothing is not worth keeping: a new measurement
  /// tells more.
  void held(held_result what);
  void hub_lost();
  /// For the offer to the next hub, oldest first.
  std::vector<held_result> offer() const;
  /// A hub has taken the offer: it has been told all of them. Those without outputs are forgotten.
  void offered();
  /// One with that key which no hub has been told of: it answers the measurement that is asked for.
  /// It ended after the offer, on behalf of a hub that was gone.
  std::optional<held_result> hand_in(const std::string& key);
  /// Whether the outputs in this folder are here; they are the judge's from now on.
  bool judge(const std::string& folder);
  /// The run is over.
  void clear();

  /// Folders of outputs that nobody will ask for.
  std::vector<std::string> take_dropped();
  size_t size() const { return all_.size(); }

private:
  struct entry {
    held_result what;
    bool told = false;
  };

  void keep(held_result what, bool told);
  void drop(const entry& one);
  void trim();

  held_limits limits_;
  /// Oldest first.
  std::deque<entry> all_;
  std::vector<std::string> dropped_;
};

/// About how many bytes it takes in a message, rather more than less.
size_t message_bytes(const held_result& what);

} // namespace gristmill
