#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace gristmill::ptx {

/// Who reads and writes: a warp of the grid (even), or the copies and wgmma that it has started and
/// not waited for (odd, the number of the warp plus 1). 0 is nobody.
using actor = uint32_t;

/// What somebody knows to have happened: for each actor the time, on that actor's own clock, up to
/// which everything that it did is visible. A vector clock that holds only the actors that were
/// met; copies share their contents until one of them learns something.
class knowledge {
public:
  bool knows(actor who, uint32_t time) const;
  void learn(actor who, uint32_t time);
  void join(const knowledge& other);
  bool empty() const { return !known_; }

private:
  /// Sorted by actor.
  using table = std::vector<std::pair<actor, uint32_t>>;
  std::shared_ptr<const table> known_;
};

} // namespace gristmill::ptx
